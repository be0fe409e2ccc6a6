//! What follows for an inline step: whether it runs, waits or has ended, and what a failure leads to.

use super::Standing;
use crate::duration::Millis;
use crate::execution::journal::StepOutcome;
use crate::payload::Payload;
use crate::retry::{MaxAttempts, RetryPolicy};
use crate::time::{Timestamp, earliest};

/// What a step's timeout is measured over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutScope {
    /// From the first attempt's start over all attempts and the waits between them.
    Global,
    /// Anew for each attempt.
    PerAttempt,
}

/// How an inline step is run.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPolicy {
    /// How often and when it is tried again.
    pub retry: RetryPolicy,
    /// How long it may take.
    pub timeout: Option<Millis>,
    /// What that is measured over.
    pub scope: TimeoutScope,
    /// Whether an attempt that was begun and whose end isn't known is the last one.
    pub at_most_once: bool,
}

/// When everything must have ended: the run's or the execution's deadline, whichever is sooner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The instant.
    pub deadline_at: Option<Timestamp>,
}

/// What is to be done about a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// It runs now.
    Run {
        /// The attempt, from 1.
        attempt: u32,
        /// When the step was first begun.
        first_at: Timestamp,
        /// When its own timeout fires.
        timeout_at: Option<Timestamp>,
    },
    /// It may run from then on.
    Wait {
        /// When.
        next_at: Timestamp,
    },
    /// It was begun and its end isn't known, and it isn't to run twice.
    Interrupted {
        /// The attempt that was lost.
        attempt: u32,
    },
    /// It has ended without running.
    End {
        /// How.
        outcome: StepOutcome,
        /// Attempts that were made.
        attempts: u32,
    },
}

/// What follows a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another one.
    Retry {
        /// When it may begin.
        at: Timestamp,
    },
    /// Nothing: the step has ended like this.
    End(StepOutcome),
}

impl StepPolicy {
    /// What is to be done about a step that stands so.
    pub fn next(&self, standing: &Standing, now: Timestamp) -> Next {
        let (attempt, first_at, next_at) = match standing {
            Standing::Begun { attempt, .. } if self.at_most_once => {
                return Next::Interrupted { attempt: *attempt };
            }
            // Its time was its own, and is over though whoever ran it was lost.
            Standing::Begun { attempt, timeout_at: Some(at), .. }
                if self.scope == TimeoutScope::PerAttempt && *at <= now =>
            {
                return Next::End { outcome: StepOutcome::TimedOut, attempts: *attempt };
            }
            // Whoever ran it was lost: that attempt doesn't count.
            Standing::Begun { attempt, first_at, .. } => (*attempt, *first_at, None),
            Standing::Failed { attempt, first_at, next_at, .. } => {
                (attempt.saturating_add(1), *first_at, Some(*next_at))
            }
            Standing::Fresh
            | Standing::Remote
            | Standing::Child { .. }
            | Standing::Ended { .. }
            | Standing::Captured(_)
            | Standing::Until(_)
            | Standing::Fired
            | Standing::Waited(_) => (1, now, None),
        };
        let made = attempt.saturating_sub(1);
        if self.retry.max_attempts == MaxAttempts::Skip {
            return Next::End { outcome: StepOutcome::Cancelled, attempts: made };
        }
        let timeout_at = self.timeout_at(first_at, next_at.map_or(now, |at| at.max(now)));
        if timeout_at.is_some_and(|at| at <= now) {
            return Next::End { outcome: StepOutcome::TimedOut, attempts: made };
        }
        match next_at.filter(|at| *at > now) {
            Some(next_at) => Next::Wait { next_at },
            None => Next::Run { attempt, first_at, timeout_at },
        }
    }

    /// What follows the failure of an attempt with this code; `error` is what the step would end with.
    pub fn after_failure(&self, failed: &FailedAttempt<'_>, bounds: Bounds, error: Payload) -> AfterFailure {
        let FailedAttempt { attempt, first_at, code, seed, now } = *failed;
        if !self.retry.is_retryable(code) {
            return AfterFailure::End(StepOutcome::Failed { error });
        }
        if !self.retry.attempts_left(attempt) {
            let once = matches!(self.retry.max_attempts, MaxAttempts::Limited(limit) if limit.get() == 1);
            return AfterFailure::End(if once {
                StepOutcome::Failed { error }
            } else {
                StepOutcome::Exhausted { error }
            });
        }
        let at = now.plus(self.retry.delay_before_next(attempt, seed));
        // A retry that can't begin in time fails at once instead of waiting for the deadline.
        let timeout_at = match self.scope {
            TimeoutScope::Global => self.timeout_at(first_at, now),
            TimeoutScope::PerAttempt => None,
        };
        if timeout_at.is_some_and(|timeout_at| timeout_at <= at) {
            return AfterFailure::End(StepOutcome::TimedOut);
        }
        if bounds.deadline_at.is_some_and(|deadline_at| deadline_at <= at) {
            return AfterFailure::End(StepOutcome::DeadlineExceeded);
        }
        AfterFailure::Retry { at }
    }

    fn timeout_at(&self, first_at: Timestamp, attempt_at: Timestamp) -> Option<Timestamp> {
        let from = match self.scope {
            TimeoutScope::Global => first_at,
            TimeoutScope::PerAttempt => attempt_at,
        };
        self.timeout.map(|timeout| from.plus(timeout))
    }
}

/// An attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedAttempt<'a> {
    /// The attempt, from 1.
    pub attempt: u32,
    /// When the step was first begun.
    pub first_at: Timestamp,
    /// What sort of error it was.
    pub code: &'a str,
    /// What spreads the delays; differs from step to step.
    pub seed: u64,
    /// The time.
    pub now: Timestamp,
}

impl Bounds {
    /// The sooner of some instants that may each be absent.
    pub fn of(instants: impl IntoIterator<Item = Option<Timestamp>>) -> Self {
        Self { deadline_at: earliest(instants) }
    }
}
