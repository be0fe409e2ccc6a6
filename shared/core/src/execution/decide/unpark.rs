//! unpark: an execution's queue was resumed. The hint that was deleted during the pause is sent again.

use crate::command::Context;
use crate::due_slot::SlotChange;
use crate::error::Reject;
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::{expired_or_unchanged, turn, update_in_slot};
use crate::execution::{Execution, closing};
use crate::parked::Parked;

pub(super) fn decide(execution: &Execution, context: &Context<'_>) -> Decision {
    let reply = |was_parked| Ok(Reply::Unparked { was_parked });
    let after_expiry = closing::expire(execution, context);
    if after_expiry.is_some() || !execution.parked.is_paused() {
        return expired_or_unchanged(execution, after_expiry, context, reply(false));
    }
    unparked(execution, SlotChange::KeepOrLower, context, reply(true))
}

/// Sends a new hint for the execution. All intervals count from this hint now. If an operator holds it, resuming it sends
/// one.
pub(super) fn unparked(
    execution: &Execution,
    placement: SlotChange,
    context: &Context<'_>,
    outcome: Result<Reply, Reject>,
) -> Decision {
    let mut after = Execution { parked: Parked::No, ..execution.clone() };
    if execution.needs_operator() {
        return update_in_slot(execution, after, placement, context, outcome);
    }
    after.hinted_at = Some(context.now);
    let mut decision = update_in_slot(execution, after, placement, context, outcome);
    decision.effects.retain(|effect| !matches!(effect, crate::decision::Effect::Turn { .. }));
    decision.effects.push(turn(execution, context.now));
    decision
}
