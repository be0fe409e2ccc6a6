//! The end of a run, whatever its cause.

use crate::command::Context;
use crate::duration::Millis;
use crate::execution::{
    Admission, Closed, DeadlineKind, Execution, ExecutionOutcome, ExecutionState, Failing, Ready, RunAttempt,
    due, retention,
};
use crate::limits::QUEUE_DELAY_MAX;
use crate::parked::Parked;
use crate::time::Timestamp;

/// Ends the run if a deadline has passed. Returns the changed record, or `None` if no deadline has passed.
pub(super) fn expire(execution: &Execution, context: &Context<'_>) -> Option<Execution> {
    if execution.closed().is_some() {
        return None;
    }
    let outcome = match &execution.failing {
        Some(failing) if failing.deadline_at <= context.now => failing.outcome.clone(),
        Some(_) => return None,
        None => {
            let kind = passed_deadline(execution, context.now)?;
            if let (DeadlineKind::Run, Some(attempt)) = (kind, execution.attempt)
                && attempt.may_be_retried()
                && !execution.cancel_requested
            {
                return Some(retry_soon(execution, attempt, context));
            }
            ExecutionOutcome::TimedOut { kind }
        }
    };
    let mut after = execution.clone();
    conclude(&mut after, outcome, context);
    Some(after)
}

/// The deadline of the run has passed, and the run will be run again. Only a turn can end it: it knows the policy, and
/// brings all events that no wait has taken.
fn retry_soon(execution: &Execution, attempt: RunAttempt, context: &Context<'_>) -> Execution {
    let mut after = execution.clone();
    after.attempt = Some(RunAttempt { overdue: true, ..attempt });
    make_pending(&mut after, context.now, context.now);
    after
}

/// The deadline that has passed. If both have, the execution's counts.
pub(super) fn passed_deadline(execution: &Execution, now: Timestamp) -> Option<DeadlineKind> {
    let run_deadline_at = execution.counting_run_deadline();
    [(DeadlineKind::Execution, execution.deadline_at), (DeadlineKind::Run, run_deadline_at)]
        .into_iter()
        .find_map(|(kind, at)| at.is_some_and(|at| at <= now).then_some(kind))
}

/// Ends the execution with this outcome. A failure first goes to the workflow's `on_failure` code, and a cancellation to
/// its `on_cancel` code, if there is some and it isn't this code that ends here. What fails after a request to cancel it
/// counts as cancelled.
pub(super) fn conclude(execution: &mut Execution, outcome: ExecutionOutcome, context: &Context<'_>) {
    let outcome = if execution.cancel_requested && outcome.is_failure() {
        ExecutionOutcome::Cancelled { terminated: false }
    } else {
        outcome
    };
    let budget = match &outcome {
        ExecutionOutcome::Failed { .. } | ExecutionOutcome::TimedOut { .. } => execution.on_failure,
        ExecutionOutcome::Cancelled { terminated: false } => execution.on_cancel,
        ExecutionOutcome::Cancelled { terminated: true } | ExecutionOutcome::Completed { .. } => None,
    };
    match (execution.failing.take(), budget) {
        (None, Some(budget)) => start_handler(execution, outcome, budget, context),
        // The original failure stays the outcome, whatever else has failed since.
        (Some(failing), _) if outcome.is_failure() => close(execution, failing.outcome, context),
        (_, _) => close(execution, outcome, context),
    }
}

/// Makes a turn of the `on_failure` or `on_cancel` code pending. Requests to cancel and idle turns before it don't count for
/// it, nor does a pause: its time would pass, and it would never run.
fn start_handler(
    execution: &mut Execution,
    outcome: ExecutionOutcome,
    budget: Millis,
    context: &Context<'_>,
) {
    execution.failing = Some(Failing { outcome, deadline_at: context.now.plus(budget) });
    execution.cancel_requested = false;
    execution.paused = false;
    execution.undoes = false;
    make_pending(execution, context.now, context.now);
}

/// Makes the next turn pending from that instant on, and resets `idle_turns` and `stuck`.
pub(super) fn make_pending(execution: &mut Execution, available_at: Timestamp, now: Timestamp) {
    execution.idle_turns = 0;
    execution.stuck = None;
    release_turn(execution, available_at, now);
}

/// Ends the code's work because a caller has cancelled it: at once if no turn is in progress and the code has nothing to
/// undo, and else by this turn or the next ones, which undo it.
pub(super) fn cancel(execution: &mut Execution, context: &Context<'_>) {
    // A pause would keep the undo steps from starting.
    execution.paused = false;
    if execution.turn().is_some_and(|turn| turn.lease_expires_at > context.now) {
        execution.cancel_requested = true;
        return;
    }
    if !execution.may_undo() {
        return conclude(execution, ExecutionOutcome::Cancelled { terminated: false }, context);
    }
    execution.cancel_requested = true;
    execution.undoes = true;
    make_pending(execution, context.now, context.now);
}

/// Makes the next turn pending after one that was lost, which may have registered undo steps since its last write.
pub(super) fn lose_turn(execution: &mut Execution, now: Timestamp) {
    execution.undoes = true;
    release_turn(execution, now, now);
}

/// The same as [`make_pending`] after a turn that was released or lost: `idle_turns` and `stuck` keep their values.
pub(super) fn release_turn(execution: &mut Execution, available_at: Timestamp, now: Timestamp) {
    execution.hinted_at = None;
    execution.parked = Parked::No;
    let available_at = available_at.max(now);
    let hint_later = available_at.since(now) > QUEUE_DELAY_MAX;
    execution.state = ExecutionState::Pending(Ready { available_at, hint_later });
}

/// How many turns in a row recorded nothing. A lost turn doesn't count if its process had other work in progress: then
/// it is unknown which piece of work was the cause.
pub(super) fn idle_turns(execution: &Execution) -> u32 {
    let is_shared_loss = execution.turn().is_some_and(|turn| turn.shared);
    execution.idle_turns.saturating_sub(u32::from(is_shared_loss))
}

pub(super) fn close(execution: &mut Execution, outcome: ExecutionOutcome, context: &Context<'_>) {
    execution.hinted_at = None;
    execution.stuck = None;
    execution.paused = false;
    execution.progress = None;
    execution.parked = Parked::No;
    execution.admission = execution.admission.take().and_then(Admission::ended);
    let expires_at = context.now.plus(context.limits.kept(execution.parent.is_some()));
    execution.state = ExecutionState::Ended(Closed { outcome, ended_at: context.now, expires_at });
}

/// Whether work is left after the outcome is final: to end steps and children, to notify a parent, or to extend the
/// expiry of items, which is rarely necessary.
pub(super) fn has_work_left(execution: &Execution) -> bool {
    execution.open_steps > 0 || execution.parent.is_some() || retention::expires_before_record(execution)
}

/// When a lease ends that is granted or extended now. It never ends after a deadline, so that its message is received
/// again in time for the deadline to be recorded.
pub(super) fn lease_end(execution: &Execution, length: Millis, now: Timestamp) -> Timestamp {
    let full = now.plus(length);
    due::deadline_at(execution).map_or(full, |at| at.min(full))
}
