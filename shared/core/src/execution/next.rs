//! What happens next to an execution by itself, and when. This answers why an execution is still open.

use crate::execution::due::attempt_timeout_at;
use crate::execution::{DeadlineKind, Execution, ExecutionOutcome, ExecutionState, Waiting};
use crate::flow::Paced;
use crate::time::Timestamp;

/// What happens next if no caller acts on the execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub what: NextStep,
    /// When it happens; absent if that depends on others.
    pub at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Its next turn may start from then on.
    Available,
    /// This run starts then, as a retry of the run before, which failed.
    Retry,
    /// By the rate of its key, its first turn may start from then on.
    Rate,
    /// A worker has to start its next turn. No deadline limits that wait.
    Turn,
    /// Its worker counts as lost from then on, and another worker may take over.
    LeaseExpiry,
    /// An attempt of a step times out. If its worker doesn't report that, another worker takes over.
    StepTimeout,
    /// A sleep ends, a wait times out, or a step is retried.
    WakeUp,
    /// It checks whether the steps and children that it waits for have ended, in case a notification was lost.
    Recheck,
    /// It waits for an event, or for the end of a step or child.
    Others,
    /// An operator has to resume it.
    Operator,
    /// This deadline passes.
    Deadline(DeadlineKind),
    /// The deadline of the `on_failure` code passes.
    FailureDeadline,
    /// The deadline of the `on_cancel` code passes.
    CancelDeadline,
    /// The steps and children that it left open are ended.
    Closing,
    Deletion,
}

impl NextStep {
    /// The name that answers use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Available => "becomes_available",
            Self::Retry => "run_starts",
            Self::Rate => "waits_for_rate",
            Self::Turn => "waits_for_worker",
            Self::LeaseExpiry => "lease_expires",
            Self::StepTimeout => "step_times_out",
            Self::WakeUp => "wakes_up",
            Self::Recheck => "looks_again",
            Self::Others => "waits_for_others",
            Self::Operator => "waits_for_operator",
            Self::Deadline(DeadlineKind::Execution) => "execution_timeout",
            Self::Deadline(DeadlineKind::Run) => "run_timeout",
            Self::FailureDeadline => "on_failure_timeout",
            Self::CancelDeadline => "on_cancel_timeout",
            Self::Closing => "closes",
            Self::Deletion => "deleted",
        }
    }
}

/// What happens next to this execution. If several happen at one instant, the one that takes precedence is named.
pub fn next(execution: &Execution, now: Timestamp) -> Next {
    let deadlines = deadlines(execution);
    let first_of = |own: &[Option<Next>], otherwise: NextStep| {
        let all = deadlines.iter().chain(own).flatten();
        // min_by_key keeps the first of equals.
        all.min_by_key(|next| next.at).copied().unwrap_or(Next { what: otherwise, at: None })
    };
    match &execution.state {
        ExecutionState::Closing(_) => Next { what: NextStep::Closing, at: None },
        ExecutionState::Ended(closed) => Next { what: NextStep::Deletion, at: Some(closed.expires_at) },
        ExecutionState::Running(turn) => {
            let step = at(NextStep::StepTimeout, attempt_timeout_at(execution));
            first_of(&[step, at(NextStep::LeaseExpiry, Some(turn.lease_expires_at))], NextStep::Turn)
        }
        ExecutionState::Pending(_) | ExecutionState::Waiting(_) if execution.needs_operator() => {
            first_of(&[], NextStep::Operator)
        }
        ExecutionState::Pending(ready) => {
            let available = Some(ready.available_at).filter(|_| !execution.is_ready(ready, now));
            let by_rate = rate_waited_for(execution, now).is_some();
            let step = if by_rate {
                NextStep::Rate
            } else if execution.retry_starts_at().is_some() {
                NextStep::Retry
            } else {
                NextStep::Available
            };
            first_of(&[at(step, available)], NextStep::Turn)
        }
        ExecutionState::Waiting(waiting) if is_woken(execution, waiting, now) => {
            first_of(&[], NextStep::Turn)
        }
        ExecutionState::Waiting(waiting) => {
            let recheck = waiting.recheck.map(|recheck| recheck.at);
            let own = [at(NextStep::WakeUp, waiting.until), at(NextStep::Recheck, recheck)];
            first_of(&own, NextStep::Others)
        }
    }
}

/// The key by whose rate its first turn has to wait.
pub fn rate_waited_for(execution: &Execution, now: Timestamp) -> Option<&Paced> {
    let paced = execution.admission.as_deref()?.paced.as_ref()?;
    paced.start.filter(|start| start.start_at > now).map(|_| paced)
}

fn at(what: NextStep, at: Option<Timestamp>) -> Option<Next> {
    at.map(|at| Next { what, at: Some(at) })
}

/// The deadlines that count now: while the `on_failure` or `on_cancel` code runs, only its own.
fn deadlines(execution: &Execution) -> [Option<Next>; 2] {
    if let Some(failing) = &execution.failing {
        let is_cancelled = matches!(failing.outcome, ExecutionOutcome::Cancelled { .. });
        let what = if is_cancelled { NextStep::CancelDeadline } else { NextStep::FailureDeadline };
        return [at(what, Some(failing.deadline_at)), None];
    }
    [
        at(NextStep::Deadline(DeadlineKind::Execution), execution.deadline_at),
        at(NextStep::Deadline(DeadlineKind::Run), execution.counting_run_deadline()),
    ]
}

/// Whether something has happened that lets a waiting execution continue.
fn is_woken(execution: &Execution, waiting: &Waiting, now: Timestamp) -> bool {
    waiting.wake_requested
        || execution.wakes > waiting.seen_wakes
        || waiting.until.is_some_and(|until| until <= now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duration::Millis;
    use crate::execution::journal::{Entry, Happened};
    use crate::execution::{Closed, Failing, Ready, Turn, attempts, fixture};
    use crate::id::{LeaseId, StepName};
    use crate::limits::Limits;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn later(seconds: u64) -> Timestamp {
        NOW.plus(Millis::from_secs(seconds))
    }

    fn execution(state: ExecutionState) -> Execution {
        Execution { state, due: None, ..fixture::pending(NOW) }
    }

    fn pending(available_at: Timestamp) -> Execution {
        execution(ExecutionState::Pending(Ready { available_at, hint_later: false }))
    }

    fn waiting(until: Option<Timestamp>) -> Execution {
        execution(ExecutionState::Waiting(Waiting {
            since: NOW,
            seen_wakes: 0,
            until,
            hint_later: false,
            recheck: None,
            wake_requested: false,
            events: vec![],
            has_more_events: false,
        }))
    }

    #[track_caller]
    fn says(execution: &Execution, what: NextStep, at: Option<Timestamp>) {
        assert_eq!(next(execution, NOW), Next { what, at });
    }

    #[test]
    fn a_pending_one_becomes_available_and_then_waits_for_a_worker_up_to_its_deadline() {
        says(&pending(later(5)), NextStep::Available, Some(later(5)));
        says(&pending(NOW), NextStep::Turn, None);
        let bound = Execution { run_deadline_at: Some(later(9)), ..pending(NOW) };
        says(&bound, NextStep::Deadline(DeadlineKind::Run), Some(later(9)));
    }

    #[test]
    fn of_both_deadlines_at_one_instant_the_executions_is_named() {
        let both = Execution { deadline_at: Some(later(9)), run_deadline_at: Some(later(9)), ..pending(NOW) };
        says(&both, NextStep::Deadline(DeadlineKind::Execution), Some(later(9)));
    }

    #[test]
    fn a_waiting_one_wakes_by_its_timer_or_by_others() {
        says(&waiting(Some(later(3))), NextStep::WakeUp, Some(later(3)));
        says(&waiting(None), NextStep::Others, None);
        says(&Execution { wakes: 1, ..waiting(None) }, NextStep::Turn, None);
        let bound = Execution { deadline_at: Some(later(2)), ..waiting(Some(later(3))) };
        says(&bound, NextStep::Deadline(DeadlineKind::Execution), Some(later(2)));
    }

    #[test]
    fn a_paused_one_waits_for_an_operator_while_its_deadlines_run() {
        let paused = Execution { paused: true, ..waiting(Some(later(3))) };
        says(&paused, NextStep::Operator, None);
        let bound = Execution { deadline_at: Some(later(9)), ..paused };
        says(&bound, NextStep::Deadline(DeadlineKind::Execution), Some(later(9)));
    }

    #[test]
    fn while_a_failure_is_dealt_with_only_the_time_for_that_counts() {
        let outcome = ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution };
        let failing = Some(Failing { outcome, deadline_at: later(60) });
        let one = Execution { deadline_at: Some(NOW), failing, ..pending(NOW) };
        says(&one, NextStep::FailureDeadline, Some(later(60)));
        let outcome = ExecutionOutcome::Cancelled { terminated: false };
        let cancelled = Execution { failing: Some(Failing { outcome, deadline_at: later(60) }), ..one };
        says(&cancelled, NextStep::CancelDeadline, Some(later(60)));
    }

    #[test]
    fn a_running_one_may_lose_its_worker_and_an_ended_one_is_deleted() {
        let turn = Turn {
            lease: LeaseId::from_bytes([1; LeaseId::LEN]),
            worker: None,
            claimed_at: NOW,
            lease_length: Millis::from_secs(60),
            lease_expires_at: later(60),
            shared: false,
            after_loss: false,
            outside: false,
            timed_attempts: vec![],
        };
        let mut running = execution(ExecutionState::Running(turn));
        says(&running, NextStep::LeaseExpiry, Some(later(60)));
        let what = Happened::Attempt {
            name: StepName::parse("charge").unwrap(),
            attempt: 1,
            first_at: NOW,
            error: None,
            next_at: Some(later(30)),
            progress: None,
            details: None,
            is_ongoing: false,
            errors: vec![],
        };
        attempts::note(&mut running, &[Entry { at: NOW, what }], &Limits::default());
        says(&running, NextStep::StepTimeout, Some(later(31)));
        let outcome = ExecutionOutcome::Cancelled { terminated: false };
        let closed = Closed { outcome, ended_at: NOW, expires_at: later(90) };
        says(&execution(ExecutionState::Closing(closed.clone())), NextStep::Closing, None);
        says(&execution(ExecutionState::Ended(closed)), NextStep::Deletion, Some(later(90)));
    }
}
