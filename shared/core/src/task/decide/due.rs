//! due: the tick reads a record. It records an expired timeout, sends a lost hint again, or moves the due slot.

use crate::command::Context;
use crate::decision::{DueReply, Expiring, Write};
use crate::due::{Due, DueKind};
use crate::due_slot::{self, Probe, SlotChange};
use crate::duration::Millis;
use crate::gate::line::Move;
use crate::limits::QUEUE_DELAY_MAX;
use crate::queue::QueueView;
use crate::task::decision::{Decision, Reply};
use crate::task::due::{hint_needed_at, latest, waits_since};
use crate::task::transition;
use crate::task::{HeldKey, Pending, State, Task};
use crate::time::Timestamp;

use super::revive::extend_payloads;
use super::schedule::{key_expiry, starts_at};
use super::unpark::unparked;

pub(super) fn decide(task: &Task, queue: &QueueView, context: &Context<'_>) -> Decision {
    let reply = |reply| Ok(Reply::Due(reply));
    if let Some(after) = transition::expire(task, context) {
        return moved(task, after, DueReply::TimedOut, context);
    }
    let (Some(due), Some(latest)) = (task.due, latest(task, context.now, context.limits)) else {
        return Decision::unchanged(task, reply(DueReply::Nothing));
    };
    if due.at > context.now {
        return Decision::unchanged(task, reply(DueReply::Nothing));
    }
    if let Some(decision) = extend_expiries(task, context) {
        return decision;
    }
    match &task.state {
        State::Pending(pending) if pending.hint_later => {
            if pending.available_at.since(context.now) > QUEUE_DELAY_MAX {
                return rearm(task, latest, context.now);
            }
            let mut after = task.clone();
            after.state = State::Pending(Pending { hint_later: false, ..pending.clone() });
            // If the tick comes after the start, the hint is only sent now, so the backstop counts from now.
            after.hinted_at = (pending.available_at < context.now).then_some(context.now);
            moved(task, after, DueReply::Dispatched, context)
        }
        State::Pending(_) | State::Running(_) if task.parked.is_paused() && queue.paused => {
            rearm(task, latest, context.now)
        }
        State::Pending(_) | State::Running(_) if task.parked.in_line().is_some() => {
            let mut decision = rearm(task, latest, context.now);
            // Its item may have been lost. One that runs is also found at instants of its own.
            let may_be_lost = task.parked.in_line().is_some_and(|position| !position.is_new(context.now));
            if may_be_lost && (task.waits_in_line() || due.kind == DueKind::Backstop) {
                let item = Move::again(&task.waiting(), context.now);
                item.add_to(&mut decision.writes, &mut decision.effects);
            }
            decision
        }
        // The walk of the resumed queue hasn't sent its hint.
        State::Pending(_) | State::Running(_) if task.parked.is_paused() => {
            let reply = Ok(Reply::Due(DueReply::Dispatched));
            unparked(task, SlotChange::Latest, context, reply)
        }
        State::Pending(_) | State::Running(_) => probe_hint(task, due, queue, context),
        State::Ended(_) => Decision::unchanged(task, reply(DueReply::Nothing)),
    }
}

/// An update by the tick, which also moves the record out of its early due slot.
pub(super) fn moved(task: &Task, after: Task, reply: DueReply, context: &Context<'_>) -> Decision {
    super::update_in_slot(task, after, SlotChange::Latest, context, Ok(Reply::Due(reply)))
}

fn probe_hint(task: &Task, due: Due, queue: &QueueView, context: &Context<'_>) -> Decision {
    let now = context.now;
    let needed_at = hint_needed_at(task).unwrap_or(now);
    match due_slot::probe_hint(task, waits_since(task, now), needed_at, due, queue, context) {
        Probe::Later(place) => rearm(task, place, now),
        Probe::Send => {
            // From now on the new hint is the one that may be lost, so all instants count from it.
            let mut after = task.clone();
            after.hinted_at = Some(now);
            let mut decision = moved(task, after, DueReply::Dispatched, context);
            let hint = decision.record().map(super::dispatch);
            decision.effects.extend(hint);
            decision
        }
    }
}

pub(super) fn rearm(task: &Task, to: Due, now: Timestamp) -> Decision {
    let (to, timer) = due_slot::armed(task, to, now);
    let mut after = task.clone();
    after.due = Some(to);
    Decision {
        writes: vec![Write::Rearm { record: task.clone().into(), to }],
        effects: timer.into_iter().collect(),
        ..Decision::of(after, Ok(Reply::Due(DueReply::Rearmed)))
    }
}

/// Payloads and the idempotency key must not expire while their task is open, which may be for months.
fn extend_expiries(task: &Task, context: &Context<'_>) -> Option<Decision> {
    // Until a later start, the tick doesn't read the task.
    let key_soon = starts_at(task, context.now).plus(Millis::from_secs(7 * 86_400));
    let soon = key_soon.plus(context.limits.kept(task.parent.is_some()));
    let key = task.key.filter(|key| key.expires_at < key_soon);
    let blobs_end = task.blobs().any(|blob| blob.expires_at < soon);
    // With a deadline, they were given a sufficient expiry when the task was scheduled.
    if task.deadline_at.is_some() || (key.is_none() && !blobs_end) {
        return None;
    }
    let mut after = task.clone();
    let mut extensions = Vec::new();
    if blobs_end {
        extensions = extend_payloads(&mut after, context);
    }
    if let Some(key) = key {
        let expires_at = key_expiry(None, starts_at(task, context.now), context);
        extensions.push(Write::Extend { item: Expiring::Key(key.digest), expires_at });
        after.key = Some(HeldKey { expires_at, ..key });
    }
    let mut decision = moved(task, after, DueReply::Rearmed, context);
    decision.writes.splice(0..0, extensions);
    Some(decision)
}
