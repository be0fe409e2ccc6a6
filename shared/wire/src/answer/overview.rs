//! What an operator looks at first.

use serde::{Deserialize, Serialize};
use tickover_core::id::{QueueName, TaskKind, WorkerName, WorkflowName};

use crate::Instant;

/// How many records wait, run, are late, need somebody and have failed; and the queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OverviewAnswer {
    /// When it was made. An answer may be used again for ten times as long as it took to make.
    pub as_of: Instant,
    /// Tasks that are open.
    pub tasks: TaskNumbersView,
    /// Executions that are open.
    pub executions: ExecutionNumbersView,
    /// Tasks and executions that are kept and have failed or timed out.
    pub failed: CountView,
    /// The same by what failed and why: the largest groups, at most 20.
    pub failures: Vec<FailureGroupView>,
    /// Whether there are more groups.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_failures: bool,
    /// The first 50 queues by name.
    pub queues: Vec<QueueNumbersView>,
    /// Whether there are more queues.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_queues: bool,
}

/// How many records there are, or how many were found among those that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CountView {
    /// The number.
    pub count: u64,
    /// Whether there may be more, because not all were read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// How many tasks are open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskNumbersView {
    /// Those that wait for a worker.
    pub pending: CountView,
    /// Those that a worker has.
    pub running: CountView,
    /// Those that wait, and that a worker could have had a minute ago.
    pub late: CountView,
    /// Those that wait and get no worker before somebody acts: the list's filter `stuck`.
    pub stuck: CountView,
}

/// How many executions are open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionNumbersView {
    /// All of them.
    pub open: CountView,
    /// Those that could have continued a minute ago.
    pub late: CountView,
    /// Those that may need an operator: the list's filter `stuck`.
    pub stuck: CountView,
    /// Whether only executions of workflows that workers have announced were read: the system lists no others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub announced_only: bool,
}

/// What is kept and has failed or timed out in a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailuresAnswer {
    /// How many tasks and executions.
    pub failed: CountView,
    /// The same by what failed and why: the largest groups, at most 200. `first_at` may be before the period.
    pub groups: Vec<FailureGroupView>,
    /// Whether there are more groups.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_groups: bool,
    /// How many tasks, and how many executions, were read at most: those that were scheduled or started last. Absent if
    /// all are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_max: Option<u64>,
}

/// Tasks or executions that have failed in the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailureGroupView {
    /// The kind, if they are tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<TaskKind>,
    /// The workflow, if they are executions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowName>,
    /// The code of their error. Absent for executions whose deadline has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The steps because of which executions failed, at most 10. Those of a fan-out are one: `label[…]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// How many they are.
    pub count: u64,
    /// How many of the group failed within the last hour.
    pub last_hour: u64,
    /// When the first of them failed.
    pub first_at: Instant,
    /// When the last of them failed.
    pub last_at: Instant,
    /// The message of the last of them: its first 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A queue's numbers and workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueueNumbersView {
    /// Its name.
    pub name: QueueName,
    /// Whether it is paused: its tasks aren't leased to workers.
    pub paused: bool,
    /// Whether work waits, no worker has any, and none has asked for some in the last 3 minutes.
    pub unserved: bool,
    /// Messages of tasks and turns that wait for a worker.
    pub depth: u64,
    /// Tasks and turns that workers have.
    pub in_flight: u64,
    /// Messages of those that start within 15 minutes.
    pub delayed: u64,
    /// From when its oldest waiting task could be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_at: Option<Instant>,
    /// The workers that have asked for its work in the last 3 minutes, the last one first; at most 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerName>,
    /// How many more of them there are.
    pub more_workers: u64,
}
