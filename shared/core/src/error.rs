//! Refusals of commands. Each has a stable code. Transport and storage errors are defined elsewhere.

use crate::id::{ExecutionId, TaskId, WorkflowName};
use crate::time::Timestamp;

/// Why a command was refused. Nothing changed, except that the expiry of a timeout may have been recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reject {
    /// A field is missing, is malformed or contradicts another field.
    #[error("{field}: {expected}{}", .found.as_ref().map(|found| format!(", found {found}")).unwrap_or_default())]
    InvalidRequest {
        /// The field's path in the request, such as `retry.delay[2]`.
        field: String,
        /// The value that the field needs, such as "expected a string", or the problem, such as "must not be empty".
        /// It contains nothing that the caller sent, so it may be logged.
        expected: String,
        /// The value in the request, such as "the number `7`", if it helps. It is the caller's own text and must not
        /// be logged.
        found: Option<String>,
    },
    /// No task has this id, or its retention has passed.
    #[error("there is no task with this id")]
    NotFound,
    /// No execution has this id, or its retention has passed.
    #[error("there is no execution with this id")]
    NoExecution,
    /// No cron has this id.
    #[error("there is no cron with this id")]
    NoCron,
    /// No operation has this id, or its retention has passed.
    #[error("there is no operation with this id")]
    NoOperation,
    /// The execution has already ended.
    #[error("the execution has already ended: it is {status}", status = .status.as_str())]
    ExecutionClosed {
        /// The status it ended with.
        status: crate::execution::ExecutionStatus,
    },
    /// The execution has not ended, or not in the way that this call needs.
    #[error("the execution is {status}; this call needs one that {needs}", status = .status.as_str())]
    ExecutionOpen {
        status: crate::execution::ExecutionStatus,
        /// The state that the call needs, such as "has ended".
        needs: &'static str,
    },
    /// The lease's turn is over, or another worker has a lease on the execution.
    #[error("the turn is over: its lease has ended, or another worker has a lease on the execution")]
    TurnLost,
    /// The execution's journal has no step with this name.
    #[error("this run has no step named {name:?}")]
    UnknownStep {
        /// The name in the request.
        name: String,
    },
    /// The execution has published no value with this name.
    #[error("this execution has published nothing named {name:?}")]
    UnknownValue {
        /// The name in the request.
        name: String,
    },
    /// The execution's deadline has passed: if it continued, it would end at once.
    #[error("too late: the {kind} deadline has passed; restart it", kind = .kind.as_str())]
    ExecutionDeadline {
        /// The deadline.
        kind: crate::execution::DeadlineKind,
    },
    /// No queue has this name.
    #[error("there is no queue named {queue:?}")]
    UnknownQueue {
        /// The name in the request.
        queue: String,
    },
    /// A start names no queue, and it isn't known which one its workflow's workers have.
    #[error("no worker has announced the workflow {workflow:?} yet: name the queue of its workers")]
    NoRoute {
        /// The workflow's name.
        workflow: String,
    },
    /// The lease belongs to an attempt that is over, or to no attempt.
    #[error("the lease is lost: its attempt has ended, or another worker has a lease on the task")]
    LeaseLost,
    /// The task's deadline, or a timeout of its attempt, passed before this call.
    #[error("too late: the task's {kind} timeout had passed", kind = .kind.as_str())]
    DeadlineExceeded {
        /// The timeout.
        kind: crate::timeout::TimeoutKind,
    },
    /// The task has already ended.
    #[error("the task has already ended: it is {status}", status = .status.as_str())]
    AlreadyTerminal {
        /// The status it ended with.
        status: crate::task::Status,
    },
    /// The record ended after an operation on many records was asked for, which leaves it alone.
    #[error("it ended after the operation was asked for")]
    EndedLater,
    /// The task has not ended, so an operator can't retry it.
    #[error("the task has not ended: it is {status}", status = .status.as_str())]
    NotTerminal { status: crate::task::Status },
    /// The id or idempotency key is in use.
    #[error("{by}, since {}", .since.to_rfc3339())]
    IdConflict {
        by: TakenBy,
        /// When that record was created.
        since: Timestamp,
    },
    /// A run has ended, or its events were cleared, and it has left the request with this id without an answer.
    #[error("the request has no answer: its run has ended, or it was cleared")]
    Unanswered,
    /// The token of a callback is none of ours, has expired, was used, or its wait is over. One answer for all of these:
    /// its caller has no other right to know.
    #[error("this callback doesn't exist, or is over")]
    UnknownCallback,
    /// The deployment has no secret that signs the tokens of callbacks.
    #[error("callbacks are off: deploy with Callbacks=on")]
    CallbacksOff,
    /// The service of another process has refused the call that was passed on to it.
    #[error("{detail}")]
    Elsewhere {
        /// The code in that answer.
        code: &'static str,
        /// What was wrong, as that answer says it.
        detail: String,
    },
    /// Another task, or another execution, has the unique key.
    #[error("another {} has this unique key: {}", .by.kind(), .by.id())]
    NotUnique { by: crate::id::Owner },
    /// A value is above its limit.
    #[error("{limit}: {value} is more than the maximum of {maximum}")]
    LimitExceeded {
        /// The limit's name.
        limit: &'static str,
        /// The value in the request.
        value: usize,
        maximum: usize,
    },
}

/// What has an id or an idempotency key already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TakenBy {
    /// An execution of the same workflow, which the request didn't want to be answered with.
    #[error("there is already an execution with this id")]
    Execution,
    /// An execution of another workflow.
    #[error("there is already an execution of the workflow {0} with this id")]
    OtherWorkflow(WorkflowName),
    /// A child of another execution.
    #[error("there is already an execution with this id, a child of {0}")]
    ChildOf(ExecutionId),
    /// A task for a request with other content.
    #[error("there is already a task with this id, for a request with other content")]
    Task,
    /// The task that has the idempotency key, for a request with other content or another id.
    #[error("this idempotency key belongs to the task {0} of another request")]
    Key(TaskId),
    /// A cron that is defined in another way.
    #[error("there is already a cron with this id and another definition")]
    Cron,
    /// An operation for a request with other content.
    #[error("there is already an operation with this id, for a request with other content")]
    Operation,
}

impl Reject {
    /// The stable code in answers.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidRequest { .. } => "invalid_request",
            Self::NotFound | Self::NoExecution | Self::NoCron | Self::NoOperation => "not_found",
            Self::UnknownStep { .. } => "unknown_step",
            Self::UnknownValue { .. } => "unknown_value",
            Self::Unanswered => "unanswered",
            Self::UnknownQueue { .. } | Self::NoRoute { .. } => "unknown_queue",
            Self::LeaseLost | Self::TurnLost => "lease_lost",
            Self::DeadlineExceeded { .. } | Self::ExecutionDeadline { .. } => "deadline_exceeded",
            Self::AlreadyTerminal { .. } | Self::ExecutionClosed { .. } | Self::EndedLater => {
                "already_terminal"
            }
            Self::NotTerminal { .. } | Self::ExecutionOpen { .. } => "not_terminal",
            Self::IdConflict { .. } => "id_conflict",
            Self::NotUnique { .. } => "not_unique",
            Self::UnknownCallback => "unknown_callback",
            Self::CallbacksOff => "callbacks_off",
            Self::Elsewhere { code, .. } => code,
            Self::LimitExceeded { .. } => "limit_exceeded",
        }
    }

    /// A refusal of one field. `expected` must contain nothing that the caller sent.
    pub fn field(field: impl Into<String>, expected: impl std::fmt::Display) -> Self {
        Self::InvalidRequest { field: field.into(), expected: expected.to_string(), found: None }
    }

    /// The same refusal with the path from the enclosing object: `delay` in `retry` becomes `retry.delay`.
    #[must_use]
    pub fn under(self, object: &str) -> Self {
        match self {
            Self::InvalidRequest { field, expected, found } => {
                Self::InvalidRequest { field: format!("{object}.{field}"), expected, found }
            }
            other => other,
        }
    }

    /// The same refusal for another field.
    #[must_use]
    pub fn of_field(self, field: impl Into<String>) -> Self {
        match self {
            Self::InvalidRequest { expected, found, .. } => {
                Self::InvalidRequest { field: field.into(), expected, found }
            }
            other => other,
        }
    }

    /// As [`Reject::field`], with the value in the request. The caller's own text is quoted.
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
