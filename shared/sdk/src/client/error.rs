//! Why a call has no result, and why an execution or a task has none.

use tickover_core::duration::Millis;
use tickover_core::execution::DeadlineKind;
use tickover_core::timeout::TimeoutKind;
use tickover_wire::answer::Problem;
use tickover_wire::read::Unreadable;

use crate::error::{Cause, Failure};

/// HTTP statuses that ask for a retry, in addition to those from 500.
const BUSY: [u16; 2] = [408, 429];

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The request is invalid and wasn't sent.
    #[error("{field}: {problem}")]
    Invalid {
        /// The part that is wrong.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The system refuses the call by its rules, or can't serve it now. [`ClientError::is_transient`] distinguishes the
    /// two.
    #[error("{}: {}", .0.code, .0.detail)]
    Refused(
        /// The system's answer: the code, which is stable, such as `not_found`; the detail, for people; the field that is
        /// wrong; and after how many seconds to repeat the call. AWS's own refusals have the codes `expired_credentials`,
        /// `unknown_credentials`, `invalid_signature`, `not_signed` and `access_denied`. An answer of any other gateway
        /// has `http_` and its status.
        Box<Problem>,
    ),
    /// No answer, or only a part of it. It isn't known whether the call had an effect. The same call may succeed later.
    #[error("no answer from {place}: {reason}")]
    Unavailable {
        /// The target of the call.
        place: String,
        /// Why, for people.
        reason: String,
    },
    /// An answer that can't be read: the address may belong to another service.
    #[error("an answer that can't be read (is it a Tickover endpoint?): {reason}")]
    Unreadable {
        /// Why, for people.
        reason: String,
    },
    /// The call wasn't sent, because it can't be signed for AWS.
    #[error("{reason}")]
    Unsigned {
        /// Why, and what to do, for people.
        reason: String,
        /// Whether the same call may succeed later.
        is_transient: bool,
    },
    /// The call needs a client that reaches the service directly.
    #[error("{what} needs a client that reaches the service directly, not over HTTP")]
    NotOverHttp {
        /// The call.
        what: &'static str,
    },
}

impl ClientError {
    pub(super) fn invalid(field: &str, problem: impl std::fmt::Display) -> Self {
        Self::Invalid { field: field.to_owned(), problem: problem.to_string() }
    }

    #[cfg(feature = "test")]
    pub(crate) fn refused(code: &str, detail: &str) -> Self {
        let (code, detail) = (code.to_owned().into(), detail.to_owned());
        Self::Refused(Box::new(Problem { code, detail, ..Problem::default() }))
    }

    /// A value that this version doesn't know.
    pub(super) fn unknown(what: &str, word: &str) -> Self {
        Self::Unreadable { reason: format!("an unknown {what}: {word}") }
    }

    /// A value that isn't of the type that the caller expects.
    pub(super) fn of_another_type(what: &str, problem: impl std::fmt::Display) -> Self {
        Self::Unreadable { reason: format!("{what}: {problem}") }
    }

    /// The stable code of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(problem) => Some(&problem.code),
            Self::Invalid { .. } => Some("invalid_request"),
            Self::Unavailable { .. }
            | Self::Unreadable { .. }
            | Self::Unsigned { .. }
            | Self::NotOverHttp { .. } => None,
        }
    }

    /// The system's answer, if it refused the call.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            Self::Invalid { .. }
            | Self::Unavailable { .. }
            | Self::Unreadable { .. }
            | Self::Unsigned { .. }
            | Self::NotOverHttp { .. } => None,
        }
    }

    /// How long to wait before the call is repeated, if the system says so.
    pub fn retry_after(&self) -> Option<Millis> {
        Some(Millis::from_secs(self.problem()?.retry_after?.into()))
    }

    /// Whether no record with this id exists, or exists any longer.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some("not_found")
    }

    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::Unsigned { is_transient, .. } => *is_transient,
            // A retry doesn't repair a corrupt record.
            Self::Refused(problem) if problem.code == "corrupt_record" => false,
            Self::Refused(problem) => problem.status >= 500 || BUSY.contains(&problem.status),
            Self::Invalid { .. } | Self::Unreadable { .. } | Self::NotOverHttp { .. } => false,
        }
    }
}

impl From<Unreadable> for ClientError {
    fn from(error: Unreadable) -> Self {
        Self::Unreadable { reason: error.to_string() }
    }
}

/// Why an execution has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionError {
    /// It failed because of a step, or because of its own code.
    #[error("the execution failed: {0}")]
    Failed(Cause),
    /// A deadline passed.
    #[error("the execution timed out: the deadline of {} passed", of(*.0))]
    TimedOut(DeadlineKind),
    /// It was cancelled or terminated.
    #[error("the execution was {}", if *.terminated { "terminated" } else { "cancelled" })]
    Cancelled {
        /// Whether it was terminated: ended at once, while cancelling lets its code stop.
        terminated: bool,
    },
    /// Its result doesn't fit the type that it is read as.
    #[error("the result can't be read as {type_name}: {problem}")]
    Unreadable {
        /// The type.
        type_name: &'static str,
        /// Where and why it doesn't fit.
        problem: String,
    },
    /// The call for the result failed.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl ExecutionError {
    /// Code and message of a failure.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(Cause::Step { error, .. } | Cause::Body(error)) => Some(error),
            Self::Failed(Cause::ExecutionDeadline | Cause::RunDeadline)
            | Self::TimedOut(_)
            | Self::Cancelled { .. }
            | Self::Unreadable { .. }
            | Self::Client(_) => None,
        }
    }
}

const fn of(kind: DeadlineKind) -> &'static str {
    match kind {
        DeadlineKind::Execution => "all its runs",
        DeadlineKind::Run => "its run",
    }
}

/// Why a task has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// It failed with an error that isn't retried, or with no attempts left.
    #[error("the task failed: {0}")]
    Failed(Failure),
    /// A timeout passed.
    #[error("the task timed out: {error}")]
    TimedOut {
        /// Which timeout.
        kind: TimeoutKind,
        /// The reason, with the last attempt's error if there was one.
        error: Failure,
    },
    /// It was cancelled, or a timeout passed that doesn't count as an error.
    #[error("the task was cancelled")]
    Cancelled {
        /// The timeout, if it was one.
        timeout: Option<TimeoutKind>,
    },
    /// It never ran: its retry policy allows no attempt.
    #[error("the task was skipped: its retry policy gives it no attempt")]
    Skipped,
    /// Its result doesn't fit the type that it is read as.
    #[error("the result can't be read as {type_name}: {problem}")]
    Unreadable {
        /// The type.
        type_name: &'static str,
        /// Where and why it doesn't fit.
        problem: String,
    },
    /// The call for the result failed.
    #[error(transparent)]
    Client(#[from] ClientError),
}
