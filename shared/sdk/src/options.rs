//! Options of steps and workflows: the attributes and builders fill them in, and the engine reads them.
//!
//! Owns the forms in which retries and durations are written. It runs nothing.

pub(crate) mod asked;
pub(crate) mod flow;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tickover_core::duration::{DurationError, Millis, ZeroRule};
use tickover_core::execution::ExecutionTimeouts;
use tickover_core::execution::command::CodeTerms;
use tickover_core::flow::FlowRequest;
use tickover_core::id::QueueName;
use tickover_core::kind::Policy;
use tickover_core::policy::PolicyError;
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::{AttemptTimeout, OnTimeout};

use crate::turn::HANDLER;

/// The policy of workflows that name none.
const NO_RETRY: &str = "none";

/// The queue of workflows that name none.
pub const DEFAULT_QUEUE: &str = "workflows";

/// What a step's `timeout` is measured over. It is final under either scope, even if attempts are left; a timeout that
/// allows a retry is the `attempt_timeout`. Both are limited by the deadlines of the run and the execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// Over all attempts and the waits between them: from the start of an inline step's first attempt, or from the
    /// scheduling of a remote step.
    #[default]
    Global,
    /// From the start of each attempt. When it fires, it ends the step.
    PerAttempt,
}

/// Where a step runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// In the worker that runs the workflow, within its invocation.
    #[default]
    Inline,
    /// As a task of its own, on any worker of its queue.
    Remote {
        /// The queue of the task; the workflow's own queue if `None`.
        queue: Option<QueueName>,
    },
}

/// The options of a step. The default is one inline attempt without a timeout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepOptions {
    /// How often and when it is retried.
    pub retry: RetryPolicy,
    /// How long it may take; `None` means no limit. It is final.
    pub timeout: Option<Millis>,
    /// What the timeout is measured over.
    pub scope: Scope,
    /// How long each attempt may take from its start; `on_timeout` says what follows.
    pub attempt_timeout: Option<Millis>,
    /// How long an attempt may run without a sign of life from its code; `on_timeout` says what follows.
    pub heartbeat: Option<Millis>,
    /// How long each attempt of a remote step may wait for a worker; `on_timeout` says what follows.
    pub schedule_to_start: Option<Millis>,
    /// What follows an attempt that exceeds one of those three.
    pub on_timeout: OnTimeout,
    /// Where it runs.
    pub place: Place,
    /// Records each attempt before it starts. If its worker is lost or it times out, no other attempt follows.
    pub at_most_once: bool,
    /// What the starts of its tasks are limited or ordered by. For remote steps only.
    pub flow: FlowRequest,
    /// Options that were given although they are equal to their absence, such as no retries: the defaults of its kind don't
    /// replace them.
    pub given: Vec<Policy>,
}

impl StepOptions {
    /// How long each attempt may take, and what follows one that takes longer.
    pub(crate) fn each_attempt(&self) -> Option<AttemptTimeout> {
        match self.timeout.filter(|_| self.scope == Scope::PerAttempt) {
            Some(after) => Some(AttemptTimeout { after, on_timeout: OnTimeout::Terminal }),
            None => self.attempt(self.attempt_timeout),
        }
    }

    /// Notes that an option was given, if it is equal to its absence.
    pub(crate) fn note(&mut self, policy: Policy, is_absent: bool) {
        if is_absent && !self.given.contains(&policy) {
            self.given.push(policy);
        }
    }

    /// How long an attempt may run without a sign of life of its code, and what follows.
    pub(crate) fn heartbeat(&self) -> Option<AttemptTimeout> {
        self.attempt(self.heartbeat)
    }

    /// How long an attempt may wait for a worker, and what follows.
    pub(crate) fn schedule_to_start(&self) -> Option<AttemptTimeout> {
        self.attempt(self.schedule_to_start)
    }

    /// How long all attempts may take together.
    pub(crate) fn all_attempts(&self) -> Option<Millis> {
        self.timeout.filter(|_| self.scope == Scope::Global)
    }

    /// Why the options contradict each other, if they do.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let twice =
            self.scope == Scope::PerAttempt && self.timeout.is_some() && self.attempt_timeout.is_some();
        twice.then_some(
            "attempt_timeout: a timeout with the scope per_attempt has the same effect; give only one of them",
        )
    }

    fn attempt(&self, after: Option<Millis>) -> Option<AttemptTimeout> {
        after.map(|after| AttemptTimeout { after, on_timeout: self.on_timeout })
    }
}

/// The options of a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkflowOptions {
    /// How long an execution may take over all its runs; `None` means no limit.
    pub execution_timeout: Option<Millis>,
    /// How long each run may take; `None` means no limit.
    pub run_timeout: Option<Millis>,
    /// How often and when a run that failed is run again: a short form such as `exponential(3, 2s)`, or `none`.
    pub retry: &'static str,
    /// Codes of errors after which it isn't run again.
    pub non_retryable: &'static [&'static str],
    /// How long `on_failure` may take; `None` means the default, 15 minutes.
    pub on_failure_timeout: Option<Millis>,
    /// How long `on_cancel` may take; `None` means the default, 15 minutes.
    pub on_cancel_timeout: Option<Millis>,
    /// The queue of its turns.
    pub queue: &'static str,
    /// Names of code changes that executions may not know yet if they started before.
    pub patches: &'static [&'static str],
    /// What happens if the code doesn't ask for a stored result.
    pub on_drift: OnDrift,
}

/// What happens if the changed code of a workflow doesn't ask for a stored result of a run: a renamed step would run
/// again. The log, `explain` and the timeline name these results in either case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDrift {
    /// The run continues.
    GoOn,
    /// Nothing new starts: the execution waits for an operator, who resumes it when the code is repaired.
    #[default]
    Stop,
}

impl WorkflowOptions {
    /// No timeout, no retry, no patch, the queue [`DEFAULT_QUEUE`]; drift stops it.
    pub const fn new() -> Self {
        Self {
            execution_timeout: None,
            run_timeout: None,
            retry: NO_RETRY,
            non_retryable: &[],
            on_failure_timeout: None,
            on_cancel_timeout: None,
            queue: DEFAULT_QUEUE,
            patches: &[],
            on_drift: OnDrift::Stop,
        }
    }
}

impl WorkflowOptions {
    /// How failed runs are retried.
    pub(crate) fn retry_policy(&self) -> Result<RetryPolicy, PolicyError> {
        let non_retryable = self.non_retryable.iter().map(|code| (*code).to_owned()).collect();
        RetryPolicy { non_retryable, ..RetryPolicy::parse(self.retry)? }.into_retry()
    }

    /// The policy, if it allows any retry.
    pub(crate) fn retries(&self) -> Option<RetryPolicy> {
        self.retry_policy().ok().filter(|policy| policy.attempts_left(1))
    }

    /// The terms of executions, for a workflow with or without `on_failure`.
    pub(crate) fn terms(&self, has_on_failure: bool) -> CodeTerms {
        let timeouts = ExecutionTimeouts { execution: self.execution_timeout, run: self.run_timeout };
        let on_failure = has_on_failure.then(|| self.on_failure_timeout.unwrap_or(HANDLER));
        let attempts = self.retries().map(|policy| policy.max_attempts);
        CodeTerms { timeouts, on_failure, attempts }
    }
}

impl Default for WorkflowOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// A value that is accepted as a duration: text such as `"1h 30m"` (digits alone are milliseconds), a [`Duration`], or
/// [`Millis`].
pub trait IntoMillis {
    /// The duration in milliseconds. A [`Duration`] with a fraction of a millisecond is rounded up, so that a timeout
    /// never fires early.
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
        // A length that doesn't fit into `u64` is longer than any allowed duration: the error names the limit.
        Millis::from_json(&Value::from(u64::try_from(ms).unwrap_or(u64::MAX)), zero)
    }
}

impl IntoMillis for Millis {
    fn into_millis(self, zero: ZeroRule) -> Result<Millis, DurationError> {
        Self::from_json(&Value::from(self.as_u64()), zero)
    }
}

/// A value that is accepted as a retry policy: a short form such as `"exponential(3, 2s)"`, or a [`RetryPolicy`].
pub trait IntoRetry {
    /// The policy, after its limits were checked.
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
    fn code_for_failures_has_a_quarter_of_an_hour_unless_the_attribute_says_otherwise() {
        let options = WorkflowOptions::new();
        assert_eq!(options.terms(true).on_failure, Some(Millis::from_secs(900)));
        assert_eq!(options.terms(false).on_failure, None);
        let options = WorkflowOptions { on_failure_timeout: Some(Millis::from_secs(60)), ..options };
        assert_eq!(options.terms(true).on_failure, Some(Millis::from_secs(60)));
    }

    #[test]
    fn a_policy_built_by_hand_is_held_to_the_limits() {
        let endless_growth = RetryPolicy { backoff: f64::INFINITY, ..RetryPolicy::none() };
        assert_eq!(endless_growth.into_retry().unwrap_err().path, "backoff");
        assert!("fixed(3, 2s)".into_retry().is_ok());
    }
}
