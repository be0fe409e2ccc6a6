//! Timeouts over all attempts: they are recorded before their step runs, so they don't begin again if the worker is lost.

use std::pin::pin;

use tickover::prelude::*;
use tickover::{Failure, Registry};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_core::limits::Limits;

use crate::fencing::{run_for, version};
use crate::scene::{Count, Scene, clock, settings};

static RUNS: Count = Count::new();

/// Takes longer than its timeout.
#[tickover::step]
async fn endless() -> Result<(), Failure> {
    RUNS.add();
    clock().after(Millis::from_secs(1_000)).await;
    Ok(())
}

#[tickover::workflow("durable")]
async fn durable(ctx: Ctx, scope: String) -> Result<String> {
    let scope = if scope == "global" { Scope::Global } else { Scope::PerAttempt };
    let step = endless().timeout("30s").scope(scope);
    Ok(ctx.step(step).await.unwrap_err().to_string())
}

/// Freezes a worker in the step, with a lease of one minute. Returns when the execution ended, in ms, and how often the
/// step ran.
async fn freeze(scope: &str, limits: Limits) -> (u64, u32) {
    let scene = Scene::with_limits(limits);
    let frozen = scene.worker(Registry::new().with(durable));
    let other = scene.worker(Registry::new().with(durable));
    scene.start(&durable, "durable", &scope.to_owned()).await;
    let before = RUNS.get();
    let mut frozen = pin!(frozen.run(std::future::pending()));
    run_for(&scene, &mut frozen, Millis::from_secs(5)).await;
    let ended = scene.inside(scene.finish(&other, "durable")).await;
    assert!(ended.output::<String>().contains("timed out"));
    let timed_out = |what: &Happened| matches!(what, Happened::Step { outcome: StepOutcome::TimedOut, .. });
    assert_eq!(ended.count(timed_out), 1);
    let runs = RUNS.get() - before;
    // When the frozen worker thaws, it overwrites nothing.
    let version_before = version(&scene, "durable").await;
    run_for(&scene, &mut frozen, Millis::from_secs(60)).await;
    assert_eq!(version(&scene, "durable").await, version_before);
    (ended.took(), runs)
}

#[tokio::test]
async fn a_timeout_over_all_attempts_ends_a_step_whose_worker_is_frozen() {
    // All cases are in one test because they share the counter `RUNS`.
    let (took, runs) = freeze("global", Limits::default()).await;
    assert!((30_000..32_500).contains(&took), "{took} ms");
    assert_eq!(runs, 1);
    // Where each move in the due index costs write units, it ends with the lease. The step doesn't run again either.
    let limits = Limits { short_lease: Millis::from_secs(60), ..Limits::default() };
    let (took, runs) = freeze("global", limits.clone()).await;
    assert!((60_000..62_500).contains(&took), "{took} ms");
    assert_eq!(runs, 1);
    // A timeout of each attempt begins again, because the attempt does.
    for limits in [Limits::default(), limits] {
        let (took, runs) = freeze("per attempt", limits).await;
        assert!((90_000..93_000).contains(&took), "{took} ms");
        assert_eq!(runs, 2);
    }
}

/// Takes four minutes in its first attempt, which then fails, and longer than its timeout in the next ones.
#[tickover::step(timeout = "5m", retry = "fixed(9, 1s)")]
async fn charged() -> Result<(), Failure> {
    clock().after(Millis::from_secs(100_000)).await;
    Ok(())
}

#[tickover::workflow("window")]
async fn window(ctx: Ctx, (): ()) -> Result<u64> {
    let begun = ctx.now("begun").await?;
    let error = ctx.step(charged()).await.unwrap_err();
    assert!(matches!(error, StepError::TimedOut { expired: Some(_), .. }), "{error}");
    Ok(ctx.now("ended").await?.since(begun).as_u64())
}

#[tokio::test]
async fn no_steps_window_is_longer_than_its_timeout_whenever_its_worker_dies() {
    let lease = settings().lease;
    for limits in [Limits::default(), Limits { short_lease: lease, ..Limits::default() }] {
        for seconds in [1, 19, 21, 100, 239, 240, 241, 270, 299] {
            let scene = Scene::with_limits(limits.clone());
            let registry = || Registry::new().with(window);
            scene.start(&window, "w", &()).await;
            scene.inside(scene.pass(&scene.worker(registry()), Millis::from_secs(seconds))).await;
            let ended = scene.inside(scene.finish(&scene.worker(registry()), "w")).await;
            let took = ended.output::<u64>();
            // Its worker dies at most one lease before the timeout is noticed.
            let late = Millis::new(took.saturating_sub(300_000));
            let bound = if limits.short_lease == Millis::ZERO { Millis::new(2_500) } else { lease };
            assert!(took >= 300_000 && late <= bound, "after {seconds} s: {took} ms");
            let started =
                |what: &Happened| matches!(what, Happened::Attempt { error: None, is_ongoing: false, .. });
            assert!((1..=2).contains(&ended.count(started)), "after {seconds} s");
        }
    }
}

/// Takes longer than its timeout. Its runs aren't counted.
#[tickover::step]
async fn too_long() -> Result<(), Failure> {
    clock().after(Millis::from_secs(1_000)).await;
    Ok(())
}

/// Fails once, and is soon tried again.
#[tickover::step(retry = "fixed(1, 4s)")]
async fn flaky() -> Result<(), Failure> {
    clock().after(Millis::from_secs(1)).await;
    match step_info().map(|info| info.attempt) {
        Some(1) => Err(Failure::new("flaky", "once more")),
        _ => Ok(()),
    }
}

#[tickover::workflow("durable-beside")]
async fn durable_beside(ctx: Ctx, (): ()) -> Result<String> {
    let limited = ctx.step(too_long().timeout("2s").at_most_once());
    let (limited, flaky) = futures::join!(limited, ctx.step(flaky()));
    flaky?;
    Ok(limited.unwrap_err().to_string())
}

#[tokio::test]
async fn an_outcome_is_written_before_another_steps_retry_is_waited_for() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(durable_beside));
    scene.start(&durable_beside, "beside", &()).await;
    let ended = scene.inside(scene.finish(&worker, "beside")).await;
    // The tick finds the timeout already recorded, and leaves the turn to its worker.
    assert!(ended.output::<String>().contains("timed out"), "{}", ended.output::<String>());
    assert_eq!(ended.took(), 6_000);
}

/// How many steps run side by side.
const MANY: u64 = 20;

/// Ends after five seconds, or takes longer than its timeout.
#[tickover::step]
async fn one_of_many(ends: bool) -> Result<(), Failure> {
    clock().after(Millis::from_secs(if ends { 5 } else { 100_000 })).await;
    Ok(())
}

/// Starts all steps side by side. The first `that_end` of them end. Each step's timeout is one second longer than that
/// of the step before.
#[tickover::workflow("durable-many")]
async fn durable_many(ctx: Ctx, that_end: u64) -> Result<usize> {
    let steps = (0..MANY).map(|index| one_of_many(index < that_end).timeout(Millis::from_secs(10 + index)));
    Ok(ctx.join_all_settled("one", steps).await.failed().count())
}

#[tokio::test]
async fn each_of_twenty_timeouts_fires_in_time_whichever_steps_have_ended() {
    for that_end in [0, 1, 3, 4, 5, 11, 19] {
        let scene = Scene::new();
        let registry = || Registry::new().with(durable_many);
        // The lease is so long that its expiry would be noticed only after an hour.
        let settings =
            tickover::WorkerSettings { lease: Millis::from_secs(3_600), ..crate::scene::settings() };
        let frozen = tickover::Worker::new(scene.service.clone(), registry(), settings).unwrap();
        let other = scene.worker(registry());
        scene.start(&durable_many, "many", &that_end).await;
        let mut frozen = pin!(frozen.run(std::future::pending()));
        run_for(&scene, &mut frozen, Millis::from_secs(6)).await;
        let ended = scene.inside(scene.finish(&other, "many")).await;
        assert_eq!(u64::from(ended.output::<u32>()), MANY - that_end);
        let timed_out = ended
            .journal
            .iter()
            .find(|entry| matches!(&entry.what, Happened::Step { outcome: StepOutcome::TimedOut, .. }));
        let first_at = crate::scene::START.plus(Millis::from_secs(10 + that_end));
        let late = timed_out.unwrap().at.since(first_at);
        assert!(late <= Millis::new(2_500), "with {that_end} ended before: {late} late");
    }
}
