//! release: a worker gives up a turn that it hasn't finished.

use crate::command::Context;
use crate::duration::Millis;
use crate::error::Reject;
use crate::execution::command::{Cleanup, ReleaseReason};
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::{expired_or_unchanged, turn_with_lease, update};
use crate::execution::{Execution, ExecutionOutcome, Stuck, closing};
use crate::id::LeaseId;

use super::record;

pub(super) fn decide(
    execution: &Execution,
    lease: &LeaseId,
    wait: Millis,
    reason: &ReleaseReason,
    cleanup: Option<Cleanup>,
    context: &Context<'_>,
) -> Decision {
    let after_expiry = closing::expire(execution, context);
    if after_expiry.is_some() || turn_with_lease(execution, lease).is_none() {
        return expired_or_unchanged(execution, after_expiry, context, Err(Reject::TurnLost));
    }
    let mut after = execution.clone();
    record::apply_cleanup(&mut after, cleanup);
    if after.cancel_requested && !after.undoes {
        // No worker is left that could see the request.
        closing::conclude(&mut after, ExecutionOutcome::Cancelled { terminated: false }, context);
    } else {
        closing::release_turn(&mut after, context.now.plus(wait), context.now);
        match reason {
            ReleaseReason::ByCode => {}
            ReleaseReason::Panicked(failure) => {
                let tries = execution.idle_turns;
                after.stuck = Some(Stuck::Code { failure: failure.clone(), tries });
            }
            // The execution isn't the cause.
            ReleaseReason::ByWorker => after.idle_turns = after.idle_turns.saturating_sub(1),
            ReleaseReason::Stuck(stuck) => {
                after.idle_turns = after.idle_turns.saturating_sub(1);
                after.stuck = Some(stuck.clone());
            }
        }
    }
    update(execution, after, context, Ok(Reply::Released))
}
