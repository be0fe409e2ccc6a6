//! What must hold of concurrency limits: no key has more leases that run than its limit, nor more places taken, and
//! nobody waits for long while a place is free.

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::gate::Gate;
use tickover_core::id::{Fingerprint, GateId, Owner};
use tickover_core::time::Timestamp;

use crate::sim::Run;
use crate::sim::ledger::NotedGate;
use crate::sim::violation::{Invariant, Violation};

/// In fair weather, the next one is called in the write that frees the place; a call of the store takes no longer.
const FAIR: Millis = Millis::from_secs(1);
/// After the faults: until the tick comes to the gate, once more if its process dies, and the time of its clock.
const FOUND_WITHIN: Millis = Millis::from_secs(5 * 60);

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let mut found = leases_within_the_limit(run);
    found.extend(places_within_the_limit(run));
    found.extend(nobody_waits_at_a_free_place(run));
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

fn taken(gate: &Gate, now: Timestamp) -> usize {
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

/// From the instant at which a place is free while somebody waits, until the gate's next record in which that isn't so.
fn nobody_waits_at_a_free_place(run: &Run) -> Vec<Violation> {
    let mut by_gate: BTreeMap<GateId, Vec<(Timestamp, Gate)>> = BTreeMap::new();
    for NotedGate { at, gate, .. } in run.world.ledger.gates() {
        by_gate.entry(gate.id.clone()).or_default().push((at, gate));
    }
    let mut found = vec![];
    for records in by_gate.values() {
        let mut since: Option<Timestamp> = None;
        let ends = records.iter().skip(1).map(|(at, _)| *at).chain([run.ended_at]);
        for ((at, gate), end) in records.iter().zip(ends) {
            let Some(limit) = gate.limit() else { continue };
            let waits = !gate.waiters.is_empty() || gate.overflow;
            let ends = gate.holders.iter().map(|one| one.until);
            let free_at = [*at].into_iter().chain(ends).filter(|free_at| *free_at >= *at);
            let free_at = free_at.filter(|free_at| taken(gate, *free_at) < usize::from(limit.get())).min();
            match free_at.filter(|free_at| waits && *free_at < end) {
                Some(free_at) => {
                    let began = *since.get_or_insert(free_at);
                    // While calls fail, nobody can be called.
                    let counts_from = began.max(run.plan.faults_until);
                    // A place that ended by itself is found by the tick, also one that ended while the record was on its
                    // way.
                    let is_given_up = run.plan.is_fair() && gate.holders.len() < usize::from(limit.get());
                    let (from, allowed) =
                        if is_given_up { (began, FAIR) } else { (counts_from, FOUND_WITHIN) };
                    if end.since(from) > allowed {
                        let what = format!("tasks wait at gate {} while a place is free", gate.id);
                        found.push(Violation::new(Invariant::Limits, began, what));
                    }
                }
                None => since = None,
            }
        }
    }
    found
}
