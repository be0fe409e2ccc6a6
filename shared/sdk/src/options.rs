//! How steps and workflows are to be run: what attributes and builders fill in and the engine goes by.
//!
//! Owns the forms that retries and lengths of time are written in. It runs nothing.

use std::time::Duration;

use serde_json::Value;
use tickover_core::duration::{DurationError, Millis, ZeroRule};
use tickover_core::execution::ExecutionTimeouts;
use tickover_core::execution::command::CodeTerms;
use tickover_core::id::QueueName;
use tickover_core::policy::PolicyError;
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::{AttemptTimeout, OnTimeout};

use crate::turn::ON_FAILURE;

/// The queue of workflows that name none.
pub const DEFAULT_QUEUE: &str = "workflows";

/// What a step's `timeout` is measured over. It is final under either scope, whatever attempts are left: one that is
/// retried is the `attempt_timeout`. Both are capped by the deadlines of the run and the execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// From the first attempt's start over all attempts and the waits between them.
    #[default]
    Global,
    /// Final for the step when it fires, and measured anew for each attempt.
    PerAttempt,
}

/// Where a step runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In the worker that runs the workflow, within its invocation.
    #[default]
    Inline,
    /// As a task of its own, on whatever worker claims it.
    Remote {
        /// The queue it is scheduled on; the workflow's own without one.
        queue: Option<QueueName>,
    },
}

/// How a step is run. The default is one attempt, in place, without a timeout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOptions {
    /// How often and when it is tried again.
    pub retry: RetryPolicy,
    /// How long it may take; without limit when there is none. It is final.
    pub timeout: Option<Millis>,
    /// What the timeout is measured over.
    pub scope: Scope,
    /// How long each attempt may take from its start; what follows, `on_timeout` says.
    pub attempt_timeout: Option<Millis>,
    /// How long an attempt of a remote step may go without a heartbeat of its worker; what follows, `on_timeout` says.
    pub heartbeat: Option<Millis>,
    /// What follows an attempt that exceeds one of those two.
    pub on_timeout: OnTimeout,
    /// Where it runs.
    pub place: Place,
    /// Write each attempt down before it starts, so that one whose worker was lost, or which timed out, isn't followed
    /// by another.
    pub at_most_once: bool,
    /// Write the timeouts down before the step starts, so that they fire though the worker is lost.
    pub durable_timeout: bool,
}

impl StepOptions {
    /// How long each attempt may take, and what follows one that takes longer.
    pub(crate) fn each_attempt(&self) -> Option<AttemptTimeout> {
        match self.timeout.filter(|_| self.scope == Scope::PerAttempt) {
            Some(after) => Some(AttemptTimeout { after, on_timeout: OnTimeout::Terminal }),
            None => self.attempt(self.attempt_timeout),
        }
    }

    /// How long an attempt may go without a heartbeat, and what follows one that goes longer.
    pub(crate) fn heartbeat(&self) -> Option<AttemptTimeout> {
        self.attempt(self.heartbeat)
    }

    /// How long all attempts may take together.
    pub(crate) fn all_attempts(&self) -> Option<Millis> {
        self.timeout.filter(|_| self.scope == Scope::Global)
    }

    /// What contradicts itself.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let twice =
            self.scope == Scope::PerAttempt && self.timeout.is_some() && self.attempt_timeout.is_some();
        twice.then_some(
            "attempt_timeout: a timeout with the scope per_attempt limits the same; give only one of them",
        )
    }

    fn attempt(&self, after: Option<Millis>) -> Option<AttemptTimeout> {
        after.map(|after| AttemptTimeout { after, on_timeout: self.on_timeout })
    }
}

/// How a workflow is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkflowOptions {
    /// How long an execution may take over all its runs; without limit when there is none.
    pub execution_timeout: Option<Millis>,
    /// How long each run may take; without limit when there is none.
    pub run_timeout: Option<Millis>,
    /// How long what runs on its failure may take; the engine's default when there is none.
    pub on_failure_timeout: Option<Millis>,
    /// The queue its turns are handed out on.
    pub queue: &'static str,
    /// The changes of its code that running executions may not know yet.
    pub patches: &'static [&'static str],
    /// What is done where the code doesn't ask for what is remembered.
    pub on_drift: OnDrift,
}

/// What is done where a run remembers results that the workflow's code doesn't ask for, as it has been changed: a step
/// with another name would run again. They are named in the log, by `explain` and in the timeline either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDrift {
    /// The run goes on.
    #[default]
    GoOn,
    /// Nothing new begins: the execution waits for an operator, who has it go on once the code is mended.
    Stop,
}

impl WorkflowOptions {
    /// No timeout, no patch, the queue [`DEFAULT_QUEUE`].
    pub const fn new() -> Self {
        Self {
            execution_timeout: None,
            run_timeout: None,
            on_failure_timeout: None,
            queue: DEFAULT_QUEUE,
            patches: &[],
            on_drift: OnDrift::GoOn,
        }
    }
}

impl WorkflowOptions {
    /// What it says of executions, of a workflow with code for its failure or without.
    pub(crate) fn terms(&self, deals_with_failure: bool) -> CodeTerms {
        let timeouts = ExecutionTimeouts { execution: self.execution_timeout, run: self.run_timeout };
        let on_failure = deals_with_failure.then(|| self.on_failure_timeout.unwrap_or(ON_FAILURE));
        CodeTerms { timeouts, on_failure }
    }
}

impl Default for WorkflowOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// What is taken for a length of time: text such as `"1h 30m"` (digits alone are milliseconds), a
/// [`Duration`], or [`Millis`].
pub trait IntoMillis {
    /// The length in milliseconds. A [`Duration`] between two of them is rounded up, so that a timeout never
    /// fires early.
    fn into_millis(self, zero: ZeroRule) -> Result<Millis, DurationError>;
}

impl IntoMillis for &str {
    fn into_millis(self, zero: ZeroRule) -> Result<Millis, DurationError> {
        match zero {
            ZeroRule::Allow => Millis::parse_allowing_zero(self),
            ZeroRule::Reject => Millis::parse(self),
        }
    }
}

impl IntoMillis for String {
    fn into_millis(self, zero: ZeroRule) -> Result<Millis, DurationError> {
        self.as_str().into_millis(zero)
    }
}

impl IntoMillis for &String {
    fn into_millis(self, zero: ZeroRule) -> Result<Millis, DurationError> {
        self.as_str().into_millis(zero)
    }
}

impl IntoMillis for Duration {
    fn into_millis(self, zero: ZeroRule) -> Result<Millis, DurationError> {
        let ms = self.as_nanos().div_ceil(1_000_000);
        // Longer than u64 holds is longer than any duration: the limit's own error says so.
        Millis::from_json(&Value::from(u64::try_from(ms).unwrap_or(u64::MAX)), zero)
    }
}

impl IntoMillis for Millis {
    fn into_millis(self, zero: ZeroRule) -> Result<Millis, DurationError> {
        Self::from_json(&Value::from(self.as_u64()), zero)
    }
}

/// What is taken for a retry policy: a short form such as `"exponential(3, 2s)"`, or a [`RetryPolicy`].
pub trait IntoRetry {
    /// The policy, held to its limits.
    fn into_retry(self) -> Result<RetryPolicy, PolicyError>;
}

impl IntoRetry for &str {
    fn into_retry(self) -> Result<RetryPolicy, PolicyError> {
        RetryPolicy::parse(self)
    }
}

impl IntoRetry for String {
    fn into_retry(self) -> Result<RetryPolicy, PolicyError> {
        self.as_str().into_retry()
    }
}

impl IntoRetry for RetryPolicy {
    fn into_retry(self) -> Result<RetryPolicy, PolicyError> {
        self.check()?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use tickover_core::duration::DurationProblem;

    use super::*;

    #[test]
    fn a_length_of_time_is_never_shortened() {
        let read = |duration: Duration| duration.into_millis(ZeroRule::Reject).map(Millis::as_u64);
        assert_eq!(read(Duration::from_micros(1)), Ok(1));
        assert_eq!(read(Duration::from_micros(1_500)), Ok(2));
        assert_eq!(read(Duration::ZERO).unwrap_err().problem, DurationProblem::Zero);
        assert_eq!(read(Duration::MAX).unwrap_err().problem, DurationProblem::TooLong);
    }

    #[test]
    fn a_policy_built_by_hand_is_held_to_the_limits() {
        let endless_growth = RetryPolicy { backoff: f64::INFINITY, ..RetryPolicy::none() };
        assert_eq!(endless_growth.into_retry().unwrap_err().path, "backoff");
        assert!("fixed(3, 2s)".into_retry().is_ok());
    }
}
