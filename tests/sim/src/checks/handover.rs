//! What must hold of the ticks' notes: each instant up to which a note says that timers were sent has its timer. The
//! next ticks skip those instants.

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::due::{Due, DueKind, SLEEP_PROBE};
use tickover_core::duration::Millis;
use tickover_core::id::{Incarnation, RecordId};
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;
use tickover_core::timer::Wake;

use crate::Run;
use crate::fault_plan::{LAG, SKEW};
use crate::history::{Actor, Event, Fate, Fault, Note, Stored, What};
use crate::trace::clock;
use crate::violation::{Invariant, Violation};

/// A tick may have read the index this long before it wrote its note.
const TICK_MAX: Millis = Millis::from_secs(60);

/// A hint for an instant that is further ahead is that of a long sleep.
const SLOT_BEGINS: Millis = Millis::from_secs(30);
/// Ticks that may send one hint: those that die, or can't write their note, and the next one.
const REPEATED_MAX: u32 = 3;

/// A record's due slot, and for how long it had it.
struct Stay<'a> {
    record: RecordId,
    incarnation: Incarnation,
    since: Timestamp,
    until: Timestamp,
    due: &'a Due,
}

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let mut found = repeated(run);
    let noted = run.world.ledger.noted();
    if noted.is_empty() {
        return found;
    }
    let (stays, sent, carried, hinted) = (stays(run), sent(run), carried(run), hinted(run));
    let refused = refused(run);
    let lag = run.plan.hardship.lag.unwrap_or(LAG);
    let mut before: Option<&TickRecord> = None;
    for (at, record) in &noted {
        for stay in &stays {
            let Due { shard, at: due_at, .. } = *stay.due;
            let is_sleep = stay.due.kind == DueKind::Asleep;
            let due_at = if is_sleep { due_at.minus(SLEEP_PROBE) } else { due_at };
            let from = before.map_or(Timestamp::EPOCH, |before| before.timers_sent_until(shard));
            let is_new = (from..record.timers_sent_until(shard)).contains(&due_at) && due_at > at.plus(SKEW);
            let was_there = stay.since.plus(lag).plus(SKEW).plus(TICK_MAX) <= *at && stay.until > *at;
            // A message carries the rest of a slot, and may be late or lost.
            // What a queue didn't take counts as lost.
            let is_excused = |at: &Timestamp, sent: &Timestamp| sent <= at && sent.plus(TICK_MAX) > *at;
            let is_carried = || {
                if is_sleep {
                    refused.iter().any(|sent| is_excused(at, sent))
                } else {
                    carried.iter().any(|(of, sent)| *of == shard && sent.plus(TICK_MAX) > *at)
                }
            };
            let is_sent = || {
                if is_sleep {
                    hinted.contains(&(stay.incarnation, due_at))
                } else {
                    sent.contains(&(stay.record.clone(), due_at))
                }
            };
            if is_new && was_there && !is_carried() && !is_sent() {
                let what = format!(
                    "the {} of {} for {} was recorded as sent, and never was",
                    if is_sleep { "hint" } else { "timer" },
                    stay.record,
                    clock(due_at)
                );
                found.push(Violation::new(Invariant::Timeliness, *at, what));
            }
        }
        before = Some(record);
    }
    found
}

/// All stays in due slots that need a timer.
fn stays(run: &Run) -> Vec<Stay<'_>> {
    let mut open: BTreeMap<Incarnation, Stay<'_>> = BTreeMap::new();
    let mut all = Vec::new();
    for event in &run.events {
        let Some((incarnation, record, due)) = place(event) else { continue };
        if open.get(&incarnation).is_some_and(|stay| Some(stay.due) == due) {
            continue;
        }
        all.extend(open.remove(&incarnation).map(|stay| Stay { until: event.at, ..stay }));
        if let Some(due) = due.filter(|due| matches!(due.kind, DueKind::Instant | DueKind::Asleep)) {
            let stay = Stay { record, incarnation, since: event.at, until: run.ended_at, due };
            open.insert(incarnation, stay);
        }
    }
    all.extend(open.into_values());
    all
}

/// A record's due slot after this event, if the event changed a record.
fn place(event: &Event) -> Option<(Incarnation, RecordId, Option<&Due>)> {
    if let Some(Stored { after, .. }) = event.what.task_change() {
        return Some((after.incarnation, after.id.clone().into(), after.due.as_ref()));
    }
    let after = &event.what.execution_change()?.after;
    Some((after.incarnation, after.id.clone().into(), after.due.as_ref()))
}

/// The timers that were sent, even if they were lost.
fn sent(run: &Run) -> BTreeSet<(RecordId, Timestamp)> {
    let mut sent = BTreeSet::new();
    for event in &run.events {
        if let What::Message { fate: Fate::Sent(_) | Fate::Dropped, note: Note::Timers(timers), .. } =
            &event.what
        {
            sent.extend(timers.iter().map(|timer| (timer.record.clone(), timer.due_at)));
        }
    }
    sent
}

/// The hints of turns that were sent, even if they were lost, with the instants at which they were to arrive.
fn hinted(run: &Run) -> BTreeSet<(Incarnation, Timestamp)> {
    let mut hinted = BTreeSet::new();
    for event in &run.events {
        if let What::Message {
            fate: Fate::Sent(_) | Fate::Dropped,
            note: Note::Turn { incarnation, at: Some(at), .. },
            ..
        } = &event.what
        {
            hinted.insert((*incarnation, *at));
        }
    }
    hinted
}

/// Hints for the end of a sleep that tick after tick has sent.
fn repeated(run: &Run) -> Vec<Violation> {
    let mut count: BTreeMap<(Incarnation, Timestamp), u32> = BTreeMap::new();
    let mut found = Vec::new();
    for event in &run.events {
        if let What::Message {
            fate: Fate::Sent(_) | Fate::Dropped,
            note: Note::Turn { incarnation, at: Some(at), execution },
            ..
        } = &event.what
            && matches!(event.actor, Actor::Ticker(_))
            && *at > event.at.plus(SLOT_BEGINS)
        {
            let count = count.entry((*incarnation, *at)).or_default();
            *count += 1;
            if *count == REPEATED_MAX + 1 {
                let what =
                    format!("ticks have sent the hint of {execution} for {} {count} times", clock(*at));
                found.push(Violation::new(Invariant::I9, event.at, what));
            }
        }
    }
    found
}

/// When a queue may have refused a tick's message, or took so long that the tick gave it up.
fn refused(run: &Run) -> Vec<Timestamp> {
    let is_trouble = |event: &&Event| match &event.what {
        What::Message { fate, .. } => *fate == Fate::Refused,
        What::Fault(fault) => {
            matches!(event.actor, Actor::Ticker(_))
                && matches!(fault, Fault::Unavailable | Fault::Throttled | Fault::Away)
        }
        What::Called { .. }
        | What::Answered { .. }
        | What::Decided(_)
        | What::Stored(_)
        | What::OfExecution(_) => false,
    };
    let abandoned = run.world.abandoned().into_iter().filter(|(_, actor)| matches!(actor, Actor::Ticker(_)));
    let troubles = run.events.iter().filter(is_trouble).map(|event| event.at);
    troubles.chain(abandoned.map(|(at, _)| at)).collect()
}

/// The shards for which a message carried the rest of a slot, and when it was sent.
fn carried(run: &Run) -> Vec<(u16, Timestamp)> {
    let rest = |event: &Event| match &event.what {
        What::Message { fate: Fate::Sent(_) | Fate::Dropped, note: Note::Other(body), .. } => {
            match Wake::parse(body) {
                Ok(Wake::Handover(rest)) => Some((rest.shard, event.at)),
                Ok(Wake::Timer(_) | Wake::Timers(_) | Wake::Sweep(_) | Wake::Resume(_)) | Err(_) => None,
            }
        }
        What::Message { .. }
        | What::Called { .. }
        | What::Answered { .. }
        | What::Decided(_)
        | What::Stored(_)
        | What::OfExecution(_)
        | What::Fault(_) => None,
    };
    run.events.iter().filter_map(rest).collect()
}
