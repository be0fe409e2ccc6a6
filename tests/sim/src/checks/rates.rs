//! What must hold of rates: in no span of time start more tasks and executions of a key than its burst and its rate
//! allow.

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::flow::{Pace, Paced};
use tickover_core::id::{Fingerprint, LeaseId};
use tickover_core::time::Timestamp;

use crate::Run;
use crate::violation::{Invariant, Violation};

/// How much later than its reserved instant an attempt may start: 5 s, and 25 s more for the calls of its claim, which
/// are slow here.
const LATE: Millis = Millis::from_secs(30);

/// Counts every lease as a start, at the instant at which its claim was decided: clocks differ, but a reserved instant is
/// the same for all of them.
pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let mut starts: BTreeMap<Fingerprint, (Pace, BTreeMap<LeaseId, Timestamp>)> = BTreeMap::new();
    for event in &run.events {
        let (paced, lease, claimed_at) = if let Some(change) = event.what.task_change() {
            let (Some(paced), Some(running)) = (change.after.paced(), change.after.running()) else {
                continue;
            };
            (paced, running.lease, running.claimed_at)
        } else if let Some(change) = event.what.execution_change() {
            // Its first turn: the record before it has the rate.
            let before =
                change.before.as_ref().and_then(|before| before.admission.as_deref()?.paced.as_ref());
            let (Some(paced), Some(turn)) = (before, change.after.turn()) else { continue };
            (paced, turn.lease, turn.claimed_at)
        } else {
            continue;
        };
        let Paced { key, pace, .. } = paced;
        let (_, of_key) = starts.entry(*key).or_insert_with(|| (*pace, BTreeMap::new()));
        of_key.entry(lease).or_insert(claimed_at);
    }
    starts
        .into_values()
        .filter_map(|(pace, starts)| too_dense(&pace, starts.into_values().collect()))
        .collect()
}

fn too_dense(pace: &Pace, mut starts: Vec<Timestamp>) -> Option<Violation> {
    starts.sort_unstable();
    for (first, from) in starts.iter().enumerate() {
        for (last, until) in starts.iter().enumerate().skip(first) {
            // An instant is rounded up to a whole millisecond.
            let span = u128::from(until.plus(LATE).since(*from).as_u64()) + 1;
            let by_rate = span * u128::from(pace.limit.get()) / u128::from(pace.per.as_u64());
            let allowed = by_rate + u128::from(pace.burst.get());
            let count = last - first + 1;
            if count as u128 > allowed {
                let what = format!("{count} starts in {span} ms, by a rate that allows {allowed}: {pace:?}");
                return Some(Violation::new(Invariant::Rates, *until, what));
            }
        }
    }
    None
}
