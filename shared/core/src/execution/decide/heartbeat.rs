//! heartbeat: the turn's worker is alive, and its lease is extended. The write may carry journal entries too.

use super::record;
use crate::command::Context;
use crate::due_slot::SlotChange;
use crate::error::Reject;
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::Entry;
use crate::execution::update::{expired_or_unchanged, turn_with_lease, update_in_slot};
use crate::execution::{Execution, ExecutionState, closing};
use crate::id::LeaseId;
use crate::payload::Payload;

pub(super) fn decide(
    execution: &Execution,
    lease: &LeaseId,
    entries: &[Entry],
    values: Option<&Payload>,
    context: &Context<'_>,
) -> Decision {
    let after_expiry = closing::expire(execution, context);
    if after_expiry.is_some() || turn_with_lease(execution, lease).is_none() {
        return expired_or_unchanged(execution, after_expiry, context, Err(Reject::TurnLost));
    }
    let after = if entries.is_empty() {
        Ok(Execution { values: values.or(execution.values.as_ref()).cloned(), ..execution.clone() })
    } else {
        record::with(execution, (entries, values), None, context)
    };
    match after {
        Ok(mut after) => {
            if let ExecutionState::Running(turn) = &mut after.state {
                turn.lease_expires_at = closing::lease_end(execution, turn.lease_length, context.now);
            }
            // Its lease had ended, and a request for the next turn found no place.
            after.parked = execution.parked.out_of_line();
            let keeps = entries.is_empty() && after.parked == execution.parked;
            let slot = if keeps { SlotChange::Keep } else { SlotChange::KeepOrLower };
            update_in_slot(execution, after, slot, context, Ok(Reply::Renewed))
        }
        Err(reject) => Decision::refuse(Some(execution), reject),
    }
}
