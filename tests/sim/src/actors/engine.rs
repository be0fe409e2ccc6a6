//! Runs the SDK's own worker with the example workflows.

use std::sync::Arc;

use tickover::{Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::id::WorkerName;

use crate::flows::outside::OutsideConnection;
use crate::flows::registry;
use crate::process::Process;

/// Works until the run ends. During the fault phase, a worker is asked to stop now and then, and another one is started
/// in its process.
pub async fn engine(process: Process) {
    let (service, call) = process.observed();
    let way = OutsideConnection::new(Arc::clone(&process.gate), call);
    // An invalid configuration would be noticed in all runs: nothing would end.
    while let Ok(worker) = Worker::new(service.clone(), registry(), settings(&process)) {
        let working = way.clone().scope(worker.run(until_next_deployment(&process)));
        // The number of polls at a time must not depend on tokio's cooperative scheduling.
        tokio::task::unconstrained(working).await;
        process.sleep(process.gate.dice.millis(0, 20_000)).await;
    }
}

fn settings(process: &Process) -> WorkerSettings {
    let dice = &process.gate.dice;
    // Where calls only take time, a live worker keeps its lease.
    let lease = dice.pick([10, 20, 60]);
    let lease = if process.world.faults().is_fair() { 30 } else { lease };
    WorkerSettings {
        name: WorkerName::parse(process.gate.actor.to_string()).ok(),
        concurrency: dice.pick([1, 2, 10]),
        batch: dice.pick([1, 3, 10]),
        wait: Millis::from_secs(dice.pick([10, 20])),
        lease: Millis::from_secs(lease),
        grace: Millis::from_secs(dice.pick([1, 20])),
        in_place: Millis::from_secs(dice.pick([0, 5, 15])),
        kept_runs: dice.pick([0, 1, 1_000]),
        ..WorkerSettings::default()
    }
}

/// Waits until the next deployment stops the worker; without faults, there is none.
async fn until_next_deployment(process: &Process) {
    if !process.world.in_fault_phase() || process.world.faults().is_fair() {
        return std::future::pending().await;
    }
    process.sleep(process.gate.dice.secs(20, 900)).await;
}
