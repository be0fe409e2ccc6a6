//! Why a call has no result, and why an execution or a task has none.

use tickover_core::execution::DeadlineKind;
use tickover_core::timeout::TimeoutKind;
use tickover_service::ServiceError;

use crate::error::{Cause, Failure};

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// What was asked for can't be asked.
    #[error("{field}: {problem}")]
    Invalid {
        /// Which part of it.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The system says no, by its rules.
    #[error("{code}: {message}")]
    Refused {
        /// The stable code, such as `not_found`.
        code: String,
        /// For people.
        message: String,
    },
    /// No answer, or none that says whether it was done. The same call may work later.
    #[error("no answer for now: {reason}")]
    Unavailable {
        /// For people.
        reason: String,
    },
    /// An answer that can't be understood: something else may be at that address.
    #[error("an answer that can't be read: {reason}")]
    Unreadable {
        /// For people.
        reason: String,
    },
    /// This client can't do that: it needs one that reaches the service directly.
    #[error("{what} needs a client that reaches the service directly, not over HTTP")]
    NotOverHttp {
        /// What was asked for.
        what: &'static str,
    },
}

impl ClientError {
    pub(super) fn invalid(field: &str, problem: impl std::fmt::Display) -> Self {
        Self::Invalid { field: field.to_owned(), problem: problem.to_string() }
    }

    /// The stable code of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            Self::Invalid { .. } => Some("invalid_request"),
            Self::Unavailable { .. } | Self::Unreadable { .. } | Self::NotOverHttp { .. } => None,
        }
    }

    /// Whether there is nothing of this id, or nothing any more.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some("not_found")
    }

    /// Whether the same call may be answered well later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::Invalid { .. }
            | Self::Refused { .. }
            | Self::Unreadable { .. }
            | Self::NotOverHttp { .. } => false,
        }
    }
}

impl From<ServiceError> for ClientError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Rejected(reject) => {
                Self::Refused { code: reject.code().to_owned(), message: reject.to_string() }
            }
            ServiceError::Corrupt { reason } => Self::Unreadable { reason },
            ServiceError::Contended | ServiceError::Throttled | ServiceError::Unavailable { .. } => {
                Self::Unavailable { reason: error.to_string() }
            }
        }
    }
}

/// Why an execution has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionError {
    /// It failed: by a step, or by itself.
    #[error("the execution failed: {0}")]
    Failed(Cause),
    /// A deadline passed.
    #[error("the execution timed out: the deadline of {} passed", of(*.0))]
    TimedOut(DeadlineKind),
    /// Somebody ended it.
    #[error("the execution was {}", if *.terminated { "terminated" } else { "cancelled" })]
    Cancelled {
        /// Whether it was ended without asking its code.
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
    /// Not known: the call for it failed.
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
    /// A timeout was over.
    #[error("the task timed out: {error}")]
    TimedOut {
        /// Which.
        kind: TimeoutKind,
        /// Why, with the last error if there was one.
        error: Failure,
    },
    /// Somebody ended it, or a timeout that isn't to count as an error.
    #[error("the task was cancelled")]
    Cancelled {
        /// The timeout, if it was one.
        timeout: Option<TimeoutKind>,
    },
    /// It was never to run: its retry policy gives it no attempt.
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
    /// Not known: the call for it failed.
    #[error(transparent)]
    Client(#[from] ClientError),
}
