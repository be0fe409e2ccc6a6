//! From a changed record to the decision that writes it.

use crate::command::Context;
use crate::decision::{Effect, NewPart, Write};
use crate::due_slot::{self, SlotChange};
use crate::error::Reject;
use crate::execution::decision::{Decision, Reply};
use crate::execution::message::TurnHint;
use crate::execution::{Execution, ExecutionState, Turn, closing, due, retention, size};
use crate::id::LeaseId;
use crate::time::Timestamp;

/// The decision to write `after` over `before`, with the hint that an execution needs whose turn may begin.
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
    let mut writes = retention::settle(&mut after, context.now, context.limits);
    // Before it is measured, because a closing record has a place in the index, and after, because a segment is
    // something to be seen to.
    leave_closing(before, &mut after);
    let sealed = size::fit(&mut after, context);
    // What was sealed has time enough; the record now says how much.
    writes.extend(retention::settle(&mut after, context.now, context.limits));
    leave_closing(before, &mut after);
    let timer = due_slot::move_slot(before, &mut after, placement, context);
    let expires_at = after.kept.unwrap_or_else(|| retention::ahead_of_journal(context.now, context.limits));
    let segment = |(key, segment)| NewPart::Segment { of: after.id.clone(), key, segment, expires_at };
    let parts = sealed.into_iter().map(segment).collect();
    let due_no_later_than = due_slot::insists_on(before, &after, context);
    let mut effects: Vec<Effect> =
        newly_arriving(before, &after).map(|at| turn(&after, at)).into_iter().collect();
    effects.extend(timer);
    if !has_ended(before) && has_ended(&after) {
        effects.extend(after.parent.clone().map(Effect::NotifyParent));
    }
    writes.push(Write::UpdateExecution {
        before: Box::new(before.clone()),
        after: Box::new(after.clone()),
        due_no_later_than,
        wakes: None,
    });
    Decision { parts, writes, effects, ..Decision::of(after, outcome) }
}

/// An execution that ends and leaves something open isn't closed for good yet. One that had closed before has seen
/// to it.
fn leave_closing(before: &Execution, after: &mut Execution) {
    if let ExecutionState::Ended(closed) = &after.state
        && before.closed().is_none()
        && closing::leaves_something(after)
    {
        after.state = ExecutionState::Closing(closed.clone());
    }
}

/// Writes what was settled on the way, if anything was, and answers.
pub(super) fn expired_or_unchanged(
    before: &Execution,
    settled: Option<Execution>,
    context: &Context<'_>,
    outcome: Result<Reply, Reject>,
) -> Decision {
    match settled {
        Some(after) => update(before, after, context, outcome),
        None => Decision::unchanged(before, outcome),
    }
}

const fn has_ended(execution: &Execution) -> bool {
    matches!(execution.state, ExecutionState::Ended(_))
}

/// When the hint arrives that this change makes necessary. One that is on its way already does as well, if it
/// doesn't come later: another one each time somebody looks would fill the queue.
fn newly_arriving(before: &Execution, after: &Execution) -> Option<Timestamp> {
    let arrives_at = due::hint_arrives_at(after)?;
    due::hint_arrives_at(before).is_none_or(|known| known > arrives_at).then_some(arrives_at)
}

/// The effect of sending an execution's hint.
pub(super) fn turn(execution: &Execution, at: Timestamp) -> Effect {
    Effect::Turn { queue: execution.queue.clone(), hint: TurnHint::of(execution), at }
}

/// The turn that this lease holds. A lease whose time ran out still holds while nobody has taken over: the work is
/// done, and refusing it would only have it done again.
pub(super) fn held_by<'a>(execution: &'a Execution, lease: &LeaseId) -> Option<&'a Turn> {
    execution.turn().filter(|turn| turn.lease == *lease)
}
