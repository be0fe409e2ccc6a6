//! The objects that answers consist of.

use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;

use super::{ClaimedView, QueueView, TaskView};

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct TaskAnswer {
    /// The task as it stands now.
    pub task: TaskView,
    /// `true` where the same report had been taken before: the first one stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub duplicate: Option<bool>,
}

/// What became of a cancellation.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct CancelAnswer {
    /// The task as it stands now.
    pub task: TaskView,
    /// `cancelled`; `requested`, where its worker will be told; or `already_finished`.
    #[schema(value_type = String)]
    pub outcome: &'static str,
}

/// Tasks for a worker; none if there are none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ClaimAnswer {
    /// The tasks.
    pub tasks: Vec<ClaimedView>,
}

/// What a heartbeat is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// Until when the worker counts as alive now.
    #[schema(format = DateTime)]
    pub lease_expires_at: String,
    /// When the attempt must have ended: a heartbeat doesn't move it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub deadline_at: Option<String>,
    /// Milliseconds from this answer to `deadline_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub remaining_ms: Option<u64>,
    /// Whether somebody wants the task cancelled: the worker should stop and fail or release it.
    pub cancel_requested: bool,
}

/// One result for each entry of the batch, in order.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct BatchAnswer {
    /// The results.
    pub results: Vec<BatchResult>,
}

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct BatchResult {
    /// The status that the entry would have had by itself.
    pub status: u16,
    /// The task, where the entry succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub task: Option<Box<TaskView>>,
    /// `true` where the same report had been taken before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub duplicate: Option<bool>,
    /// The problem, where it didn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<Box<Problem>>,
}

impl BatchResult {
    pub(crate) fn success(status: u16, answer: TaskAnswer) -> Self {
        Self { status, task: Some(Box::new(answer.task)), duplicate: answer.duplicate, error: None }
    }

    pub(crate) fn failure(problem: Problem) -> Self {
        Self { status: problem.status, task: None, duplicate: None, error: Some(Box::new(problem)) }
    }
}

/// A page of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ListAnswer {
    /// The tasks. A page may have fewer than asked for, even none, and still not be the last.
    pub tasks: Vec<TaskView>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cursor: Option<String>,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct QueueAnswer {
    /// The queue as it stands now.
    pub queue: QueueView,
}

/// All queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct QueuesAnswer {
    /// The queues, by name.
    pub queues: Vec<QueueView>,
}

/// That the server answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct HealthAnswer {
    /// `ok`; or `degraded`, where records were found that can't be read.
    #[schema(value_type = String)]
    pub status: &'static str,
    /// Records that a local server couldn't read when it started and left alone, at most 100 of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub unreadable: Vec<String>,
}
