//! record: the new journal entries of a turn are recorded, and the turn continues.

use crate::command::Context;
use crate::duration::Millis;
use crate::error::Reject;
use crate::execution::command::Record;
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::Entry;
use crate::execution::update::{expired_or_unchanged, turn_with_lease, update};
use crate::execution::{Execution, append, attempts, closing};

pub(super) fn decide(execution: &Execution, record: &Record, context: &Context<'_>) -> Decision {
    let settled = closing::expire(execution, context);
    if settled.is_some() || turn_with_lease(execution, &record.lease).is_none() {
        return expired_or_unchanged(execution, settled, context, Err(Reject::TurnLost));
    }
    match with(execution, &record.entries, record.on_failure, context) {
        Ok(mut after) => {
            if let Some(under_way) = &record.under_way {
                attempts::list(&mut after, under_way);
            }
            update(execution, after, context, Ok(Reply::Recorded))
        }
        Err(reject) => Decision::refuse(Some(execution), reject),
    }
}

/// The record with a turn's new entries.
pub(super) fn with(
    execution: &Execution,
    brought: &[Entry],
    on_failure: Option<Millis>,
    context: &Context<'_>,
) -> Result<Execution, Reject> {
    let mut after = execution.clone();
    append::record(&mut after, brought, context)?;
    goes_on(&mut after, brought, on_failure);
    Ok(after)
}

/// A worker that knows the workflow is making progress: the execution isn't stuck. If there are new entries, the turn
/// isn't idle.
pub(super) fn goes_on(execution: &mut Execution, brought: &[Entry], on_failure: Option<Millis>) {
    execution.on_failure = on_failure.or(execution.on_failure);
    execution.stuck = None;
    attempts::note(execution, brought);
    if !brought.is_empty() {
        execution.idle_turns = 0;
    }
}
