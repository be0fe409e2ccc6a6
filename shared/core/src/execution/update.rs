//! Turns a changed record into the decision that writes it.

use std::collections::BTreeSet;

use crate::command::Context;
use crate::decision::{Condition, Effect, NewItem, Write};
use crate::due_slot::{self, SlotChange};
use crate::duration::Millis;
use crate::error::Reject;
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::{Entry, Happened, Segment, SegmentKey};
use crate::execution::message::TurnHint;
use crate::execution::{Execution, ExecutionState, Turn, admission, closing, due, retention, size};
use crate::gate::line::Move;
use crate::id::{EventId, LeaseId};
use crate::time::Timestamp;

/// How long it is known that an event with an id was sent, not counting the retention.
const EVENT_KNOWN_FOR: Millis = Millis::from_days(400);

/// The decision to write `after` over `before`, with the hint if a turn may start.
pub(super) fn update(
    before: &Execution,
    after: Execution,
    context: &Context<'_>,
    outcome: Result<Reply, Reject>,
) -> Decision {
    update_in_slot(before, after, SlotChange::KeepOrLower, context, outcome)
}

pub(super) fn update_in_slot(
    before: &Execution,
    mut after: Execution,
    placement: SlotChange,
    context: &Context<'_>,
    outcome: Result<Reply, Reject>,
) -> Decision {
    after.version = before.version + 1;
    after.nonce = context.nonce;
    let mut writes = retention::extend_blobs(&mut after, context.now, context.limits);
    // This is done before the record is measured, because a closing record has a due slot, and again after, because a
    // new segment may have to be kept longer.
    leave_closing(before, &mut after);
    let stay = u32::from(has_entry_that_stays(before, &after));
    let size::Moved { segments: sealed, values } = size::fit(&mut after, stay, context);
    // A new segment is kept long enough. The record now says until when.
    writes.extend(retention::extend_blobs(&mut after, context.now, context.limits));
    leave_closing(before, &mut after);
    let timer = due_slot::move_slot(before, &mut after, placement, context);
    let mut new_items = new_segments(&after, sealed, context);
    new_items.extend(values.map(|(at, body)| NewItem::Blob { at, body }));
    new_items.extend(events_that_left(before, &after, context));
    let due_no_later_than = due_slot::required_due(before, &after, context);
    let mut effects: Vec<Effect> =
        newly_arriving(before, &after).map(|at| turn(&after, at)).into_iter().collect();
    effects.extend(timer);
    effects.extend(admission::given_up(before, &after, context));
    if before.closed().is_none() {
        effects.extend(after.end_of_run());
    }
    if !has_ended(before) && has_ended(&after) {
        effects.extend(after.parent.clone().map(Effect::NotifyParent));
    }
    let unchanged = Condition::Unchanged { due_no_later_than, wakes: None };
    writes.push(Write::replace(before.clone(), after.clone(), unchanged));
    if before.parked != after.parked {
        let moved = Move::between(Some(&before.waiting()), &after.waiting(), context.now);
        moved.add_to(&mut writes, &mut effects);
    }
    Decision { new_items, writes, effects, ..Decision::of(after, outcome) }
}

/// Whether the latest entry is one of this decision that stays in the record: an event with an id, because only an event that
/// is stored already may have an item which says so; and a retry of a step, by which a repeated call is known.
fn has_entry_that_stays(before: &Execution, after: &Execution) -> bool {
    let stays =
        |entry: &Entry| id_of_event(entry).is_some() || matches!(entry.what, Happened::Reopened { .. });
    after.journal.last().is_some_and(|entry| stays(entry) && !before.journal.contains(entry))
}

/// An item for each event with an id that leaves the record, because its entry moves into a segment or its run is over: so
/// a later call with the id needs no journal to find out that it is repeated, in whatever run.
pub(super) fn events_that_left<'a>(
    before: &'a Execution,
    after: &Execution,
    context: &Context<'_>,
) -> impl Iterator<Item = NewItem> + use<'a> {
    let (of, incarnation, run) = (before.id.clone(), before.incarnation, before.run);
    let expires_at = context.now.plus(EVENT_KNOWN_FOR).plus(context.limits.retention);
    let stay: BTreeSet<EventId> = after.journal.iter().filter_map(id_of_event).cloned().collect();
    let gone = before.journal.iter().filter_map(id_of_event).filter(move |id| !stay.contains(*id));
    gone.map(move |id| NewItem::Event { of: of.clone(), incarnation, id: id.clone(), run, expires_at })
}

const fn id_of_event(entry: &Entry) -> Option<&EventId> {
    match &entry.what {
        Happened::Event { id, .. } => id.as_ref(),
        _ => None,
    }
}

/// The items of new segments.
pub(super) fn new_segments(
    execution: &Execution,
    sealed: Vec<(SegmentKey, Segment)>,
    context: &Context<'_>,
) -> Vec<NewItem> {
    let expires_at =
        execution.kept.unwrap_or_else(|| retention::ahead_of_journal(context.now, context.limits));
    let item = |(key, segment)| NewItem::Segment { of: execution.id.clone(), key, segment, expires_at };
    sealed.into_iter().map(item).collect()
}

/// An execution that ends with work left isn't closed for good yet. If it was already closed before this write, that
/// work is done.
fn leave_closing(before: &Execution, after: &mut Execution) {
    if let ExecutionState::Ended(closed) = &after.state
        && before.closed().is_none()
        && closing::has_work_left(after)
    {
        after.state = ExecutionState::Closing(closed.clone());
    }
}

/// Writes the record that a deadline has ended, if one has passed, and replies.
pub(super) fn expired_or_unchanged(
    before: &Execution,
    expired: Option<Execution>,
    context: &Context<'_>,
    outcome: Result<Reply, Reject>,
) -> Decision {
    match expired {
        Some(after) => update(before, after, context, outcome),
        None => Decision::unchanged(before, outcome),
    }
}

const fn has_ended(execution: &Execution) -> bool {
    matches!(execution.state, ExecutionState::Ended(_))
}

/// When the hint must arrive that this change makes necessary. None is necessary if a hint that is under way arrives no
/// later: otherwise each read of the record would add a hint to the queue. What becomes pending after a wait, or handles a
/// failure or a cancellation, relies on no earlier hint: that has led to no turn, and may be lost.
fn newly_arriving(before: &Execution, after: &Execution) -> Option<Timestamp> {
    let arrives_at = due::hint_under_way_at(after)?;
    let is_pending = matches!(after.state, ExecutionState::Pending(_));
    let has_waited = is_pending && matches!(before.state, ExecutionState::Waiting(_));
    let handles = before.failing.is_none() && after.failing.is_some();
    let known = due::reliable_hint_at(before).filter(|_| !has_waited && !handles);
    known.is_none_or(|known| known > arrives_at).then_some(arrives_at)
}

pub(super) fn turn(execution: &Execution, at: Timestamp) -> Effect {
    Effect::Turn { queue: execution.queue.clone(), hint: TurnHint::of(execution), at }
}

/// The turn with this lease. An expired lease still counts while no other worker has taken over: the work is done, and
/// a refusal would only repeat it.
pub(super) fn turn_with_lease<'a>(execution: &'a Execution, lease: &LeaseId) -> Option<&'a Turn> {
    execution.turn().filter(|turn| turn.lease == *lease)
}
