//! What must hold of rates: in no span of time start more tasks and executions of a key than its burst and its rate
//! allow, and who has come and was put off goes before others.

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::execution::Execution;
use tickover_core::flow::{Pace, Paced, Priority};
use tickover_core::id::{Fingerprint, LeaseId};
use tickover_core::task::Task;
use tickover_core::time::Timestamp;

use crate::Run;
use crate::violation::{Invariant, Violation};

/// How much later than its reserved instant an attempt may start: 5 s, and 25 s more for the calls of its claim, which
/// are slow here.
const LATE: Millis = Millis::from_secs(30);

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let mut found = starts_are_spread(run);
    found.extend(who_was_put_off_goes_first(run));
    found
}

/// A start that is reserved for a record which is there already was reserved by a worker that came for it.
fn who_was_put_off_goes_first(run: &Run) -> Vec<Violation> {
    let start_of = |one: &Execution| one.admission.as_deref()?.paced.as_ref()?.start;
    let mut found = vec![];
    for event in &run.events {
        let (owner, was, is, lane) = if let Some(change) = event.what.task_change() {
            let after = &change.after;
            let is_same =
                |before: &&Task| before.incarnation == after.incarnation && before.ended().is_none();
            let Some(before) = change.before.as_ref().filter(is_same) else { continue };
            (after.id.to_string(), before.reserved(), after.reserved(), after.lane())
        } else if let Some(change) = event.what.execution_change() {
            let after = &change.after;
            let is_same = |before: &&Execution| before.incarnation == after.incarnation;
            let Some(before) = change.before.as_ref().filter(is_same) else { continue };
            (after.id.to_string(), start_of(before), start_of(after), after.lane())
        } else {
            continue;
        };
        if is.is_some() && is != was && lane.priority != Priority::High {
            let what = format!("{owner} was put off, and waits behind others: {lane:?}");
            found.push(Violation::new(Invariant::Rates, event.at, what));
        }
    }
    found
}

/// Counts every lease as a start, at the instant at which its claim was decided: clocks differ, but a reserved instant is
/// the same for all of them.
fn starts_are_spread(run: &Run) -> Vec<Violation> {
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
