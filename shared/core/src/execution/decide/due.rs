//! due: the tick reads an execution. It records what has passed, sends lost hints again, and moves the due slot.

use crate::command::Context;
use crate::decision::{DueReply, Effect, Write};
use crate::due::{Due, DueKind, START_LEAD};
use crate::due_slot::{self, Probe, SlotChange};
use crate::execution::decision::{Decision, Reply};
use crate::execution::due::{
    SILENT_AFTER, handed_over_at, hint_needed_at, is_silent, later_hint_at, latest, recheck_at, waits_since,
    was_notified,
};
use crate::execution::update::{turn, update_in_slot};
use crate::execution::{Execution, ExecutionState, Ready, Waiting, append, attempts, closing, size};
use crate::gate::line::Move;
use crate::limits::QUEUE_DELAY_MAX;
use crate::queue::QueueView;
use crate::time::{Timestamp, earliest};

use super::unpark::unparked;

pub(super) fn decide(execution: &Execution, queue: &QueueView, context: &Context<'_>) -> Decision {
    let now = context.now;
    let nothing = || Decision::unchanged(execution, Ok(Reply::Due(DueReply::Nothing)));
    if let Some(after) = closing::expire(execution, context) {
        return update_by_tick(execution, after, DueReply::TimedOut, context);
    }
    if let Some(after) = release_overdue_turn(execution, context) {
        return update_by_tick(execution, after, DueReply::TimedOut, context);
    }
    let Some(due) = execution.due.filter(|due| due.at <= now) else { return nothing() };
    let Some(latest) = latest(execution, now, context.limits) else {
        // The tick never has to act on it again: it leaves the due index.
        return update_by_tick(execution, execution.clone(), DueReply::Rearmed, context);
    };
    if execution.parked.is_paused() && queue.paused {
        return rearm(execution, latest, context);
    }
    if let Some(position) = execution.parked.in_line() {
        let mut decision = rearm(execution, latest, context);
        // Its item may have been lost.
        if !position.is_new(now) {
            let item = Move::again(&execution.waiting(), now);
            item.add_to(&mut decision.writes, &mut decision.effects);
        }
        return decision;
    }
    if execution.parked.is_paused() {
        // The hint that resuming the queue should send wasn't sent.
        let reply = Ok(Reply::Due(DueReply::Dispatched));
        return unparked(execution, SlotChange::Latest, context, reply);
    }
    if let ExecutionState::Closing(closed) = &execution.state {
        // Each page of a close shows that its caller is alive. The tick takes over a close without progress for as long
        // as the backstop. Before that, two callers would do the same work. If a tick ended it, the next one looks earlier.
        let is_left = due.at == closed.ended_at.plus(SILENT_AFTER) && is_silent(execution, now);
        let takes_over = is_left || latest.at <= now;
        return if takes_over { send(execution, context) } else { rearm(execution, latest, context) };
    }
    if was_notified(execution) || recheck_at(execution).is_some_and(|at| at <= now) {
        return send(execution, context);
    }
    if handed_over_at(execution).is_some() {
        return probe_sleep(execution, due, queue, context);
    }
    if let Some(at) = later_hint_at(execution) {
        if at.since(now) <= QUEUE_DELAY_MAX {
            return send_start(execution, context);
        }
        if latest.at > now {
            return rearm(execution, latest, context);
        }
    }
    match hint_needed_at(execution).filter(|_| !execution.needs_operator()) {
        Some(needed_at) => probe_hint(execution, needed_at, due, queue, context),
        None => rearm(execution, latest, context),
    }
}

/// Releases a turn whose worker didn't record the timeout of an attempt. The next turn records the outcome of that
/// attempt.
pub(super) fn release_overdue_turn(execution: &Execution, context: &Context<'_>) -> Option<Execution> {
    attempts::is_overdue(execution, context.now).then(|| {
        let mut after = execution.clone();
        closing::lose_turn(&mut after, context.now);
        size::note_if_it_fits(&mut after, append::TURN_LOST, context);
        after
    })
}

fn probe_hint(
    execution: &Execution,
    needed_at: Timestamp,
    due: Due,
    queue: &QueueView,
    context: &Context<'_>,
) -> Decision {
    let waits_since = waits_since(execution, context.now);
    match due_slot::probe_hint(execution, waits_since, needed_at, due, queue, context) {
        Probe::Later(place) => {
            // A recheck or a later start may come before the next probe.
            let start = later_hint_at(execution).map(|at| at.minus(START_LEAD));
            let sooner = earliest([recheck_at(execution), start]).filter(|at| *at < place.at);
            rearm(execution, sooner.map_or(place, |at| Due { at, ..place }), context)
        }
        Probe::Send => send(execution, context),
    }
}

/// Probes the hint that a tick sent from the index. From now on the record counts as one whose hint was sent.
fn probe_sleep(execution: &Execution, due: Due, queue: &QueueView, context: &Context<'_>) -> Decision {
    let mut settled = execution.clone();
    hint_is_sent(&mut settled);
    let Some(needed_at) = hint_needed_at(&settled) else {
        return update_by_tick(execution, settled, DueReply::Rearmed, context);
    };
    let waits_since = waits_since(&settled, context.now);
    match due_slot::probe_hint(&settled, waits_since, needed_at, due, queue, context) {
        Probe::Later(place) => {
            let reply = Ok(Reply::Due(DueReply::Rearmed));
            let mut decision = update_in_slot(execution, settled, SlotChange::To(place), context, reply);
            decision.effects.retain(|effect| !matches!(effect, Effect::Turn { .. }));
            decision
        }
        Probe::Send => send_over(execution, settled, context),
    }
}

/// Sends the hint of a later start or of a wait's end, which a queue can delay by now.
fn send_start(execution: &Execution, context: &Context<'_>) -> Decision {
    let mut after = execution.clone();
    // If the tick comes after the instant, the hint is sent only now, and its backstop counts from now.
    let is_late = later_hint_at(execution).is_some_and(|at| at < context.now);
    after.hinted_at = is_late.then_some(context.now).or(execution.hinted_at);
    hint_is_sent(&mut after);
    update_by_tick(execution, after, DueReply::Dispatched, context)
}

/// If the instant has passed for which the tick would send a hint, another hint has come in its place.
pub(super) fn hint_has_come(execution: &mut Execution, now: Timestamp) {
    if later_hint_at(execution).is_some_and(|at| at <= now) {
        hint_is_sent(execution);
    }
}

/// The tick has nothing to send for it any more.
fn hint_is_sent(execution: &mut Execution) {
    match &mut execution.state {
        ExecutionState::Pending(Ready { hint_later, .. })
        | ExecutionState::Waiting(Waiting { hint_later, .. }) => *hint_later = false,
        ExecutionState::Running(_) | ExecutionState::Closing(_) | ExecutionState::Ended(_) => {}
    }
}

/// Sends another hint that arrives at once. All intervals count from this hint now, because it is the one that may be
/// lost.
fn send(execution: &Execution, context: &Context<'_>) -> Decision {
    send_over(execution, execution.clone(), context)
}

fn send_over(execution: &Execution, mut after: Execution, context: &Context<'_>) -> Decision {
    after.hinted_at = Some(context.now);
    let mut decision = update_by_tick(execution, after, DueReply::Dispatched, context);
    decision.effects.retain(|effect| !matches!(effect, Effect::Turn { .. }));
    decision.effects.push(turn(execution, context.now));
    decision
}

/// An update by the tick, which moves the record to its latest due slot.
///
/// An end with work left is read again by the next tick: no message says that this process died. The slot moves anyway, so
/// that costs nothing.
pub(super) fn update_by_tick(
    execution: &Execution,
    after: Execution,
    reply: DueReply,
    context: &Context<'_>,
) -> Decision {
    let slot = match (&after.state, execution.due) {
        (ExecutionState::Ended(_), Some(due)) if closing::has_work_left(&after) => {
            SlotChange::To(Due { at: context.now.plus(SILENT_AFTER), kind: DueKind::Backstop, ..due })
        }
        _ => SlotChange::Latest,
    };
    update_in_slot(execution, after, slot, context, Ok(Reply::Due(reply)))
}

fn rearm(execution: &Execution, to: Due, context: &Context<'_>) -> Decision {
    let (to, timer) = due_slot::armed(execution, to, context.now);
    let mut after = execution.clone();
    after.due = Some(to);
    Decision {
        writes: vec![Write::Rearm { record: execution.clone().into(), to }],
        effects: timer.into_iter().collect(),
        ..Decision::of(after, Ok(Reply::Due(DueReply::Rearmed)))
    }
}
