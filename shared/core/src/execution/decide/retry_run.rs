//! A run that failed is run again, as its workflow's code asks: a new run with the same input and an empty journal. It is
//! what `continue_as_new` does, after a delay.

use crate::command::Context;
use crate::error::Reject;
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::{Entry, RETRIED};
use crate::execution::update::{new_segments, update};
use crate::execution::{DeadlineKind, Execution, ExecutionOutcome, RunAttempt, append, closing};
use crate::failure::Failure;
use crate::retry::RetryPolicy;
use crate::time::Timestamp;

use super::close::{has_all_pending, new_run};

/// The code by which a policy excludes a run whose deadline passed.
const TIMED_OUT: &str = "timed_out";

/// A run that failed.
pub(super) struct FailedRun<'a> {
    pub(super) outcome: &'a ExecutionOutcome,
    pub(super) retry: &'a RetryPolicy,
    /// See [`Ending::ContinueAsNew`](crate::execution::command::Ending::ContinueAsNew).
    pub(super) carried: &'a [Entry],
}

/// Runs the run again, or ends the execution. `after` has the last entries of the run.
pub(super) fn decide(
    execution: &Execution,
    mut after: Execution,
    failed: &FailedRun<'_>,
    context: &Context<'_>,
) -> Decision {
    let closed = Ok(Reply::Closed { duplicate: false });
    let starts_at = match retry_of(execution, failed, context.now) {
        Ok(starts_at) => starts_at,
        Err(outcome) => {
            closing::conclude(&mut after, outcome, context);
            return update(execution, after, context, closed);
        }
    };
    if !has_all_pending(failed.carried, &after) {
        return Decision::refuse(Some(execution), Reject::TurnLost);
    }
    let mut ended = after.clone();
    closing::close(&mut ended, failed.outcome.clone(), context);
    let mut sealed = append::seal_run(&ended, context);
    if let Some(end) = sealed.last_mut().and_then(|(_, segment)| segment.end.as_mut()) {
        end.retried_at = Some(starts_at);
    }
    let number = number_of(execution) + 1;
    new_run(&mut after, failed.carried, starts_at);
    after.attempt = Some(RunAttempt { number, ..RunAttempt::first_of(failed.retry.max_attempts) });
    append::note(&mut after, RETRIED, context);
    // The policy limits how often this happens, so the new run's turns count anew.
    closing::make_pending(&mut after, starts_at, context.now);
    let sealed = new_segments(&after, sealed, context);
    let mut decision = update(execution, after, context, closed);
    decision.new_items.extend(sealed);
    decision
}

/// When the next attempt starts; or the outcome of the execution, if there is none.
fn retry_of(
    execution: &Execution,
    failed: &FailedRun<'_>,
    now: Timestamp,
) -> Result<Timestamp, ExecutionOutcome> {
    let code = match failed.outcome {
        ExecutionOutcome::Failed { error, .. } => &error.code,
        ExecutionOutcome::TimedOut { kind: DeadlineKind::Run } => TIMED_OUT,
        ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution }
        | ExecutionOutcome::Completed { .. }
        | ExecutionOutcome::Cancelled { .. } => return Err(failed.outcome.clone()),
    };
    let used = number_of(execution);
    let is_over = execution.cancel_requested || execution.failing.is_some();
    if is_over || !failed.retry.attempts_left(used) || !failed.retry.is_retryable(code) {
        return Err(failed.outcome.clone());
    }
    let seed = u64::from_be_bytes(*execution.incarnation.as_bytes());
    let starts_at = now.plus(failed.retry.delay_before_next(used, seed));
    match execution.deadline_at.filter(|deadline| starts_at >= *deadline) {
        Some(deadline) => Err(doomed(failed.outcome, used + 1, starts_at, deadline)),
        None => Ok(starts_at),
    }
}

fn number_of(execution: &Execution) -> u32 {
    execution.attempt.map_or(1, |attempt| attempt.number)
}

/// The outcome of an execution whose next attempt could only start after its deadline.
fn doomed(
    outcome: &ExecutionOutcome,
    number: u32,
    starts_at: Timestamp,
    deadline: Timestamp,
) -> ExecutionOutcome {
    let mut outcome = outcome.clone();
    if let ExecutionOutcome::Failed { error, .. } = &mut outcome {
        let (starts_at, deadline) = (starts_at.to_rfc3339(), deadline.to_rfc3339());
        let reason = format!(
            "not retried: attempt {number} would start at {starts_at}, and the execution's deadline is {deadline}"
        );
        let last =
            if error.message.is_empty() { String::new() } else { format!("; last error: {}", error.message) };
        *error = Failure::new(error.code.clone(), format!("{reason}{last}"));
    }
    outcome
}
