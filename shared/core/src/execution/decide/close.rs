//! close: a turn ends its run, and mostly the execution with it.

use crate::command::Context;
use crate::error::Reject;
use crate::execution::command::{Close, Ending};
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::Entry;
use crate::execution::update::{expired_or_unchanged, held_by, update};
use crate::execution::{Execution, ExecutionOutcome, append, closing, retention};
use crate::payload::Payload;

use super::record;

pub(super) fn decide(execution: &Execution, close: &Close, context: &Context<'_>) -> Decision {
    let settled = closing::expire(execution, context);
    if settled.is_some() || held_by(execution, &close.lease).is_none() {
        return expired_or_unchanged(execution, settled, context, Err(Reject::TurnLost));
    }
    let mut after = execution.clone();
    // Whatever the limits say: a run that has reached them must be able to end.
    append::append(&mut after, &close.entries);
    record::goes_on(&mut after, &close.entries, close.on_failure);
    let closed = Ok(Reply::Closed { duplicate: false });
    match &close.ending {
        Ending::Outcome(outcome) => {
            closing::conclude(&mut after, outcome.clone(), context);
            update(execution, after, context, closed)
        }
        Ending::ContinueAsNew { .. } if execution.cancel_requested => {
            // Its code stops here: the next run wouldn't begin anything.
            closing::conclude(&mut after, ExecutionOutcome::Cancelled { terminated: false }, context);
            update(execution, after, context, closed)
        }
        Ending::ContinueAsNew { input, events } => {
            if let Some(failing) = &execution.failing {
                // What deals with a failure recovers with a result or not at all: another run could be too late
                // already, and would fail anew.
                closing::conclude(&mut after, failing.outcome.clone(), context);
                return update(execution, after, context, closed);
            }
            if !are_all(events, &after) {
                // Whoever takes the next turn reads the journal anew, and brings along those as well.
                return Decision::refuse(Some(execution), Reject::TurnLost);
            }
            begin_anew(&mut after, input.as_ref(), events, context);
            update(execution, after, context, closed)
        }
    }
}

/// Whether the events that a turn brings along are as many as the record says are waiting. Its caller counts them by
/// the whole journal, anew each time that others have written; should it have overlooked some all the same, they must
/// not be lost.
fn are_all(events: &[Entry], execution: &Execution) -> bool {
    u32::try_from(events.len()).is_ok_and(|count| count == execution.pending_events)
}

/// The next run. The execution's deadline stays, a run's begins anew.
///
/// A run that begins with the input of the one before will do the same again, unless something was recorded meanwhile.
/// So the count of turns that came to nothing goes on: without that, such a loop would never end, and cost money for as
/// long as it lasts.
fn begin_anew(execution: &mut Execution, input: Option<&Payload>, events: &[Entry], context: &Context<'_>) {
    let idle_turns = if execution.input.as_ref() == input { execution.idle_turns } else { 0 };
    execution.input = input.cloned();
    execution.failing = None;
    new_run(execution, events, context);
    closing::await_turn(execution, context.now, context.now);
    execution.idle_turns = idle_turns;
}

/// A run's own part of the record as it is when a run begins.
pub(super) fn new_run(execution: &mut Execution, begins_with: &[Entry], context: &Context<'_>) {
    execution.run += 1;
    execution.run_started_at = context.now;
    execution.run_deadline_at = execution.timeouts.run.map(|timeout| context.now.plus(timeout));
    execution.journal.clear();
    execution.sealed = None;
    execution.open_steps = 0;
    execution.pending_events = 0;
    execution.progress = None;
    let carried = |entry: &Entry| retention::carried(entry.clone(), execution.kept);
    let begins_with: Vec<Entry> = begins_with.iter().map(carried).collect();
    append::append(execution, &begins_with);
}
