//! close: a turn ends its run, and usually the execution with it.

use crate::command::Context;
use crate::error::Reject;
use crate::execution::command::{Close, Ending};
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::{Entry, Happened};
use crate::execution::update::{expired_or_unchanged, new_segments, turn_with_lease, update};
use crate::execution::{Execution, ExecutionOutcome, RunAttempt, append, closing, retention};
use crate::payload::Payload;
use crate::time::Timestamp;

use super::record;
use super::retry_run::{self, FailedRun};

pub(super) fn decide(execution: &Execution, close: &Close, context: &Context<'_>) -> Decision {
    let after_expiry = closing::expire(execution, context);
    if after_expiry.is_some() || turn_with_lease(execution, &close.lease).is_none() {
        return expired_or_unchanged(execution, after_expiry, context, Err(Reject::TurnLost));
    }
    let mut after = execution.clone();
    // This doesn't check the limits: a run that has reached them must be able to end.
    append::append(&mut after, &close.entries);
    let brought = (close.entries.as_slice(), close.values.as_ref());
    record::apply_progress(&mut after, brought, Some(close.cleanup), context.limits);
    let closed = Ok(Reply::Closed { duplicate: false });
    match &close.ending {
        Ending::Outcome(outcome) => {
            closing::conclude(&mut after, outcome.clone(), context);
            update(execution, after, context, closed)
        }
        Ending::FailedRun { outcome, retry, carried } => {
            retry_run::decide(execution, after, &FailedRun { outcome, retry, carried }, context)
        }
        Ending::ContinueAsNew { .. } if execution.cancel_requested && after.undoes => {
            // Its code stops here, and the next turn undoes what it did.
            closing::make_pending(&mut after, context.now, context.now);
            update(execution, after, context, closed)
        }
        Ending::ContinueAsNew { .. } if execution.cancel_requested => {
            // The next run wouldn't start anything.
            closing::conclude(&mut after, ExecutionOutcome::Cancelled { terminated: false }, context);
            update(execution, after, context, closed)
        }
        Ending::ContinueAsNew { input, carried } => {
            if let Some(failing) = &execution.failing {
                // The `on_failure` code can only recover with a result. A new run could already be past its deadline,
                // and would fail again.
                closing::conclude(&mut after, failing.outcome.clone(), context);
                return update(execution, after, context, closed);
            }
            if !has_all_pending(carried, &after) {
                // The next turn reads the journal again and brings these events too.
                return Decision::refuse(Some(execution), Reject::TurnLost);
            }
            let sealed = append::seal_run(&after, context);
            start_next_run(&mut after, input.as_ref(), carried, context);
            let sealed = new_segments(&after, sealed, context);
            let mut decision = update(execution, after, context, closed);
            decision.new_items.extend(sealed);
            decision
        }
    }
}

/// Whether a turn brings as many events as are pending in the record. The turn counts them in the whole journal, again
/// after each write of another caller. If it missed some all the same, they must not be lost.
pub(super) fn has_all_pending(carried: &[Entry], execution: &Execution) -> bool {
    let events = carried.iter().filter(|entry| matches!(entry.what, Happened::Event { .. }));
    u32::try_from(events.count()).is_ok_and(|count| count == execution.pending_events)
}

/// Starts the next run. The execution keeps its deadline; the run gets a new one.
///
/// A run that starts with the input of the one before will do the same again, unless entries were recorded meanwhile.
/// So `idle_turns` isn't reset for it. Otherwise such a loop would never end, and would cost money all the time.
fn start_next_run(
    execution: &mut Execution,
    input: Option<&Payload>,
    carried: &[Entry],
    context: &Context<'_>,
) {
    let idle_turns = if execution.input.as_ref() == input { execution.idle_turns } else { 0 };
    execution.input = input.cloned();
    execution.failing = None;
    new_run(execution, carried, context.now);
    closing::make_pending(execution, context.now, context.now);
    execution.idle_turns = idle_turns;
}

/// Sets the fields of the record that belong to a run, as a run starts with them.
pub(super) fn new_run(execution: &mut Execution, begins_with: &[Entry], starts_at: Timestamp) {
    execution.run += 1;
    execution.repeats = None;
    execution.callbacks = None;
    execution.run_started_at = starts_at;
    execution.run_deadline_at = execution.timeouts.run.map(|timeout| starts_at.plus(timeout));
    execution.attempt = execution.attempt.map(|attempt| RunAttempt::first_of(attempt.of));
    execution.undoes = false;
    execution.journal.clear();
    execution.sealed = None;
    execution.open_steps = 0;
    execution.pending_events = 0;
    execution.progress = None;
    let carried = |entry: &Entry| retention::carry_over(entry.clone(), execution.kept);
    let begins_with: Vec<Entry> = begins_with.iter().map(carried).collect();
    append::append(execution, &begins_with);
}
