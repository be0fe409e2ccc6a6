//! Cancelled workflows: what they have done is undone, and their `on_cancel` runs.

use futures::future::join;
use tickover::prelude::*;
use tickover::test::{Run, TestEnv, with_each_death};
use tickover::{ParentClosePolicy, Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionOutcome;

use crate::sagas::{Seen, act, act_on};
use crate::scene::{Scene, clock, execution_id, settings};

fn seen_by(seen: &Seen) -> Vec<String> {
    seen.lock().unwrap().clone()
}

/// Its status, if it has ended without a result.
async fn status<O: serde::de::DeserializeOwned + Send + 'static>(run: &Run<'_, O>) -> String {
    assert!(run.result().await.is_err());
    run.describe().await.unwrap().status.to_string()
}

/// Books a room and a flight, and waits for the traveller.
#[tickover::workflow("journey", on_cancel = say_so)]
async fn journey(ctx: Ctx, flight: String) -> Result<()> {
    ctx.step(act_on("room")).await?;
    ctx.on_undo("room", act_on("cancel-room").remote());
    ctx.step(act_on("visa")).await?;
    ctx.on_undo("visa", act_on("cancel-visa")).forget();
    ctx.step(act_on("seat").remote()).await?;
    ctx.on_undo("seat", act_on("bad-seat"));
    ctx.step(act_on(&flight)).await?;
    ctx.on_undo("flight", act_on("cancel-flight"));
    let parcel = ctx.step(remote::<()>("send", ()).named("parcel"));
    ctx.on_undo("parcel", act_on("return-parcel"));
    let (parcel, packed) = futures::join!(parcel, ctx.wait_for_event::<u32>("packed", forever()));
    parcel?;
    packed?;
    ctx.step(act_on("departure")).await?;
    Ok(())
}

async fn say_so(ctx: Ctx, flight: String) -> Result<()> {
    ctx.step(act_on(&format!("told-{flight}"))).await?;
    Ok(())
}

#[tokio::test]
async fn what_a_cancelled_workflow_has_done_is_undone_last_first_and_then_on_cancel_runs() {
    let seen = Seen::default();
    let env = || TestEnv::new().workflow(journey).step::<act>().state(Seen::clone(&seen));
    let story = async |env: &TestEnv| {
        seen.lock().unwrap().clear();
        let run = env.start(&journey, "flight".to_owned()).await.unwrap();
        env.advance("5m").await.unwrap();
        run.cancel().await.unwrap();
        // An event comes too late for the code.
        run.send_event("packed", 1).await.unwrap();
        let status = status(&run).await;
        let timeline = run.timeline().await.unwrap();
        let order =
            ["step parcel: cancelled", "step undo:parcel: completed", "on_cancel:told-flight: completed"];
        let order = order.map(|told| timeline.find(told));
        assert!(order.is_sorted() && order[0].is_some(), "{timeline}");
        (status, seen_by(&seen))
    };
    let (status, calls) = with_each_death(env, story).await;
    assert_eq!(status, "cancelled");
    let done = ["room", "visa", "seat", "flight"];
    let undone = ["return-parcel", "cancel-flight", "bad-seat", "cancel-room", "told-flight"];
    assert_eq!(calls, [&done[..], &undone[..]].concat());
}

#[tokio::test]
async fn a_terminated_workflow_undoes_nothing() {
    let seen = Seen::default();
    let env = TestEnv::new().workflow(journey).step::<act>().state(Seen::clone(&seen));
    let run = env.start(&journey, "flight".to_owned()).await.unwrap();
    env.advance("1h").await.unwrap();
    run.terminate().await.unwrap();
    assert_eq!((status(&run).await.as_str(), seen_by(&seen).len()), ("cancelled", 4));
}

#[tokio::test]
async fn before_its_first_turn_a_workflow_has_nothing_to_undo() {
    let seen = Seen::default();
    let env = TestEnv::new().workflow(journey).step::<act>().state(Seen::clone(&seen));
    let client = env.client();
    let run = client.start(&journey, "flight".to_owned()).delay("1h").await.unwrap();
    run.cancel().await.unwrap();
    assert_eq!(run.describe().await.unwrap().status.to_string(), "cancelled");
    env.run_until_idle().await.unwrap();
    assert!(seen_by(&seen).is_empty());
}

/// A refund that takes long. The code never learns that the parcel was cancelled, so it doesn't keep the money.
#[tickover::workflow("slow-refund")]
async fn slow_refund(ctx: Ctx) -> Result<()> {
    let refund = ctx.on_undo("refund", remote::<u32>("refund", ()));
    ctx.on_undo("letter", act_on("letter"));
    let sent = ctx.step(remote::<()>("send", ()).named("parcel")).await;
    refund.forget();
    ctx.on_undo("other-letter", act_on("other-letter"));
    Ok(sent?)
}

#[tokio::test]
async fn undo_steps_that_take_long_are_waited_for_whatever_comes() {
    for what in ["an event", "a pause", "another cancel", "a long time"] {
        let seen = Seen::default();
        let env = || TestEnv::new().workflow(slow_refund).state(Seen::clone(&seen));
        let story = async |env: &TestEnv| {
            seen.lock().unwrap().clear();
            let run = env.start(&slow_refund, ()).await.unwrap();
            env.advance("10m").await.unwrap();
            run.cancel().await.unwrap();
            env.advance("10s").await.unwrap();
            match what {
                "an event" => drop(run.send_event("anything", 1).await.unwrap()),
                "a pause" => {
                    run.pause().await.unwrap();
                    env.advance("1m").await.unwrap();
                    run.resume().await.unwrap();
                }
                "another cancel" => drop(run.cancel().await.unwrap()),
                _ => env.advance("30m").await.unwrap(),
            }
            env.advance("1m 10s").await.unwrap();
            assert_ne!(run.describe().await.unwrap().status.to_string(), "cancelled", "{what}");
            env.answer_now("refund", |(): ()| Ok(5_u32)).await.unwrap();
            let status = status(&run).await;
            (status, run.timeline().await.unwrap().contains("undo:refund: completed"), seen_by(&seen))
        };
        let (status, refunded, letters) = with_each_death(env, story).await;
        assert_eq!((status.as_str(), refunded, letters.len()), ("cancelled", true, 1), "{what}");
    }
}

/// It takes a minute to reserve, and the code says only afterwards how to undo that.
#[tickover::step]
async fn reserve(#[state] seen: &Seen) -> Result<(), Failure> {
    clock().after(Millis::from_secs(60)).await;
    seen.lock().map_err(|_| Failure::new("poisoned", ""))?.push("reserved".to_owned());
    Ok(())
}

#[tickover::workflow("reserving")]
async fn reserving(ctx: Ctx, _: u32) -> Result<()> {
    ctx.step(reserve()).await?;
    ctx.on_undo("reserve", act_on("returned"));
    ctx.step(act_on("paid")).await?;
    Ok(())
}

#[tokio::test]
async fn the_code_gets_what_a_running_step_returns_so_that_it_is_undone() {
    let scene = Scene::new();
    let seen = Seen::default();
    let worker = scene.worker(Registry::new().with(reserving).with_state(Seen::clone(&seen)));
    scene.start(&reserving, "reserving", &1).await;
    let cancel = async {
        scene.after(Millis::from_secs(30)).await;
        scene.service.cancel_execution(&execution_id("reserving")).await.unwrap();
        scene.after(Millis::from_secs(300)).await;
    };
    scene.inside(scene.until(&worker, cancel)).await;
    let ended = scene.finish(&worker, "reserving").await;
    assert_eq!(ended.outcome(), &ExecutionOutcome::Cancelled { terminated: false });
    assert_eq!(seen_by(&seen), ["reserved", "returned"]);
}

/// Its last step ends after it was asked to stop, and another run would follow.
#[tickover::workflow("renewing")]
async fn renewing(ctx: Ctx, _: u32) -> Result<()> {
    ctx.on_undo("reserve", act_on("returned"));
    ctx.step(reserve()).await?;
    ctx.continue_as_new(1_u32).await
}

#[tokio::test]
async fn a_run_that_was_to_be_the_last_but_one_is_undone_if_it_is_cancelled() {
    let scene = Scene::new();
    let seen = Seen::default();
    let worker = scene.worker(Registry::new().with(renewing).with_state(Seen::clone(&seen)));
    scene.start(&renewing, "renewing", &1).await;
    let cancel = async {
        scene.after(Millis::from_secs(30)).await;
        scene.service.cancel_execution(&execution_id("renewing")).await.unwrap();
        scene.after(Millis::from_secs(300)).await;
    };
    scene.inside(scene.until(&worker, cancel)).await;
    let ended = scene.finish(&worker, "renewing").await;
    assert_eq!(ended.outcome(), &ExecutionOutcome::Cancelled { terminated: false });
    assert_eq!(seen_by(&seen), ["reserved", "returned"]);
}

/// It says first how to undo it.
#[tickover::workflow("reserving-first")]
async fn reserving_first(ctx: Ctx, _: u32) -> Result<()> {
    ctx.on_undo("reserve", act_on("returned"));
    ctx.step(reserve()).await?;
    Ok(())
}

#[tokio::test]
async fn what_a_stopped_worker_has_never_reported_is_undone_by_the_next() {
    let scene = Scene::new();
    let seen = Seen::default();
    let registry = || Registry::new().with(reserving_first).with_state(Seen::clone(&seen));
    let settings = WorkerSettings { grace: Millis::from_secs(1), ..settings() };
    let stopped = Worker::new(scene.service.clone(), registry(), settings).unwrap();
    scene.start(&reserving_first, "first", &1).await;
    let cancel = async {
        scene.after(Millis::from_secs(30)).await;
        scene.service.cancel_execution(&execution_id("first")).await.unwrap();
    };
    let until_it_stops = join(stopped.run(scene.after(Millis::from_secs(40))), cancel);
    scene.inside(scene.clock.drive(until_it_stops)).await;
    assert!(seen_by(&seen).is_empty());
    let next = scene.worker(registry());
    let ended = scene.inside(scene.finish(&next, "first")).await;
    assert_eq!(ended.outcome(), &ExecutionOutcome::Cancelled { terminated: false });
    assert_eq!(seen_by(&seen), ["returned"]);
}

/// Its flight can't be booked, and the traveller cancels while the refund is made.
#[tickover::workflow("failing", on_failure = regret, on_cancel = accept)]
async fn failing(ctx: Ctx, _: u32) -> Result<()> {
    ctx.on_undo("refund", remote::<u32>("refund", ()));
    ctx.on_undo("letter", act_on("letter"));
    ctx.step(act_on("bad-flight")).await?;
    Ok(())
}

async fn regret(ctx: Ctx, _: u32, _: Cause) -> Result<Option<()>> {
    ctx.step(act_on("regret")).await?;
    Ok(None)
}

async fn accept(ctx: Ctx, _: u32) -> Result<()> {
    ctx.step(act_on("bad-accept")).await?;
    Ok(())
}

#[tokio::test]
async fn a_failure_that_is_being_undone_counts_as_cancelled_and_is_undone_once() {
    let seen = Seen::default();
    let env = || TestEnv::new().workflow(failing).state(Seen::clone(&seen));
    let story = async |env: &TestEnv| {
        seen.lock().unwrap().clear();
        let run = env.start(&failing, 1).await.unwrap();
        env.advance("1m").await.unwrap();
        run.cancel().await.unwrap();
        env.advance("1m").await.unwrap();
        env.answer_now("refund", |(): ()| Ok(5_u32)).await.unwrap();
        // That `on_cancel` fails changes nothing.
        (status(&run).await, seen_by(&seen))
    };
    let (status, calls) = with_each_death(env, story).await;
    assert_eq!(status, "cancelled");
    assert_eq!(calls, ["bad-flight", "letter", "bad-accept"]);
}

/// What its code does after the cancellation doesn't count.
#[tickover::workflow("stubborn", on_cancel = endless, on_cancel_timeout = "1h")]
async fn stubborn(ctx: Ctx, what: String) -> Result<u32> {
    loop {
        let waited = ctx.wait_for_event::<u32>("again", forever()).await;
        if ctx.is_cancelled() && what == "fails" {
            return Err(Error::new("given_up", ""));
        }
        if waited? == 0 {
            return Ok(7);
        }
    }
}

async fn endless(ctx: Ctx, _: String) -> Result<()> {
    ctx.wait_for_event::<u32>("never", forever()).await?;
    Ok(())
}

#[tokio::test]
async fn on_cancel_has_time_of_its_own_and_whatever_follows_the_execution_is_cancelled() {
    for what in ["waits", "fails"] {
        let env = TestEnv::new().workflow(stubborn).state(Seen::default());
        let run = env.start(&stubborn, what.to_owned()).await.unwrap();
        env.advance("1d").await.unwrap();
        run.cancel().await.unwrap();
        run.send_event("again", 0).await.unwrap();
        env.advance("59m").await.unwrap();
        assert_ne!(run.describe().await.unwrap().status.to_string(), "cancelled");
        assert_eq!(status(&run).await, "cancelled");
        assert_eq!(env.now().since(tickover::test::BEGINNING), Millis::from_secs(25 * 3_600), "{what}");
    }
}

#[tickover::workflow("family")]
async fn family(ctx: Ctx, _: u32) -> Result<()> {
    ctx.child(&failing_child, 1).id("child").policy(ParentClosePolicy::RequestCancel).await?;
    Ok(())
}

#[tickover::workflow("child")]
async fn failing_child(ctx: Ctx, _: u32) -> Result<()> {
    ctx.on_undo("letter", act_on("letter"));
    ctx.sleep("long", "30d").await?;
    Ok(())
}

#[tokio::test]
async fn a_child_that_its_parent_cancels_undoes_what_it_has_done() {
    let seen = Seen::default();
    let env = || TestEnv::new().workflow((family, failing_child)).state(Seen::clone(&seen));
    let story = async |env: &TestEnv| {
        seen.lock().unwrap().clear();
        let run = env.start(&family, 1).await.unwrap();
        env.advance("10m").await.unwrap();
        run.cancel().await.unwrap();
        env.advance("5m").await.unwrap();
        (status(&run).await, seen_by(&seen))
    };
    let (status, calls) = with_each_death(env, story).await;
    assert_eq!((status.as_str(), calls), ("cancelled", vec!["letter".to_owned()]));
}

#[tokio::test]
async fn an_undo_step_that_failed_for_good_can_be_tried_again() {
    let seen = Seen::default();
    let env = TestEnv::new().workflow(journey).step::<act>().state(Seen::clone(&seen));
    let run = env.start(&journey, "flight".to_owned()).await.unwrap();
    env.advance("1h").await.unwrap();
    run.cancel().await.unwrap();
    assert_eq!(status(&run).await, "cancelled");
    seen.lock().unwrap().clear();
    run.retry_step("undo:seat").await.unwrap();
    assert_eq!(status(&run).await, "cancelled");
    assert_eq!(seen_by(&seen), ["bad-seat", "told-flight"]);
    assert!(run.retry_step("room").await.is_err());
}
