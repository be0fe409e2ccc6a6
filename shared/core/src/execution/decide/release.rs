//! release: a worker gives up a turn that it hasn't finished.

use crate::command::Context;
use crate::duration::Millis;
use crate::error::Reject;
use crate::execution::command::Undone;
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::{expired_or_unchanged, turn_with_lease, update};
use crate::execution::{Execution, ExecutionOutcome, Stuck, closing};
use crate::id::LeaseId;

pub(super) fn decide(
    execution: &Execution,
    lease: &LeaseId,
    wait: Millis,
    undone: &Undone,
    context: &Context<'_>,
) -> Decision {
    let settled = closing::expire(execution, context);
    if settled.is_some() || turn_with_lease(execution, lease).is_none() {
        return expired_or_unchanged(execution, settled, context, Err(Reject::TurnLost));
    }
    let mut after = execution.clone();
    if execution.cancel_requested {
        // No worker is left that could see the request.
        closing::conclude(&mut after, ExecutionOutcome::Cancelled { terminated: false }, context);
    } else {
        closing::give_back(&mut after, context.now.plus(wait), context.now);
        match undone {
            Undone::ByCode => {}
            Undone::Panicked(failure) => {
                let tries = execution.idle_turns;
                after.stuck = Some(Stuck::Code { failure: failure.clone(), tries });
            }
            // The execution isn't the cause.
            Undone::ByWorker => after.idle_turns = after.idle_turns.saturating_sub(1),
            Undone::Stuck(stuck) => {
                after.idle_turns = after.idle_turns.saturating_sub(1);
                after.stuck = Some(stuck.clone());
            }
        }
    }
    update(execution, after, context, Ok(Reply::Released))
}
