//! Runs the SDK's own worker with the example workflows.

use std::sync::Arc;

use tickover::{Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::id::WorkerName;

use crate::sim::flows::outside::Way;
use crate::sim::flows::registry;
use crate::sim::process::Process;

/// Works for as long as the world lasts. While it storms, a worker is told to stop now and then, and another one is
/// started in its process.
pub async fn engine(process: Process) {
    let (service, call) = process.observed();
    let way = Way::new(Arc::clone(&process.gate), call);
    // What it can't work with would show in all runs: nothing would end.
    while let Ok(worker) = Worker::new(service.clone(), registry(), settings(&process)) {
        let working = way.clone().scope(worker.run(told_to_stop(&process)));
        // What is polled how often at a time must not depend on what tokio takes for a fair share.
        tokio::task::unconstrained(working).await;
        process.sleep(process.gate.dice.millis(0, 20_000)).await;
    }
}

fn settings(process: &Process) -> WorkerSettings {
    let dice = &process.gate.dice;
    // Where calls merely take their time, a worker that is alive keeps its lease.
    let lease = dice.pick([10, 20, 60]);
    let lease = if process.world.faults().is_fair() { 60 } else { lease };
    WorkerSettings {
        name: WorkerName::parse(process.gate.actor.to_string()).ok(),
        concurrency: dice.pick([1, 2, 10]),
        batch: dice.pick([1, 3, 10]),
        wait: Millis::from_secs(dice.pick([10, 20])),
        lease: Millis::from_secs(lease),
        grace: Millis::from_secs(dice.pick([1, 20])),
        in_place: Millis::from_secs(dice.pick([0, 5, 15])),
        ..WorkerSettings::default()
    }
}

/// A deployment, where anything goes wrong at all.
async fn told_to_stop(process: &Process) {
    if !process.world.is_stormy() || process.world.faults().is_fair() {
        return std::future::pending().await;
    }
    process.sleep(process.gate.dice.secs(20, 900)).await;
}
