//! heartbeat: the turn's worker is alive, and its lease is extended.

use crate::command::Context;
use crate::due_slot::SlotChange;
use crate::error::Reject;
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::{expired_or_unchanged, turn_with_lease, update_in_slot};
use crate::execution::{Execution, ExecutionState, Turn, closing};
use crate::id::LeaseId;

pub(super) fn decide(execution: &Execution, lease: &LeaseId, context: &Context<'_>) -> Decision {
    let after_expiry = closing::expire(execution, context);
    match turn_with_lease(execution, lease).filter(|_| after_expiry.is_none()) {
        Some(turn) => {
            let lease_expires_at = closing::lease_end(execution, turn.lease_length, context.now);
            let mut after = execution.clone();
            after.state = ExecutionState::Running(Turn { lease_expires_at, ..turn.clone() });
            update_in_slot(execution, after, SlotChange::Keep, context, Ok(Reply::Renewed))
        }
        None => expired_or_unchanged(execution, after_expiry, context, Err(Reject::TurnLost)),
    }
}
