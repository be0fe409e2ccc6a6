//! Operations on many executions or tasks.

use serde::{Deserialize, Serialize};
use tickover_core::id::{EventName, ExecutionId, OperationId, QueueName, TaskId, TaskKind, WorkflowName};

use crate::{ActionWord, ExecutionStatusWord, FailureCode, Instant, Label, TaskStatusWord, Verbatim};

/// A request to do the same with many records: `executions` or `tasks` say which.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OperationRequest {
    /// Its id; random by default. A repeated request with this id returns the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<OperationId>,
    /// `retry`: a new run of each execution, with the results of the steps that completed, or a new attempt of each
    /// task. `retry_step`: in each execution, the step because of which it failed runs again in the same run. `restart`: a new run of each execution, without results. `cancel`: each is asked to end. `terminate`: each
    /// ends at once. `send_event`: `event` is sent to each execution.
    pub action: ActionWord,
    /// The executions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executions: Option<ExecutionSelection>,
    /// The tasks, instead of `executions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskSelection>,
    /// The event, for `send_event`. Its id is that of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<OperationEvent>,
    /// Whether the records are only counted: `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// How many records there are, if they were counted before, by a dry run. It is kept as the operation's `total`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// Which executions: those for which all that is given is true. At least one field is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionSelection {
    /// Only these, at most 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(max_items = 1000))]
    pub ids: Option<Vec<ExecutionId>>,
    /// Of this workflow. A deployment on AWS needs it, or `ids`, unless the action is for those that failed, or the
    /// deployment lists all executions (`TICKOVER_LISTS=all`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowName>,
    /// With one of these statuses. Without it and `ids`, those in which the action can do something: `failed` and
    /// `timed_out` for `retry`, `retry_step` and `restart`, the open ones for the others. One that has completed runs
    /// again only if this says `completed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Vec<ExecutionStatusWord>>,
    /// With this label: `name=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// Failed with an error of this code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<FailureCode>,
    /// Started at this instant or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_from: Option<Instant>,
    /// Started before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_before: Option<Instant>,
    /// Ended at this instant or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_from: Option<Instant>,
    /// Ended before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_before: Option<Instant>,
}

/// Which tasks: those for which all that is given is true. At least one field is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskSelection {
    /// Only these, at most 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(max_items = 1000))]
    pub ids: Option<Vec<TaskId>>,
    /// Of this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueName>,
    /// Of this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<TaskKind>,
    /// With one of these statuses. Without it and `ids`, those in which the action can do something: `failed` and
    /// `timed_out` for `retry`, `pending` and `running` for the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Vec<TaskStatusWord>>,
    /// With this label: `name=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// Failed or timed out with an error of this code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<FailureCode>,
    /// Scheduled at this instant or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_from: Option<Instant>,
    /// Scheduled before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_before: Option<Instant>,
    /// Ended at this instant or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_from: Option<Instant>,
    /// Ended before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_before: Option<Instant>,
}

/// An event for many executions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OperationEvent {
    /// Its name.
    pub name: EventName,
    /// Its payload, any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::verbatim::present")]
    pub payload: Option<Verbatim>,
}
