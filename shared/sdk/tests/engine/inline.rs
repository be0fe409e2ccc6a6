//! Inline steps: attempts, timeouts, and which writes happen when.

use std::sync::{Arc, Mutex};

use tickover::client::Rerun;
use tickover::prelude::*;
use tickover::test::TestEnv;
use tickover::{Failure, Registry, StepInfo};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::Happened;

use crate::scene::{Count, Scene, clock, shown};

#[tickover::step]
async fn add_one(number: u32) -> Result<u32, Failure> {
    Ok(number + 1)
}

#[tickover::workflow("five")]
async fn five(ctx: Ctx, mut number: u32) -> Result<u32> {
    for index in 0..5 {
        number = ctx.step(add_one(number).named(format!("add[{index}]"))).await?;
    }
    Ok(number)
}

#[tokio::test]
async fn five_steps_in_a_row_cost_four_records_and_the_close_writes_the_last_result() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(five));
    scene.start(&five, "five", &0).await;
    let ended = scene.finish(&worker, "five").await;
    assert_eq!(ended.output::<u32>(), 5);
    // One write for the start, one for the claim, one for the close.
    assert_eq!(ended.described.execution.version, 3 + 4);
}

#[tickover::step]
async fn add_two(number: u32) -> Result<u32> {
    // This calls the step as a plain function, outside of a workflow.
    let added = add_one(number).await.map_err(|error| error.to_string());
    let outside = tokio::spawn(async { add_one(1).await.map_err(|error| error.to_string()) }).await;
    match (added, outside) {
        (Err(inside), Ok(Err(outside))) if inside == outside => Err(Error::new("told", inside)),
        other => Err(Error::new("odd", format!("{other:?}"))),
    }
}

#[tickover::workflow("awaited")]
async fn awaited(_: Ctx, number: u32) -> Result<(u32, String)> {
    let added = add_one(number).await?;
    let both = tokio::join!(add_one(added).named("left").into_future(), async {
        add_one(added).named("right").await
    });
    let told = add_two(added).retry("none").await.unwrap_err();
    Ok((both.0? + both.1?, told.to_string()))
}

#[tokio::test]
async fn an_awaited_step_uses_the_context_of_the_surrounding_workflow() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(awaited));
    scene.start(&awaited, "awaited", &1).await;
    let ended = scene.finish(&worker, "awaited").await;
    let (sum, told) = ended.output::<(u32, String)>();
    assert_eq!(sum, 6);
    assert!(told.contains("only a workflow's own code can await a step"), "{told}");
    let names = ended.journal.iter().filter_map(|entry| match &entry.what {
        Happened::Step { name, .. } => Some(name.as_str()),
        _ => None,
    });
    assert_eq!(names.collect::<Vec<_>>(), ["add_one", "left", "right", "add_two"]);
}

static FLAKY: Count = Count::new();

/// Fails twice.
#[tickover::step]
async fn flaky() -> Result<u32, Failure> {
    match FLAKY.add() {
        0 | 1 => Err(Failure::new("net", "down")),
        times => Ok(times),
    }
}

#[tickover::workflow("short-backoff")]
async fn short_backoff(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(flaky().retry("fixed(3, 2s)")).await?)
}

#[tokio::test]
async fn the_worker_waits_for_short_backoffs() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(short_backoff));
    scene.start(&short_backoff, "short", &()).await;
    let ended = scene.finish(&worker, "short").await;
    assert_eq!(ended.output::<u32>(), 2);
    assert_eq!(ended.took(), 4_000);
    assert_eq!(ended.count(|what| matches!(what, Happened::Attempt { .. })), 0);
    assert_eq!(ended.count(|what| matches!(what, Happened::Step { attempts: Some(3), .. })), 1);
}

static RARE: Count = Count::new();

#[tickover::step(retry = "fixed(3, 1h)")]
async fn rare() -> Result<u32, Failure> {
    if RARE.add() == 0 { Err(Failure::new("net", "down")) } else { Ok(1) }
}

#[tickover::workflow("long-backoff")]
async fn long_backoff(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(rare()).await?)
}

#[tokio::test]
async fn long_backoffs_suspend_the_turn_and_attempts_are_recorded() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(long_backoff));
    scene.start(&long_backoff, "long", &()).await;
    scene.pass(&worker, Millis::from_secs(60)).await;
    assert_eq!(scene.status("long").await.as_str(), "waiting");
    let ended = scene.finish(&worker, "long").await;
    assert_eq!(ended.output::<u32>(), 1);
    assert!((3_600_000..3_601_000).contains(&ended.took()), "{}", ended.took());
    assert_eq!(ended.count(|what| matches!(what, Happened::Attempt { attempt: 1, .. })), 1);
    assert_eq!(ended.count(|what| matches!(what, Happened::Step { attempts: Some(2), .. })), 1);
}

#[derive(Debug, serde::Serialize, serde::Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
enum PaymentError {
    #[error("declined for {0}")]
    Declined(String),
    #[error("the bank is away")]
    Away,
}

#[tickover::step]
async fn pay(amount: u32) -> Result<u32, PaymentError> {
    match amount {
        0 => Err(PaymentError::Away),
        1 => Err(PaymentError::Declined("lack of funds".to_owned())),
        amount => Ok(amount),
    }
}

#[tickover::workflow("outcomes")]
async fn outcomes(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    let mut seen = Vec::new();
    let mut see = |outcome: Result<u32, StepError<PaymentError>>| {
        seen.push(match outcome {
            Ok(amount) => format!("paid {amount}"),
            Err(StepError::Failed { error: PaymentError::Declined(why), .. }) => format!("declined: {why}"),
            Err(StepError::RetryExhausted { attempts, last_error: PaymentError::Away, .. }) => {
                format!("away {attempts} times")
            }
            Err(other) => format!("unexpected: {other}"),
        });
    };
    let policy = || tickover::RetryPolicy::fixed(2, Millis::from_secs(1));
    see(ctx.step(pay(5).named("a").retry(policy())).await);
    see(ctx.step(pay(1).named("b")).await);
    see(ctx.step(pay(1).named("c").retry(policy()).non_retryable(["declined"])).await);
    see(ctx.step(pay(0).named("d").retry(policy())).await);
    see(ctx.step(pay(1).named("e")).await.or_value(7));
    // A replay sees the same errors.
    ctx.sleep("s", "1h").await?;
    Ok(seen)
}

#[tokio::test]
async fn a_step_ends_in_one_of_three_ways_and_replays_return_the_same() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(outcomes));
    scene.start(&outcomes, "outcomes", &()).await;
    let ended = scene.finish(&worker, "outcomes").await;
    let expected = ["paid 5", "declined: lack of funds", "declined: lack of funds", "away 3 times", "paid 7"];
    assert_eq!(ended.output::<Vec<String>>(), expected);
}

static HANGING: Count = Count::new();

#[tickover::step]
async fn hang(seconds: u64) -> Result<(), Failure> {
    HANGING.add();
    clock().after(Millis::from_secs(seconds)).await;
    Ok(())
}

#[tickover::step]
async fn fail_after(seconds: u64) -> Result<(), Failure> {
    clock().after(Millis::from_secs(seconds)).await;
    Err(Failure::new("slow", "and bad"))
}

#[tickover::workflow("timeouts")]
async fn timeouts(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    let mut seen = Vec::new();
    let hung = ctx.step(hang(100).timeout("30s")).await;
    seen.push(format!("{} {}", ctx.now("t1").await?.as_millis() / 1000 % 86_400, shown(hung)));
    // 20 s, a wait of 2 s, and then only 8 s more.
    let shared = ctx.step(fail_after(20).named("shared").timeout("30s").retry("fixed(5, 2s)")).await;
    seen.push(format!("{} {}", ctx.now("t2").await?.as_millis() / 1000 % 86_400, shown(shared)));
    let each = fail_after(20).named("each").timeout("30s").scope(Scope::PerAttempt).retry("fixed(2, 2s)");
    let each = ctx.step(each).await;
    seen.push(format!("{} {}", ctx.now("t3").await?.as_millis() / 1000 % 86_400, each.is_err()));
    // The second attempt would start after the timeout.
    let doomed = ctx.step(fail_after(20).named("doomed").timeout("30s").retry("fixed(5, 10s)")).await;
    seen.push(format!("{} {}", ctx.now("t4").await?.as_millis() / 1000 % 86_400, shown(doomed)));
    Ok(seen)
}

#[tokio::test]
async fn timeouts_apply_to_all_attempts_or_to_each_and_a_doomed_retry_fails_at_once() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(timeouts));
    scene.start(&timeouts, "timeouts", &()).await;
    let ended = scene.inside(scene.finish(&worker, "timeouts")).await;
    let seen = ended.output::<Vec<String>>();
    let timed_out = |at: u64, name: &str| format!("{at} {name} timed out: schedule_to_close");
    assert_eq!(seen[0], timed_out(30, "hang"));
    assert_eq!(seen[1], timed_out(60, "shared"));
    assert_eq!(seen[2], format!("{} true", 60 + 3 * 20 + 2 * 2));
    assert_eq!(seen[3], timed_out(124 + 20, "doomed"));
    assert_eq!(HANGING.get(), 1);
}

static PANICS: Count = Count::new();

#[tickover::step(retry = "fixed(1, 1s)")]
async fn shaky() -> Result<u32, Failure> {
    assert!(PANICS.add() > 0, "the first time");
    Ok(1)
}

#[tickover::step]
async fn broken() -> Result<u32, PaymentError> {
    panic!("always")
}

#[tickover::workflow("panics")]
async fn panics(ctx: Ctx, (): ()) -> Result<String> {
    ctx.step(shaky()).await?;
    let Err(error) = ctx.step(broken()).await else { return Ok("it worked".to_owned()) };
    Ok(format!("{error:?}"))
}

#[tokio::test]
async fn a_panic_in_a_step_is_a_failed_attempt() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(panics));
    scene.start(&panics, "panics", &()).await;
    let seen = scene.finish(&worker, "panics").await.output::<String>();
    assert!(seen.starts_with("Broken") && seen.contains("panic") && seen.contains("always"), "{seen}");
}

static INFOS: Mutex<Vec<StepInfo>> = Mutex::new(Vec::new());

#[tickover::step(retry = "fixed(1, 1s)")]
async fn curious(name: String) -> Result<(), Failure> {
    let Some(info) = step_info() else { return Err(Failure::new("none", "no info")) };
    let first = info.attempt == 1;
    INFOS.lock().unwrap().push(info);
    if first { Err(Failure::new("first", name)) } else { Ok(()) }
}

#[tickover::workflow("infos")]
async fn infos(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step(curious("x".to_owned()).named("one")).await?;
    ctx.step(curious("y".to_owned()).named("two")).await?;
    Ok(())
}

#[tokio::test]
async fn a_step_knows_its_attempt_and_a_key_that_stays_the_same_over_attempts() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(infos));
    scene.start(&infos, "infos", &()).await;
    scene.finish(&worker, "infos").await.output::<()>();
    let told = INFOS.lock().unwrap().clone();
    let attempts: Vec<u32> = told.iter().map(|info| info.attempt).collect();
    assert_eq!(attempts, [1, 2, 1, 2]);
    assert_eq!(told[0].idempotency_key, told[1].idempotency_key);
    assert_ne!(told[1].idempotency_key, told[2].idempotency_key);
    assert_eq!((told[0].name.as_str(), told[2].name.as_str()), ("one", "two"));
}

#[tickover::step]
async fn slow(seconds: u64) -> Result<u64, Failure> {
    clock().after(Millis::from_secs(seconds)).await;
    Ok(seconds)
}

#[tickover::workflow("side-by-side")]
async fn side_by_side(ctx: Ctx, (): ()) -> Result<u64> {
    let (a, b) = futures::join!(ctx.step(slow(10).named("a")), ctx.step(slow(20).named("b")));
    let (c, d) = tokio::join!(ctx.step(slow(5).named("c")), ctx.sleep("d", "20s"));
    d?;
    Ok(a? + b? + c?)
}

#[tokio::test]
async fn futures_of_the_context_can_be_joined_in_any_way() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(side_by_side));
    scene.start(&side_by_side, "side", &()).await;
    let ended = scene.inside(scene.finish(&worker, "side")).await;
    assert_eq!(ended.output::<u64>(), 35);
    assert!((40_000..41_000).contains(&ended.took()), "{}", ended.took());
}

#[tickover::workflow("crowd")]
async fn crowd(ctx: Ctx, (): ()) -> Result<u64> {
    let sleeps = futures::future::join_all((0..50).map(|n| ctx.sleep(format!("nap[{n}]"), "1h")));
    let steps = futures::future::join_all((0..50).map(|n| ctx.step(slow(n).named(format!("slow[{n}]")))));
    let (sleeps, steps) = futures::join!(sleeps, steps);
    sleeps.into_iter().collect::<Result<Vec<()>>>()?;
    let mut sum = 0;
    for step in steps {
        sum += step?;
    }
    Ok(sum)
}

#[tokio::test]
async fn many_futures_in_their_own_executor_are_polled_and_suspended() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(crowd));
    scene.start(&crowd, "crowd", &()).await;
    scene.inside(scene.pass(&worker, Millis::from_secs(600))).await;
    assert_eq!(scene.status("crowd").await.as_str(), "waiting");
    let ended = scene.inside(scene.finish(&worker, "crowd")).await;
    assert_eq!(ended.output::<u64>(), 49 * 50 / 2);
}

static QUICK: Count = Count::new();

#[tickover::step]
async fn quick() -> Result<(), Failure> {
    QUICK.add();
    Ok(())
}

#[tickover::workflow("background")]
async fn background(ctx: Ctx, (): ()) -> Result<()> {
    let (a, b) = futures::join!(ctx.step(quick()), ctx.step(slow(100)));
    a?;
    b?;
    Ok(())
}

#[tokio::test]
async fn results_are_written_while_other_steps_run() {
    let scene = Scene::new();
    scene.start(&background, "background", &()).await;
    let first = scene.worker(Registry::new().with(background));
    // The worker is lost during the slow step.
    scene.inside(scene.pass(&first, Millis::from_secs(50))).await;
    let second = scene.worker(Registry::new().with(background));
    scene.inside(scene.finish(&second, "background")).await.output::<()>();
    assert_eq!(QUICK.get(), 1);
}

static ONCE: Count = Count::new();

#[tickover::step(at_most_once)]
async fn once() -> Result<(), Failure> {
    ONCE.add();
    clock().after(Millis::from_secs(100)).await;
    Ok(())
}

#[tickover::workflow("at-most-once")]
async fn at_most_once(ctx: Ctx, (): ()) -> Result<String> {
    let Err(error) = ctx.step(once()).await else { return Ok("it ran".to_owned()) };
    Ok(error.failure().code)
}

#[tokio::test]
async fn a_step_that_may_run_once_does_not_run_again_when_its_worker_is_lost() {
    let scene = Scene::new();
    scene.start(&at_most_once, "once", &()).await;
    let first = scene.worker(Registry::new().with(at_most_once));
    scene.inside(scene.pass(&first, Millis::from_secs(50))).await;
    let second = scene.worker(Registry::new().with(at_most_once));
    let ended = scene.inside(scene.finish(&second, "once")).await;
    assert_eq!(ended.output::<String>(), "interrupted");
    assert_eq!(ONCE.get(), 1);
}

#[tickover::workflow("bounded")]
async fn bounded(ctx: Ctx, (): ()) -> Result<String> {
    let step = slow(1_000).timeout("90s");
    Ok(ctx.step(step).await.unwrap_err().to_string())
}

#[tokio::test]
async fn a_timeout_counts_from_the_first_attempt_though_its_worker_was_lost() {
    let scene = Scene::new();
    scene.start(&bounded, "bounded", &()).await;
    let first = scene.worker(Registry::new().with(bounded));
    scene.inside(scene.pass(&first, Millis::from_secs(50))).await;
    let second = scene.worker(Registry::new().with(bounded));
    let ended = scene.inside(scene.finish(&second, "bounded")).await;
    assert!(ended.output::<String>().contains("timed out"));
    assert!((90_000..110_000).contains(&ended.took()), "{}", ended.took());
}

/// The idempotency keys of the calls, in their order.
type Keys = Arc<Mutex<Vec<String>>>;

#[tickover::step]
async fn pay_once(#[state] keys: &Keys, cents: u32) -> Result<u32, Failure> {
    let key = step_info().map(|info| info.idempotency_key).unwrap_or_default();
    let mut keys = keys.lock().map_err(|_| Failure::new("poisoned", ""))?;
    keys.push(key);
    // The first answer is lost.
    if keys.len() == 1 { Err(Failure::new("lost", "no answer")) } else { Ok(cents) }
}

#[tickover::workflow("purchase")]
async fn purchase(ctx: Ctx, cents: u32) -> Result<u32> {
    Ok(ctx.step(pay_once(cents)).await?)
}

#[tokio::test]
async fn a_step_that_is_repeated_because_it_failed_has_its_idempotency_key_again() {
    for (how, is_same) in [("failed", true), ("retry_step", true), ("named", false), ("all", false)] {
        let keys = Keys::default();
        let env = TestEnv::new().workflow(purchase).state(Keys::clone(&keys));
        let run = env.start(&purchase, 5).await.unwrap();
        run.result().await.unwrap_err();
        match how {
            "failed" => drop(run.rerun(Rerun::Failed).await.unwrap()),
            "retry_step" => drop(run.retry_step("pay_once").await.unwrap()),
            "named" => drop(run.rerun(Rerun::Steps(vec!["pay_once".to_owned()])).await.unwrap()),
            _ => drop(run.rerun(Rerun::All).await.unwrap()),
        }
        assert_eq!(run.result().await.unwrap(), 5);
        let keys = keys.lock().unwrap().clone();
        assert_eq!((keys.len(), keys[0] == keys[1]), (2, is_same), "{how}: {keys:?}");
    }
}
