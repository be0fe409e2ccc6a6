//! What must hold of concurrency limits: no key has more leases that run than its limit, nor more places taken.

use std::collections::BTreeMap;

use tickover_core::gate::Gate;
use tickover_core::id::{Fingerprint, Owner};
use tickover_core::time::Timestamp;

use crate::Run;
use crate::ledger::NotedGate;
use crate::violation::{Invariant, Violation};

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let mut found = leases_within_the_limit(run);
    found.extend(places_within_the_limit(run));
    found
}

/// A task's lease or an execution's places, and the keys for which it counts.
struct Lease {
    /// Absent for an execution: its places end with it.
    until: Option<Timestamp>,
    keys: Vec<(Fingerprint, u16)>,
}

/// Counts the leases of tasks and the executions that have begun, for each key, in every state of their own records.
fn leases_within_the_limit(run: &Run) -> Vec<Violation> {
    let mut leases: BTreeMap<Owner, Lease> = BTreeMap::new();
    let mut found = vec![];
    for event in &run.events {
        let (owner, gates, runs) = if let Some(change) = event.what.task_change() {
            let task = &change.after;
            let until = task.running().map(|running| Some(running.lease_expires_at));
            (Owner::Task(task.id.clone()), task.gates(), until)
        } else if let Some(change) = event.what.execution_change() {
            let execution = &change.after;
            let has_places = execution.admission.as_deref().is_some_and(|admission| admission.held.is_some());
            let has_begun = execution.closed().is_none() && (has_places || execution.turn().is_some());
            (Owner::Execution(execution.id.clone()), execution.gates(), has_begun.then_some(None))
        } else {
            continue;
        };
        let keys: Vec<_> = gates.iter().map(|gated| (gated.key, gated.limit.get())).collect();
        match runs.filter(|_| !keys.is_empty()) {
            Some(until) => drop(leases.insert(owner.clone(), Lease { until, keys: keys.clone() })),
            None => drop(leases.remove(&owner)),
        }
        for (key, limit) in keys {
            let runs = |lease: &&Lease| {
                lease.until.is_none_or(|until| until > event.at)
                    && lease.keys.iter().any(|(one, _)| *one == key)
            };
            let count = leases.values().filter(runs).count();
            if count > usize::from(limit) {
                let what = format!("{count} run for a key whose limit is {limit}, among them {owner}");
                found.push(Violation::new(Invariant::Limits, event.at, what));
            }
        }
    }
    found
}

pub(super) fn taken(gate: &Gate, now: Timestamp) -> usize {
    gate.holders.iter().filter(|one| one.until > now).count()
}

fn places_within_the_limit(run: &Run) -> Vec<Violation> {
    let gates = run.world.ledger.gates();
    let over = gates.iter().filter_map(|NotedGate { at, gate, .. }| {
        let limit = usize::from(gate.limit()?.get());
        let count = taken(gate, *at);
        let what = format!("gate {} has {count} places taken, and its limit is {limit}", gate.id);
        (count > limit).then(|| Violation::new(Invariant::Limits, *at, what))
    });
    over.collect()
}
