//! Combinations of futures of any types, and the undo steps of a workflow that fails.

use std::sync::{Arc, Mutex};

use tickover::prelude::*;
use tickover::test::{TestEnv, with_each_death};
use tickover::{Either, Registry};
use tickover_core::duration::Millis;
use tickover_core::id::StepName;

use crate::scene::{Scene, execution_id};

/// The calls that the outside world has seen, each of them once.
pub(crate) type Seen = Arc<Mutex<Vec<String>>>;

#[tickover::step]
pub(crate) async fn act(#[state] seen: &Seen, what: String) -> Result<String, Failure> {
    let mut seen = seen.lock().map_err(|_| Failure::new("poisoned", ""))?;
    if !seen.contains(&what) {
        seen.push(what.clone());
    }
    if what.starts_with("bad") { Err(Failure::new("bad", what)) } else { Ok(what) }
}

pub(crate) fn act_on(what: &str) -> Step<String> {
    act(what.to_owned()).named(what)
}

#[tickover::workflow("approval")]
async fn approval(ctx: Ctx, days: u32) -> Result<(u32, String)> {
    let mut reminders = 0;
    let mut approved = ctx.wait_for_event::<String>("approved", forever());
    loop {
        let reminder = ctx.sleep(format!("day[{reminders}]"), "1d");
        approved = match ctx.race(format!("round[{reminders}]"), approved, reminder).await {
            Either::Left(by) => return Ok((reminders, by?)),
            Either::Right(slept) => slept.map(|()| ctx.wait_for_event("approved", forever()))?,
        };
        reminders += 1;
        ctx.step(act_on(&format!("reminder-{reminders}"))).await?;
        if reminders > days {
            return Err(Error::new("late", "nobody approved"));
        }
    }
}

#[tokio::test]
async fn a_race_has_the_same_winner_in_every_life() {
    let seen = Seen::default();
    let env = || TestEnv::new().workflow(approval).state(Seen::clone(&seen));
    let story = async |env: &TestEnv| {
        seen.lock().unwrap().clear();
        let run = env.start(&approval, 5).await.unwrap();
        env.advance("60h").await.unwrap();
        run.send_event("approved", "Ada").await.unwrap();
        (run.result().await.unwrap(), seen.lock().unwrap().clone())
    };
    let (result, reminders) = with_each_death(env, story).await;
    assert_eq!(result, (2, "Ada".to_owned()));
    assert_eq!(reminders, ["reminder-1", "reminder-2"]);
}

#[tickover::workflow("contest")]
async fn contest(ctx: Ctx) -> Result<(usize, u32, String)> {
    let slow = remote::<u32>("slow", ()).named("slow");
    let (first, second) = (ctx.sleep("long", "3h"), ctx.sleep("short", "2h"));
    let (winner, slept) = ctx.race_all("sleeps", [first, second]).await;
    slept?;
    match ctx.race("slow-or-not", slow, ctx.sleep("limit", "1h")).await {
        Either::Left(_) => return Err(Error::new("fast", "")),
        Either::Right(slept) => slept?,
    }
    let counted = remote::<u32>("count", ()).named("count");
    let (counted, said) = ctx.join(counted, act_on("said")).await;
    Ok((winner, counted?, said?))
}

#[tokio::test]
async fn the_losers_of_a_race_are_ended_and_its_winner_is_returned() {
    let env = TestEnv::new().workflow(contest).state(Seen::default()).answer("count", |(): ()| Ok(7));
    let run = env.start(&contest, ()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), (1, 7, "said".to_owned()));
    let timeline = run.timeline().await.unwrap();
    for told in ["sleeps = 1", "slow-or-not = 1", "step slow: cancelled"] {
        assert!(timeline.contains(told), "{timeline}");
    }
}

#[tickover::workflow("nothing")]
async fn nothing(ctx: Ctx) -> Result<usize> {
    Ok(ctx.race_all("nobody", Vec::<Step<u32>>::new()).await.0)
}

#[tickover::workflow("leaf")]
async fn leaf(ctx: Ctx, number: u32) -> Result<u32> {
    ctx.sleep("grow", format!("{}h", 9 - number)).await?;
    if number == 7 { Err(Error::new("odd", "seven")) } else { Ok(number) }
}

#[tickover::workflow("tree")]
async fn tree(ctx: Ctx, leaves: Vec<u32>) -> Result<Vec<u32>> {
    let children = leaves.iter().map(|number| ctx.child(&leaf, number).id(format!("leaf-{number}")));
    Ok(ctx.join_children(children).await?)
}

#[tokio::test]
async fn children_are_joined_in_the_order_of_their_list() {
    let env = TestEnv::new().workflow((tree, leaf, nothing));
    let run = env.start(&tree, vec![1, 2, 3]).await.unwrap();
    assert_eq!(run.result().await.unwrap(), [1, 2, 3]);
    // Side by side: together they take as long as the longest of them.
    assert_eq!(env.now().since(tickover::test::BEGINNING), Millis::from_secs(8 * 3_600));
    let error = env.start(&tree, vec![4, 7]).await.unwrap().result().await.unwrap_err();
    assert!(error.to_string().contains("seven"), "{error}");
    let error = env.start(&nothing, ()).await.unwrap().result().await.unwrap_err();
    assert!(error.to_string().contains("nothing to choose from"), "{error}");
}

/// Chooses from no steps at all, and would go on without an error.
#[tickover::workflow("chooses")]
async fn chooses(ctx: Ctx, how: String) -> Result<usize> {
    let none = Vec::<Step<u32>>::new;
    Ok(match how.as_str() {
        "select" => ctx.select("nobody", none()).await.0,
        "select_ok" => ctx.select_ok("nobody", none()).await.map_or(0, |(winner, _)| winner),
        _ => ctx.race_all("nobody", none()).await.0,
    })
}

#[tokio::test]
async fn a_race_of_no_steps_fails_the_run_with_the_reason() {
    for how in ["select", "select_ok", "race_all"] {
        let env = TestEnv::new().workflow(chooses);
        let run = env.start(&chooses, how.to_owned()).await.unwrap();
        let error = run.result().await.unwrap_err().to_string();
        assert!(error.contains("nobody: there is nothing to choose from"), "{how}: {error}");
        assert_eq!(env.now(), tickover::test::BEGINNING, "{how} fails at once");
    }
}

/// Books three items, the last of which may fail. It keeps the first one in any case.
#[tickover::workflow("trip", on_failure = apologise)]
async fn trip(ctx: Ctx, last: String) -> Result<()> {
    let insurance = ctx.on_undo("insurance", act_on("cancel-insurance"));
    ctx.step(act_on("insurance")).await?;
    ctx.step(act_on("hotel")).await?;
    ctx.on_undo("hotel", act_on("cancel-hotel"));
    ctx.on_undo("card", act_on("bad-card"));
    insurance.forget();
    ctx.on_undo("flight", act_on("cancel-flight").remote());
    ctx.sleep("night", "8h").await?;
    ctx.step(act_on(&last)).await?;
    Ok(())
}

async fn apologise(ctx: Ctx, last: String, _: Cause) -> Result<Option<()>> {
    ctx.step(act_on(&format!("sorry-for-{last}"))).await?;
    Ok(None)
}

#[tokio::test]
async fn a_failed_workflow_undoes_its_steps_last_first() {
    let seen = Seen::default();
    let env = || TestEnv::new().workflow(trip).step::<act>().state(Seen::clone(&seen));
    let story = async |env: &TestEnv, last: &str| {
        seen.lock().unwrap().clear();
        let run = env.start(&trip, last.to_owned()).await.unwrap();
        let ended = run.result().await.map_err(|error| error.to_string());
        (ended, seen.lock().unwrap().clone())
    };
    let (ended, undone) = with_each_death(env, async |env| story(env, "bad-flight").await).await;
    assert!(ended.unwrap_err().contains("bad-flight"));
    let expected = [
        "insurance",
        "hotel",
        "bad-flight",
        "cancel-flight",
        "bad-card",
        "cancel-hotel",
        "sorry-for-bad-flight",
    ];
    assert_eq!(undone, expected);

    let (ended, done) = story(&env(), "flight").await;
    assert_eq!((ended, done.len()), (Ok(()), 3));
}

#[tokio::test]
async fn undone_results_are_not_reused_and_only_an_undo_step_is_retried() {
    let scene = Scene::new();
    let seen = Seen::default();
    let registry = Registry::new().with(trip).with_step::<act>().with_state(Seen::clone(&seen));
    let worker = scene.worker(registry);
    scene.start(&trip, "trip", &"bad-flight".to_owned()).await;
    scene.inside(scene.finish(&worker, "trip")).await;
    let (id, step) = (execution_id("trip"), |name: &str| StepName::parse(name).unwrap());
    for refused in
        [scene.service.retry_step(&id, step("bad-flight")).await, scene.service.rerun(&id, &[], true).await]
    {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("was undone") && refused.contains("restart it"), "{refused}");
    }
    seen.lock().unwrap().clear();
    scene.service.retry_step(&id, step("undo:card")).await.unwrap();
    let ended = scene.inside(scene.finish(&worker, "trip")).await;
    // The results of the other undo steps are stored.
    assert_eq!(*seen.lock().unwrap(), ["bad-card", "sorry-for-bad-flight"]);
    let told = format!("{:?}", ended.journal);
    assert!(!told.contains("drift"), "{told}");
}

#[tickover::workflow("careless")]
async fn careless(ctx: Ctx) -> Result<()> {
    let parcel = Box::pin(ctx.step(remote::<()>("send", ()).named("parcel")));
    ctx.on_undo("parcel", act_on("return-parcel"));
    let slept = Box::pin(ctx.sleep("moment", "1s"));
    // The loser of the race keeps running.
    let _ = futures::future::select(parcel, slept).await;
    ctx.step(act_on("bad-end")).await?;
    Ok(())
}

#[tokio::test]
async fn a_running_step_is_ended_before_it_is_undone() {
    let env = || TestEnv::new().workflow(careless).state(Seen::default());
    let story = async |env: &TestEnv| {
        let run = env.start(&careless, ()).await.unwrap();
        let error = run.result().await.unwrap_err().to_string();
        assert!(error.contains("bad-end"), "{error}");
        let timeline = run.timeline().await.unwrap();
        let ended = timeline.find("step parcel: cancelled");
        // If the system died before it had recorded the parcel, the next life has no parcel to undo.
        let is_begun = timeline.contains("step parcel: sent");
        assert_eq!((is_begun || env.deaths() == 0, ended.is_some()), (is_begun, is_begun), "{timeline}");
        ended < timeline.find("step undo:parcel: completed")
    };
    assert!(with_each_death(env, story).await);
}

#[tickover::workflow("namesakes")]
async fn namesakes(ctx: Ctx, names: Vec<String>) -> Result<()> {
    for name in names {
        ctx.on_undo(name, act_on("return-it")).forget();
        ctx.on_undo("same", act_on("return-it"));
    }
    Ok(())
}

#[tokio::test]
async fn an_invalid_undo_name_fails_at_once() {
    let env = TestEnv::new().workflow(namesakes).state(Seen::default());
    for (names, problem) in [(vec!["a", "b"], "in use"), (vec!["no spaces"], "name")] {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let error = env.start(&namesakes, names).await.unwrap().result().await.unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains("undo:"), "{error}");
    }
    let fine = env.start(&namesakes, vec!["same".to_owned()]).await.unwrap();
    fine.result().await.unwrap();
}

#[tickover::workflow("refunded")]
async fn refunded(ctx: Ctx) -> Result<()> {
    ctx.on_undo("refund", remote::<u32>("refund", ()));
    ctx.step(act_on("bad stock")).await?;
    Ok(())
}

/// The refund is made by another program, which takes long. The execution has turns meanwhile, and it isn't ended by them.
#[tokio::test]
async fn a_remote_undo_step_is_not_ended_by_later_turns() {
    for what in ["an event", "a pause", "a long time"] {
        let env = || TestEnv::new().workflow(refunded).state(Seen::default());
        let story = async |env: &TestEnv| {
            let run = env.start(&refunded, ()).await.unwrap();
            env.advance("10s").await.unwrap();
            match what {
                "an event" => drop(run.send_event("anything", 1).await.unwrap()),
                "a pause" => {
                    run.pause().await.unwrap();
                    env.advance("1m").await.unwrap();
                    run.resume().await.unwrap();
                }
                _ => env.advance("30m").await.unwrap(),
            }
            env.advance("1m").await.unwrap();
            env.answer_now("refund", |(): ()| Ok(5_u32)).await.unwrap();
            run.result().await.unwrap_err();
            run.timeline().await.unwrap().contains("undo:refund: completed")
        };
        assert!(with_each_death(env, story).await, "{what}");
    }
}

#[tickover::workflow("overtaken", on_failure = sorry)]
async fn overtaken(ctx: Ctx, _: u32) -> Result<()> {
    let parcel = Box::pin(ctx.step(remote::<()>("send", ()).named("parcel")));
    let slept = Box::pin(ctx.sleep("moment", "1s"));
    let _ = futures::future::select(parcel, slept).await;
    ctx.step(act_on("bad-end")).await?;
    Ok(())
}

async fn sorry(ctx: Ctx, _: u32, _: Cause) -> Result<Option<()>> {
    ctx.step(act_on("sorry")).await?;
    Ok(None)
}

#[tokio::test]
async fn a_running_step_of_failed_code_is_ended_before_its_on_failure_begins() {
    let env = TestEnv::new().workflow(overtaken).state(Seen::default());
    let run = env.start(&overtaken, 1).await.unwrap();
    run.result().await.unwrap_err();
    let timeline = run.timeline().await.unwrap();
    let (ended, sorry) = (timeline.find("step parcel: cancelled"), timeline.find("sorry: completed"));
    assert!(ended.is_some() && sorry.is_some() && ended < sorry, "{timeline}");
}

/// It fails by a mistake in the code, which nothing can undo.
#[tickover::workflow("mistaken", on_failure = sorry)]
async fn mistaken(ctx: Ctx, _: u32) -> Result<()> {
    let parcel = Box::pin(ctx.step(remote::<()>("send", ()).named("parcel")));
    let slept = Box::pin(ctx.sleep("moment", "1s"));
    let _ = futures::future::select(parcel, slept).await;
    ctx.on_undo("twice", act_on("one"));
    ctx.on_undo("twice", act_on("two"));
    ctx.step(act_on("never")).await?;
    Ok(())
}

#[tokio::test]
async fn a_running_step_of_code_that_a_mistake_has_ended_is_ended_before_its_on_failure_begins() {
    let env = TestEnv::new().workflow(mistaken).state(Seen::default());
    let run = env.start(&mistaken, 1).await.unwrap();
    run.result().await.unwrap_err();
    let timeline = run.timeline().await.unwrap();
    let (ended, sorry) = (timeline.find("step parcel: cancelled"), timeline.find("sorry: completed"));
    assert!(ended.is_some() && sorry.is_some() && ended < sorry, "{timeline}");
}

/// It charges, and its order is too large for a remote step.
#[tickover::workflow("oversized")]
async fn oversized(ctx: Ctx, bytes: usize) -> Result<()> {
    ctx.step(act_on("charge")).await?;
    ctx.on_undo("charge", act_on("refund"));
    ctx.step(remote::<()>("ship", "x".repeat(bytes))).await?;
    Ok(())
}

#[tokio::test]
async fn a_remote_step_that_is_refused_has_failed_and_the_run_is_undone() {
    let seen = Seen::default();
    let env = || TestEnv::new().workflow(oversized).state(Seen::clone(&seen));
    let story = async |env: &TestEnv| {
        seen.lock().unwrap().clear();
        let run = env.start(&oversized, 400_000).await.unwrap();
        let error = run.result().await.unwrap_err().to_string();
        (error, seen.lock().unwrap().clone())
    };
    let (error, seen) = with_each_death(env, story).await;
    assert!(error.contains("input_bytes"), "{error}");
    assert_eq!(seen, ["charge", "refund"]);
}

/// What becomes of two labels, one of which is too large.
#[tickover::workflow("labels")]
async fn labels(ctx: Ctx, bytes: usize) -> Result<(bool, u32)> {
    let text = "x".repeat(bytes);
    let (large, small) = (remote::<u32>("print", &text), remote::<u32>("print", &"small"));
    let settled = ctx.join_all_settled("label", [large, small]).await;
    Ok((settled.outcomes[0].is_err(), *settled.outcomes[1].as_ref().map_or(&0, |number| number)))
}

#[tokio::test]
async fn the_other_steps_of_a_join_are_waited_for_when_one_is_refused() {
    let env = TestEnv::new().workflow(labels).answer("print", |_: String| Ok(7));
    let run = env.start(&labels, 400_000).await.unwrap();
    assert_eq!(run.result().await.unwrap(), (true, 7));
    assert!(env.now().since(tickover::test::BEGINNING) < Millis::from_secs(60));
}
