//! `retry_step`: a step because of which the execution failed runs again in the same run.

use crate::command::Context;
use crate::error::Reject;
use crate::execution::command::{End, EndedWith};
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::{Entry, Happened, UNDO_PREFIX};
use crate::execution::update::{expired_or_unchanged, update};
use crate::execution::{
    Execution, ExecutionOutcome, ExecutionState, ExecutionStatus, Stuck, append, closing,
};
use crate::id::StepName;
use crate::payload::Payload;

use super::restart::{CLEANED_UP, reopened, repeated};

pub(super) fn decide(
    execution: &Execution,
    (name, input): (&StepName, Option<&Payload>),
    others: Option<&EndedWith>,
    context: &Context<'_>,
) -> Decision {
    let after_expiry = closing::expire(execution, context);
    let is_reopened = execution.untouched_since().is_some_and(|(_, step)| step == Some(name));
    let is_same = || execution.journal.last().is_some_and(|entry| entry.payload() == input);
    if after_expiry.is_none() && is_reopened && is_same() {
        return repeated(execution);
    }
    if let Some(reject) = refusal(execution, name, context) {
        return expired_or_unchanged(execution, after_expiry, context, Err(reject));
    }
    if let Some(after_expiry) = after_expiry {
        let reject = Reject::ExecutionClosed { status: after_expiry.status() };
        return update(execution, after_expiry, context, Err(reject));
    }
    let mut after = execution.clone();
    reopen_others(&mut after, others, context);
    if let Err(reject) = append::record(&mut after, &[reopened_entry(name, input, context)], context) {
        return Decision::refuse(Some(execution), reject);
    }
    closing::make_pending(&mut after, context.now, context.now);
    if execution.closed().is_some() {
        // Its code is stopped again, and the rest is undone.
        after.cancel_requested = matches!(execution.status(), ExecutionStatus::Cancelled);
        after.undoes = after.cancel_requested;
        after.progress = None;
        return reopened(execution, after, context);
    }
    update(execution, after, context, Ok(Reply::Changed { changed: true }))
}

/// What was ended with the execution runs again too: its outcome would be that end, and the code would fail by it.
fn reopen_others(execution: &mut Execution, others: Option<&EndedWith>, context: &Context<'_>) {
    let Some(others) = others.filter(|others| End::of(execution) == Some(others.end)) else { return };
    let entries: Vec<Entry> = others.names.iter().map(|name| reopened_entry(name, None, context)).collect();
    append::append(execution, &entries);
    // None of them is open until the code starts it again.
    execution.open_steps = execution.open_steps.saturating_sub(others.open);
}

fn reopened_entry(name: &StepName, input: Option<&Payload>, context: &Context<'_>) -> Entry {
    let by = context.by.cloned().map(Box::new);
    Entry { at: context.now, what: Happened::Reopened { name: name.clone(), by, input: input.cloned() } }
}

fn refusal(execution: &Execution, name: &StepName, context: &Context<'_>) -> Option<Reject> {
    let status = execution.status();
    match &execution.state {
        ExecutionState::Ended(closed) => match &closed.outcome {
            ExecutionOutcome::Failed { step, .. } => {
                if step.as_deref() != Some(name.as_str()) && !may_have_step(execution, name) {
                    return Some(Reject::UnknownStep { name: name.to_string() });
                }
            }
            ExecutionOutcome::TimedOut { kind } => return Some(Reject::ExecutionDeadline { kind: *kind }),
            // What was undone because of a cancellation can be tried again, and nothing else.
            ExecutionOutcome::Cancelled { terminated: false } if name.as_str().starts_with(UNDO_PREFIX) => {
                if !may_have_step(execution, name) {
                    return Some(Reject::UnknownStep { name: name.to_string() });
                }
            }
            ExecutionOutcome::Completed { .. } | ExecutionOutcome::Cancelled { .. } => {
                return Some(Reject::ExecutionClosed { status });
            }
        },
        // It waits for an operator because the journal's entry of this step can't be read. While the `on_failure` code
        // runs, the deadlines before it no longer count.
        ExecutionState::Pending(_) if matches!(execution.stuck, Some(Stuck::Unreadable(_))) => {
            if execution.failing.is_some() {
                return None;
            }
        }
        ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_) => {
            return Some(Reject::ExecutionOpen { status, needs: "has failed" });
        }
        ExecutionState::Closing(_) => return Some(Reject::ExecutionOpen { status, needs: CLEANED_UP }),
    }
    // After a passed deadline, the execution would end at once.
    closing::passed_deadline(execution, context.now).map(|kind| Reject::ExecutionDeadline { kind })
}

/// Whether the journal has a step of this name, as far as the record shows.
fn may_have_step(execution: &Execution, name: &StepName) -> bool {
    let is_of = |entry: &Entry| matches!(&entry.what, Happened::Step { name: of, .. } if of == name);
    execution.sealed.is_some() || execution.journal.iter().any(is_of)
}
