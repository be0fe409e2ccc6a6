//! What follows for an inline step: whether it runs, waits or has ended, and what a failure leads to.

use super::Standing;
use crate::duration::Millis;
use crate::execution::journal::StepOutcome;
use crate::failure::Failure;
use crate::payload::Payload;
use crate::retry::{MaxAttempts, RetryPolicy};
use crate::time::{Timestamp, earliest};
use crate::timeout::{AttemptTimeout, OnTimeout};

/// How an inline step is run.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPolicy {
    /// How often and when it is tried again.
    pub retry: RetryPolicy,
    /// How long it may take, from the first attempt's start over all attempts and the waits between them. It is final.
    pub timeout: Option<Millis>,
    /// How long each attempt may take from its start, and what follows one that takes longer.
    pub attempt_timeout: Option<AttemptTimeout>,
    /// Whether an attempt that was begun and whose end isn't known is the last one, and likewise one that timed out.
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
        /// When its time is over: that of this attempt, or of all of them.
        timeout_at: Option<Timestamp>,
    },
    /// It may run from then on.
    Wait {
        /// When.
        next_at: Timestamp,
    },
    /// An attempt was begun and its end isn't known, but its time is over: that counts as one that timed out.
    TimedOut {
        /// The attempt.
        attempt: u32,
        /// When the step was first begun.
        first_at: Timestamp,
        /// When its time was over.
        timeout_at: Timestamp,
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

/// What follows an attempt that failed or timed out.
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
            // Its time is over though whoever ran it was lost.
            Standing::Begun { attempt, first_at, timeout_at: Some(timeout_at), .. }
                if *timeout_at <= now && self.is_bound(*first_at, now) =>
            {
                let (attempt, first_at, timeout_at) = (*attempt, *first_at, *timeout_at);
                return Next::TimedOut { attempt, first_at, timeout_at };
            }
            Standing::Begun { attempt, .. } if self.at_most_once => {
                return Next::Interrupted { attempt: *attempt };
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
        if self.is_over(first_at, now) {
            return Next::End { outcome: StepOutcome::TimedOut, attempts: made };
        }
        match next_at.filter(|at| *at > now) {
            Some(next_at) => Next::Wait { next_at },
            None => Next::Run { attempt, first_at, timeout_at: self.timeout_at(first_at, now) },
        }
    }

    /// When the time of an attempt is over that begins at an instant: its own, or that of all attempts.
    pub fn timeout_at(&self, first_at: Timestamp, begins_at: Timestamp) -> Option<Timestamp> {
        let own = self.attempt_timeout.map(|timeout| begins_at.plus(timeout.after));
        earliest([self.over_at(first_at), own])
    }

    /// The longest that one attempt can take.
    pub fn longest_attempt(&self) -> Option<Millis> {
        [self.timeout, self.attempt_timeout.map(|timeout| timeout.after)].into_iter().flatten().min()
    }

    /// What follows the failure of an attempt with this code; `error` is what the step would end with.
    pub fn after_failure(
        &self,
        ended: &EndedAttempt,
        code: &str,
        bounds: Bounds,
        error: Payload,
    ) -> AfterFailure {
        if !self.retry.is_retryable(code) {
            return AfterFailure::End(StepOutcome::Failed { error });
        }
        if !self.retry.attempts_left(ended.attempt) {
            let once = matches!(self.retry.max_attempts, MaxAttempts::Limited(limit) if limit.get() == 1);
            return AfterFailure::End(if once {
                StepOutcome::Failed { error }
            } else {
                StepOutcome::Exhausted { error }
            });
        }
        self.again(ended, bounds)
    }

    /// What follows an attempt whose time is over, as it does with tasks. There is no error of the step's own, so a
    /// step whose last attempt timed out has timed out.
    pub fn after_timeout(&self, ended: &EndedAttempt, bounds: Bounds) -> AfterFailure {
        let timed_out = AfterFailure::End(StepOutcome::TimedOut);
        // The time over all attempts is final.
        if self.is_over(ended.first_at, ended.now) {
            return timed_out;
        }
        match self.attempt_timeout.map(|timeout| timeout.on_timeout) {
            Some(OnTimeout::Cancel) => AfterFailure::End(StepOutcome::Cancelled),
            // Nobody knows how far an attempt had come that was broken off.
            Some(OnTimeout::Retry) if !self.at_most_once && self.retry.attempts_left(ended.attempt) => {
                self.again(ended, bounds)
            }
            Some(OnTimeout::Retry | OnTimeout::Terminal) | None => timed_out,
        }
    }

    /// Another attempt, unless it would begin too late.
    fn again(&self, ended: &EndedAttempt, bounds: Bounds) -> AfterFailure {
        let at = ended.now.plus(self.retry.delay_before_next(ended.attempt, ended.seed));
        // A retry that can't begin in time fails at once instead of waiting for the deadline.
        if self.is_over(ended.first_at, at) {
            return AfterFailure::End(StepOutcome::TimedOut);
        }
        if bounds.deadline_at.is_some_and(|deadline_at| deadline_at <= at) {
            return AfterFailure::End(StepOutcome::DeadlineExceeded);
        }
        AfterFailure::Retry { at }
    }

    /// Whether an attempt's time that is over by the journal still binds it. The code may give it more by now.
    fn is_bound(&self, first_at: Timestamp, now: Timestamp) -> bool {
        self.attempt_timeout.is_some() || self.is_over(first_at, now)
    }

    /// When the time over all attempts is over.
    fn over_at(&self, first_at: Timestamp) -> Option<Timestamp> {
        self.timeout.map(|timeout| first_at.plus(timeout))
    }

    /// Whether that has come.
    fn is_over(&self, first_at: Timestamp, now: Timestamp) -> bool {
        self.over_at(first_at).is_some_and(|at| at <= now)
    }
}

/// An attempt that is over and brought no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedAttempt {
    /// The attempt, from 1.
    pub attempt: u32,
    /// When the step was first begun.
    pub first_at: Timestamp,
    /// What spreads the delays; differs from step to step.
    pub seed: u64,
    /// The time.
    pub now: Timestamp,
}

/// What is remembered of an attempt whose time was over and that another one follows, with the code that tasks have.
pub fn timed_out(timeout_at: Timestamp) -> Failure {
    let message = format!("the attempt ran too long: its time was over at {}", timeout_at.to_rfc3339());
    Failure::new("timed_out", message)
}

impl Bounds {
    /// The sooner of some instants that may each be absent.
    pub fn of(instants: impl IntoIterator<Item = Option<Timestamp>>) -> Self {
        Self { deadline_at: earliest(instants) }
    }
}
