//! cancel: at once if no turn is in progress; otherwise a turn sees the request and stops. terminate: at once in any
//! case.

use crate::command::Context;
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::{expired_or_unchanged, update};
use crate::execution::{Execution, ExecutionOutcome, ExecutionState, append, closing};

pub(super) fn decide(execution: &Execution, terminate: bool, context: &Context<'_>) -> Decision {
    let after_expiry = closing::expire(execution, context);
    let current = after_expiry.as_ref().unwrap_or(execution);
    let outcome = |changed| Ok(Reply::Changed { changed });
    match &current.state {
        ExecutionState::Closing(_) | ExecutionState::Ended(_) => {
            expired_or_unchanged(execution, after_expiry, context, outcome(false))
        }
        ExecutionState::Running(turn) if !terminate && turn.lease_expires_at > context.now => {
            if current.cancel_requested {
                return Decision::unchanged(execution, outcome(false));
            }
            let mut after = current.clone();
            after.cancel_requested = true;
            append::note(&mut after, "cancel_requested", context);
            update(execution, after, context, outcome(true))
        }
        ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_) => {
            let mut after = current.clone();
            closing::conclude(&mut after, ExecutionOutcome::Cancelled { terminated: terminate }, context);
            update(execution, after, context, outcome(true))
        }
    }
}
