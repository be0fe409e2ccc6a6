//! The next action for an inline step: whether it runs, waits or has ended, and what follows a failure.

use super::NameState;
use crate::duration::Millis;
use crate::execution::journal::StepOutcome;
use crate::failure::Failure;
use crate::payload::Payload;
use crate::retry::{MaxAttempts, RetryPolicy};
use crate::time::{Timestamp, earliest};
use crate::timeout::{AttemptTimeout, Expired, ExpiredKind, OnTimeout};

/// The policy of an inline step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPolicy {
    /// How many times and when it is retried.
    pub retry: RetryPolicy,
    /// The timeout over all attempts, from the start of the first one, waits between attempts included. When it passes,
    /// the step ends.
    pub timeout: Option<Millis>,
    /// The timeout of each attempt from its start, and what follows when it passes.
    pub attempt_timeout: Option<AttemptTimeout>,
    /// How long an attempt may run without a sign of life from its code, and what follows then.
    pub heartbeat: Option<AttemptTimeout>,
    /// Whether an attempt that started and whose end is unknown, or that timed out, is the last one.
    pub at_most_once: bool,
}

/// The deadline of the run or of the execution, whichever is earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub deadline_at: Option<Timestamp>,
}

/// The next action for a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// It runs now.
    Run {
        /// The attempt, from 1.
        attempt: u32,
        /// When the step first started.
        first_at: Timestamp,
        /// When this attempt times out, by its own timeout or by the one over all attempts.
        limit: Option<Expired>,
    },
    /// It may run from then on.
    Wait { next_at: Timestamp },
    /// An attempt started and its end is unknown, but its timeout has passed: it counts as timed out.
    TimedOut {
        attempt: u32,
        /// When the step first started.
        first_at: Timestamp,
        /// By what, and when.
        expired: Expired,
    },
    /// An attempt started and its end is unknown, and the step must not run twice.
    Interrupted {
        /// The attempt that was lost.
        attempt: u32,
    },
    /// Its policy allows no attempt: it ends as cancelled.
    Skip {
        /// How many attempts were made.
        attempts: u32,
    },
    /// The timeout over all attempts has passed before it could run.
    Over {
        /// How many attempts were made.
        attempts: u32,
        expired: Expired,
    },
}

/// What follows an attempt that failed or timed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another attempt.
    Retry {
        /// When it may start.
        at: Timestamp,
    },
    /// No further attempt: the step ends with this outcome.
    End(StepOutcome),
    /// No further attempt: this time limit ends the step.
    TimedOut(Expired),
    /// No further attempt: this time limit cancels the step.
    Cancelled(Expired),
}

impl StepPolicy {
    /// The next action for a step in this state.
    pub fn next(&self, name_state: &NameState, now: Timestamp) -> Next {
        let (attempt, first_at, next_at) = match name_state {
            // The attempt has timed out, although its worker was lost.
            NameState::InProgress { attempt, first_at, timeout_at: Some(timeout_at), .. }
                if *timeout_at <= now && self.is_bound(*first_at, now) =>
            {
                let expired = self.total(*first_at).filter(|total| total.deadline_at <= now);
                let own = Expired { kind: ExpiredKind::StartToClose, deadline_at: *timeout_at };
                let (attempt, first_at) = (*attempt, *first_at);
                return Next::TimedOut { attempt, first_at, expired: expired.unwrap_or(own) };
            }
            NameState::InProgress { attempt, .. } if self.at_most_once => {
                return Next::Interrupted { attempt: *attempt };
            }
            // Its worker was lost: that attempt doesn't count.
            NameState::InProgress { attempt, first_at, .. } => (*attempt, *first_at, None),
            NameState::Failed { attempt, first_at, next_at, .. } => {
                (attempt.saturating_add(1), *first_at, Some(*next_at))
            }
            NameState::Fresh
            | NameState::Remote
            | NameState::Child { .. }
            | NameState::Ended { .. }
            | NameState::Captured(_)
            | NameState::Until(_)
            | NameState::Fired
            | NameState::Waited(_) => (1, now, None),
        };
        let made = attempt.saturating_sub(1);
        if self.retry.max_attempts == MaxAttempts::Skip {
            return Next::Skip { attempts: made };
        }
        if let Some(expired) = self.total(first_at).filter(|total| total.deadline_at <= now) {
            return Next::Over { attempts: made, expired };
        }
        match next_at.filter(|at| *at > now) {
            Some(next_at) => Next::Wait { next_at },
            None => Next::Run { attempt, first_at, limit: self.limit(first_at, now) },
        }
    }

    /// When and by what an attempt that starts at `begins_at` times out: by its own timeout, or by the one over all
    /// attempts. If both pass at one instant, the latter counts.
    pub fn limit(&self, first_at: Timestamp, begins_at: Timestamp) -> Option<Expired> {
        let own = self.attempt_timeout.map(|timeout| Expired {
            kind: ExpiredKind::StartToClose,
            deadline_at: begins_at.plus(timeout.after),
        });
        [self.total(first_at), own].into_iter().flatten().min_by_key(|limit| limit.deadline_at)
    }

    /// Whether an attempt is recorded before it runs: its step's window must not begin again if its worker is lost, or
    /// it must not run twice.
    pub const fn is_recorded_first(&self) -> bool {
        self.at_most_once || self.timeout.is_some() || self.heartbeat.is_some()
    }

    /// The instant that is recorded with an attempt: from then on it counts as timed out, though its worker says
    /// nothing. An attempt that may be followed by another one in the same turn has only the timeout over all attempts,
    /// because those aren't recorded each.
    pub fn recorded_timeout_at(&self, first_at: Timestamp, begins_at: Timestamp) -> Option<Timestamp> {
        let limit = if self.at_most_once { self.limit(first_at, begins_at) } else { self.total(first_at) };
        limit.map(|limit| limit.deadline_at)
    }

    /// The maximum duration of one attempt.
    pub fn longest_attempt(&self) -> Option<Millis> {
        [self.timeout, self.attempt_timeout.map(|timeout| timeout.after)].into_iter().flatten().min()
    }

    /// What follows the failure of an attempt with this code. `error` is the error that the step would end with.
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

    /// What follows an attempt that timed out, as with tasks. The step has no error of its own then, so a step whose
    /// last attempt timed out has timed out.
    pub fn after_timeout(&self, ended: &EndedAttempt, expired: Expired, bounds: Bounds) -> AfterFailure {
        // The timeout over all attempts ends the step.
        if let Some(total) = self.total(ended.first_at).filter(|total| total.deadline_at <= ended.now) {
            return AfterFailure::TimedOut(total);
        }
        let timed_out = AfterFailure::TimedOut(expired);
        let timeout =
            if expired.kind == ExpiredKind::Heartbeat { self.heartbeat } else { self.attempt_timeout };
        match timeout.map(|timeout| timeout.on_timeout) {
            Some(OnTimeout::Cancel) => AfterFailure::Cancelled(expired),
            // It is unknown how far the attempt had come when it was stopped.
            Some(OnTimeout::Retry) if !self.at_most_once && self.retry.attempts_left(ended.attempt) => {
                self.again(ended, bounds)
            }
            Some(OnTimeout::Retry | OnTimeout::Terminal) | None => timed_out,
        }
    }

    /// Another attempt, unless it would start too late.
    fn again(&self, ended: &EndedAttempt, bounds: Bounds) -> AfterFailure {
        let at = ended.now.plus(self.retry.delay_before_next(ended.attempt, ended.seed));
        // A retry that can't start in time fails at once instead of waiting for the deadline.
        if let Some(total) = self.total(ended.first_at).filter(|total| total.deadline_at <= at) {
            return AfterFailure::TimedOut(total);
        }
        if bounds.deadline_at.is_some_and(|deadline_at| deadline_at <= at) {
            return AfterFailure::End(StepOutcome::DeadlineExceeded);
        }
        AfterFailure::Retry { at }
    }

    /// Whether the timeout that the journal has for an attempt still applies. The code may allow more time by now.
    fn is_bound(&self, first_at: Timestamp, now: Timestamp) -> bool {
        let has_own = self.at_most_once && self.attempt_timeout.is_some();
        has_own || self.total(first_at).is_some_and(|total| total.deadline_at <= now)
    }

    /// The timeout over all attempts.
    fn total(&self, first_at: Timestamp) -> Option<Expired> {
        let kind = ExpiredKind::ScheduleToClose;
        self.timeout.map(|timeout| Expired { kind, deadline_at: first_at.plus(timeout) })
    }
}

/// An attempt that has ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedAttempt {
    /// The attempt, from 1.
    pub attempt: u32,
    /// When the step first started.
    pub first_at: Timestamp,
    /// The seed of the delays' jitter. It differs from step to step.
    pub seed: u64,
    pub now: Timestamp,
}

/// The failure recorded for an attempt that timed out and is retried. It has the same code as with tasks.
pub fn timed_out(expired: Expired) -> Failure {
    let what = match expired.kind {
        ExpiredKind::Heartbeat => "the attempt gave no sign of life",
        ExpiredKind::ScheduleToClose
        | ExpiredKind::ScheduleToStart
        | ExpiredKind::StartToClose
        | ExpiredKind::Execution
        | ExpiredKind::Run => "the attempt ran too long",
    };
    let message =
        format!("{what}: it timed out ({}) at {}", expired.kind.as_str(), expired.deadline_at.to_rfc3339());
    Failure::new("timed_out", message)
}

impl Bounds {
    /// The earliest of several instants, each of which may be absent.
    pub fn of(instants: impl IntoIterator<Item = Option<Timestamp>>) -> Self {
        Self { deadline_at: earliest(instants) }
    }
}
