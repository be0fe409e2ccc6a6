//! What must hold of rates: in no span of time start more tasks and executions of a key than its burst and its rate
//! allow; who has come and was put off goes before others, and doesn't wait for starts that are reserved for later.

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::execution::Execution;
use tickover_core::flow::{Pace, Paced, Priority};
use tickover_core::gate::{Gate, Reservation};
use tickover_core::id::{Fingerprint, GateId, LeaseId};
use tickover_core::lane::Lane;
use tickover_core::task::Task;
use tickover_core::time::Timestamp;

use crate::Run;
use crate::history::{Event, What};
use crate::violation::{Invariant, Violation};

/// How much later than its reserved instant an attempt may start: 5 s, and 25 s more for the calls of its claim, which
/// are slow here.
const LATE: Millis = Millis::from_secs(30);

/// So long before the write of a record its start was reserved at most.
const MOMENT: Millis = Millis::from_secs(120);

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let mut found = starts_are_spread(run);
    found.extend(who_was_put_off_goes_first(run));
    found.extend(nobody_waits_for_tickets(run));
    found
}

/// A record that is there already, whose start was reserved by a worker that came for it.
struct PutOff {
    owner: String,
    paced: Paced,
    start: Reservation,
    lane: Lane,
}

fn put_off(what: &What) -> Option<PutOff> {
    let of_execution = |one: &Execution| one.admission.as_deref()?.paced.clone();
    let (owner, was, is, lane) = if let Some(change) = what.task_change() {
        let after = &change.after;
        let is_same = |before: &&Task| before.incarnation == after.incarnation && before.ended().is_none();
        let before = change.before.as_ref().filter(is_same)?;
        (after.id.to_string(), before.reserved(), after.paced().cloned()?, after.lane())
    } else {
        let change = what.execution_change()?;
        let after = &change.after;
        let is_same = |before: &&Execution| before.incarnation == after.incarnation;
        let before = change.before.as_ref().filter(is_same)?;
        (after.id.to_string(), of_execution(before)?.start, of_execution(after)?, after.lane())
    };
    let start = is.start.filter(|start| was != Some(*start))?;
    Some(PutOff { owner, paced: is, start, lane })
}

fn who_was_put_off_goes_first(run: &Run) -> Vec<Violation> {
    let of_event = |event: &Event| {
        let PutOff { owner, lane, .. } = put_off(&event.what)?;
        let what = format!("{owner} was put off, and waits behind others: {lane:?}");
        (lane.priority != Priority::High).then(|| Violation::new(Invariant::Rates, event.at, what))
    };
    run.events.iter().filter_map(of_event).collect()
}

/// By the record of the key as it was, whoever came had to wait for the starts of those who had come before, and for that of
/// the first ticket: not for all that are reserved for later.
fn nobody_waits_for_tickets(run: &Run) -> Vec<Violation> {
    let mut gates = run.world.ledger.gates().into_iter().peekable();
    let mut known: BTreeMap<GateId, Vec<(Timestamp, Gate)>> = BTreeMap::new();
    let mut found = vec![];
    for (number, event) in run.events.iter().enumerate() {
        while let Some(noted) = gates.next_if(|noted| noted.number <= number) {
            known.entry(noted.gate.id.clone()).or_default().push((noted.at, noted.gate));
        }
        let Some(PutOff { owner, paced, start, .. }) = put_off(&event.what) else { continue };
        // The write of the key was a moment ago: the record before it is one of these.
        let of_key = known.get(&GateId::from(&paced.key)).map_or(&[][..], Vec::as_slice);
        let recent = of_key.iter().rev().take_while(|(at, _)| at.plus(MOMENT) >= event.at).count();
        let before = of_key.iter().rev().take(recent + 1).map(|(_, gate)| first_start(gate, event.at));
        let bound = before.max().unwrap_or(event.at.plus(step(&paced.pace)));
        if start.start_at > bound {
            let what = format!("{owner} was put off to {:?}, and {bound:?} was possible", start.start_at);
            found.push(Violation::new(Invariant::Rates, event.at, what));
        }
    }
    found
}

/// No start that is reserved by whoever comes now needs to be later, with some steps for what others do meanwhile.
fn first_start(gate: &Gate, now: Timestamp) -> Timestamp {
    let (Some(pace), Some(rate)) = (gate.pace, &gate.rate) else { return now };
    let steps = |count: u64| Millis::new(step(&pace).as_u64() * count);
    rate.base_at.plus(steps(rate.between)).max(now.plus(steps(u64::from(pace.burst.get())))).plus(steps(5))
}

fn step(pace: &Pace) -> Millis {
    Millis::new(pace.per.as_u64().div_ceil(u64::from(pace.limit.get())))
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
