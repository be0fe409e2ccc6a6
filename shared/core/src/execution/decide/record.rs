//! record: the new journal entries of a turn are recorded, and the turn continues.

use crate::command::Context;
use crate::error::Reject;
use crate::execution::command::{Cleanup, Record};
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::Entry;
use crate::execution::update::{expired_or_unchanged, turn_with_lease, update};
use crate::execution::{Execution, append, attempts, closing};
use crate::limits::Limits;
use crate::payload::Payload;

pub(super) fn decide(execution: &Execution, record: &Record, context: &Context<'_>) -> Decision {
    let after_expiry = closing::expire(execution, context);
    if after_expiry.is_some() || turn_with_lease(execution, &record.lease).is_none() {
        return expired_or_unchanged(execution, after_expiry, context, Err(Reject::TurnLost));
    }
    match with(execution, (&record.entries, record.values.as_ref()), Some(record.cleanup), context) {
        Ok(mut after) => {
            if let Some(timed_attempts) = &record.timed_attempts {
                attempts::list(&mut after, timed_attempts, context.limits);
            }
            update(execution, after, context, Ok(Reply::Recorded))
        }
        Err(reject) => Decision::refuse(Some(execution), reject),
    }
}

/// The record with a turn's new entries, and with what it has published.
pub(super) fn with(
    execution: &Execution,
    (new_entries, values): (&[Entry], Option<&Payload>),
    cleanup: Option<Cleanup>,
    context: &Context<'_>,
) -> Result<Execution, Reject> {
    let mut after = execution.clone();
    append::record(&mut after, new_entries, context)?;
    apply_progress(&mut after, (new_entries, values), cleanup, context.limits);
    Ok(after)
}

/// A worker that knows the workflow is making progress: the execution isn't stuck. If there are new entries, the turn
/// isn't idle.
pub(super) fn apply_progress(
    execution: &mut Execution,
    (new_entries, values): (&[Entry], Option<&Payload>),
    cleanup: Option<Cleanup>,
    limits: &Limits,
) {
    apply_cleanup(execution, cleanup);
    if let Some(values) = values {
        execution.values = Some(values.clone());
    }
    execution.stuck = None;
    attempts::note(execution, new_entries, limits);
    if !new_entries.is_empty() {
        execution.idle_turns = 0;
    }
}

/// What the code of a turn does if it ends early. If the turn doesn't say, the code may have something to undo.
pub(super) fn apply_cleanup(execution: &mut Execution, cleanup: Option<Cleanup>) {
    match cleanup {
        Some(Cleanup { on_failure, on_cancel, undoes }) => {
            // The start may have given one that the code hasn't.
            execution.on_failure = on_failure.or(execution.on_failure);
            execution.on_cancel = on_cancel;
            execution.undoes = undoes;
        }
        None => execution.undoes = true,
    }
}
