//! Timeouts that are written down before their step runs: they pass in time though nobody is left to see to them.

use std::pin::pin;

use tickover::prelude::*;
use tickover::{Failure, Registry};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, StepOutcome};

use crate::fencing::{lend, version};
use crate::scene::{Count, Scene, clock};

static RUNS: Count = Count::new();

/// Takes longer than it may.
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

/// Has a worker frozen in the step, with a lease of a minute, and gives when the execution had ended, in ms.
async fn freeze(scope: &str) -> u64 {
    let scene = Scene::new();
    let frozen = scene.worker(Registry::new().with(durable));
    let other = scene.worker(Registry::new().with(durable));
    scene.start(&durable, "durable", &scope.to_owned()).await;
    let before = RUNS.get();
    let mut frozen = pin!(frozen.run(std::future::pending()));
    lend(&scene, &mut frozen, Millis::from_secs(5)).await;
    let ended = scene.inside(scene.finish(&other, "durable")).await;
    assert!(ended.output::<String>().contains("timed out"));
    let timed_out = |what: &Happened| matches!(what, Happened::Step { outcome: StepOutcome::TimedOut, .. });
    assert_eq!(ended.count(timed_out), 1);
    // It ran once, and whoever thaws writes nothing over that.
    assert_eq!(RUNS.get() - before, 1);
    let version_before = version(&scene, "durable").await;
    lend(&scene, &mut frozen, Millis::from_secs(60)).await;
    assert_eq!(version(&scene, "durable").await, version_before);
    ended.took()
}

#[tokio::test]
async fn a_durable_timeout_passes_in_time_though_its_worker_is_frozen_and_its_lease_lasts() {
    // Nobody shares the count of runs: both in one test.
    for scope in ["global", "per attempt"] {
        let took = freeze(scope).await;
        assert!((30_000..32_500).contains(&took), "{scope}: {took} ms");
    }
}
