//! Durable timeouts: they are recorded before their step runs, so they fire in time even if the worker is lost.

use std::pin::pin;

use tickover::prelude::*;
use tickover::{Failure, Registry};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, StepOutcome};

use crate::fencing::{run_for, version};
use crate::scene::{Count, Scene, clock};

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
    let step = endless().timeout("30s").scope(scope).durable_timeout();
    Ok(ctx.step(step).await.unwrap_err().to_string())
}

/// Freezes a worker in the step, with a lease of one minute. Returns when the execution ended, in ms.
async fn freeze(scope: &str) -> u64 {
    let scene = Scene::new();
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
    // The step ran once. When the frozen worker thaws, it overwrites nothing.
    assert_eq!(RUNS.get() - before, 1);
    let version_before = version(&scene, "durable").await;
    run_for(&scene, &mut frozen, Millis::from_secs(60)).await;
    assert_eq!(version(&scene, "durable").await, version_before);
    ended.took()
}

#[tokio::test]
async fn a_durable_timeout_fires_in_time_although_its_worker_is_frozen_and_its_lease_is_valid() {
    // Both cases are in one test because they share the counter `RUNS`.
    for scope in ["global", "per attempt"] {
        let took = freeze(scope).await;
        assert!((30_000..32_500).contains(&took), "{scope}: {took} ms");
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
    let steps = (0..MANY)
        .map(|index| one_of_many(index < that_end).timeout(Millis::from_secs(10 + index)).durable_timeout());
    Ok(ctx.join_all_settled("one", steps).await.failed().count())
}

#[tokio::test]
async fn each_of_twenty_durable_timeouts_fires_in_time_whichever_steps_have_ended() {
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
