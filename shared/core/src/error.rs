//! Business answers that are not a success. Each has a stable code; transport and storage errors live elsewhere.

/// Why a command was refused. Nothing changed, except that an expiry noticed on the way may have been recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reject {
    /// A field is missing, malformed or contradicts another.
    #[error("{field}: {expected}{}", .found.as_ref().map(|found| format!(", found {found}")).unwrap_or_default())]
    InvalidRequest {
        /// The field's path in the request, such as `retry.delay[2]`.
        field: String,
        /// What belongs there, such as "expected a string", or what is wrong, such as "must not be empty". It has
        /// nothing of what the caller sent, so that it can be logged.
        expected: String,
        /// What was found instead, such as "the number `7`", if that helps: the caller's own text, not to be logged.
        found: Option<String>,
    },
    /// No such record, or its retention has passed.
    #[error("there is no task with this id")]
    NotFound,
    /// No such execution, or its retention has passed.
    #[error("there is no execution with this id")]
    NoExecution,
    /// No such cron.
    #[error("there is no cron with this id")]
    NoCron,
    /// The execution had ended before.
    #[error("the execution has already ended: it is {status}", status = .status.as_str())]
    ExecutionClosed {
        /// How it ended.
        status: crate::execution::ExecutionStatus,
    },
    /// The execution has not ended, or not in the way that this call needs.
    #[error("the execution is {status}, where this needs one that {needs}", status = .status.as_str())]
    ExecutionOpen {
        /// Where it stands.
        status: crate::execution::ExecutionStatus,
        /// What it would have to be, such as "has ended".
        needs: &'static str,
    },
    /// The turn that this lease stood for is over, or another worker has the execution.
    #[error("the turn is over: its lease has ended, or another worker has the execution")]
    TurnLost,
    /// The execution's journal knows no such step.
    #[error("this run has no step named {name:?}")]
    UnknownStep {
        /// The name asked for.
        name: String,
    },
    /// The execution's own deadline has passed: going on would end at once.
    #[error("too late: the {kind} deadline has passed; restart it", kind = .kind.as_str())]
    ExecutionDeadline {
        /// Which.
        kind: crate::execution::DeadlineKind,
    },
    /// No such queue.
    #[error("there is no queue named {queue:?}")]
    UnknownQueue {
        /// The name asked for.
        queue: String,
    },
    /// The lease belongs to an attempt that is over, or to no attempt.
    #[error("the lease is lost: the attempt it belonged to has ended, or another worker holds the task")]
    LeaseLost,
    /// The task's deadline, or its attempt's time, passed before this call.
    #[error("too late: the task's {kind} time had passed", kind = .kind.as_str())]
    DeadlineExceeded {
        /// Which timeout.
        kind: crate::timeout::TimeoutKind,
    },
    /// The task had ended before.
    #[error("the task has already ended: it is {status}", status = .status.as_str())]
    AlreadyTerminal {
        /// How it ended.
        status: crate::task::Status,
    },
    /// The task has not ended, so it can't be retried by an operator.
    #[error("the task has not ended: it is {status}", status = .status.as_str())]
    NotTerminal {
        /// Where it stands.
        status: crate::task::Status,
    },
    /// The id or idempotency key is in use for a request with other content.
    #[error("this id or idempotency key was used before for a request with other content")]
    IdConflict,
    /// More than allowed.
    #[error("{limit}: {value} is more than the maximum of {maximum}")]
    LimitExceeded {
        /// The limit's name.
        limit: &'static str,
        /// What was asked for.
        value: usize,
        /// What is allowed.
        maximum: usize,
    },
}

impl Reject {
    /// The stable code that answers carry.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidRequest { .. } => "invalid_request",
            Self::NotFound | Self::NoExecution | Self::NoCron => "not_found",
            Self::UnknownStep { .. } => "unknown_step",
            Self::UnknownQueue { .. } => "unknown_queue",
            Self::LeaseLost | Self::TurnLost => "lease_lost",
            Self::DeadlineExceeded { .. } | Self::ExecutionDeadline { .. } => "deadline_exceeded",
            Self::AlreadyTerminal { .. } | Self::ExecutionClosed { .. } => "already_terminal",
            Self::NotTerminal { .. } | Self::ExecutionOpen { .. } => "not_terminal",
            Self::IdConflict => "id_conflict",
            Self::LimitExceeded { .. } => "limit_exceeded",
        }
    }

    /// A refusal of one field. What was expected has nothing of what the caller sent.
    pub fn field(field: impl Into<String>, expected: impl std::fmt::Display) -> Self {
        Self::InvalidRequest { field: field.into(), expected: expected.to_string(), found: None }
    }

    /// The same refusal as seen from the object whose field this is: `delay` under `retry` is `retry.delay`.
    #[must_use]
    pub fn under(self, object: &str) -> Self {
        match self {
            Self::InvalidRequest { field, expected, found } => {
                Self::InvalidRequest { field: format!("{object}.{field}"), expected, found }
            }
            other => other,
        }
    }

    /// The same refusal, of another field.
    #[must_use]
    pub fn of_field(self, field: impl Into<String>) -> Self {
        match self {
            Self::InvalidRequest { expected, found, .. } => {
                Self::InvalidRequest { field: field.into(), expected, found }
            }
            other => other,
        }
    }

    /// The same as [`Reject::field`], with what was found instead: quoted where it is the caller's own text.
    #[must_use]
    pub fn instead_of(
        field: impl Into<String>,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) -> Self {
        let found = Some(found.to_string());
        Self::InvalidRequest { field: field.into(), expected: expected.to_string(), found }
    }
}
