//! Filters on tasks and executions, and which list has what fits.

use serde::{Deserialize, Serialize};
use tickover_core::execution::{Execution, ExecutionStatus};
use tickover_core::id::{QueueName, TaskKind, WorkflowName};
use tickover_core::task::{Status, Task};
use tickover_core::time::Timestamp;

/// Which executions of all workflows are in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listed {
    /// Those that failed or timed out. Only a failure costs a write.
    #[default]
    Failed,
    /// All of them. Each start costs a write.
    All,
}

/// A filter on tasks in a list. What is absent excludes none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFilter {
    /// Only tasks of this queue.
    pub queue: Option<QueueName>,
    /// Only tasks with one of these statuses; any status when empty.
    pub statuses: Vec<Status>,
    /// Only tasks of this kind.
    pub kind: Option<TaskKind>,
    /// Only tasks that were scheduled at this instant or later.
    pub created_from: Option<Timestamp>,
    /// Only tasks that were scheduled before this instant.
    pub created_before: Option<Timestamp>,
    /// Only tasks with this label: its name and its value.
    pub label: Option<(String, String)>,
    /// Only tasks that have failed or timed out with an error of this code.
    pub error: Option<String>,
}

impl TaskFilter {
    /// Whether a task fits, apart from its labels, which may be in an item of their own.
    pub fn fits_but_for_labels(&self, task: &Task) -> bool {
        self.queue.as_ref().is_none_or(|queue| *queue == task.queue)
            && (self.statuses.is_empty() || self.statuses.contains(&task.status()))
            && self.kind.as_ref().is_none_or(|kind| *kind == task.kind)
            && self.created_from.is_none_or(|from| task.created_at >= from)
            && self.created_before.is_none_or(|before| task.created_at < before)
            && self.error.as_deref().is_none_or(|code| task.error_code() == Some(code))
    }
}

/// A filter on executions in a list. What is absent excludes none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutionFilter {
    /// Only executions of this workflow.
    pub workflow: Option<WorkflowName>,
    /// Only executions with one of these statuses; any status when empty.
    pub statuses: Vec<ExecutionStatus>,
    /// Only executions that were started at this instant or later.
    pub started_from: Option<Timestamp>,
    /// Only executions that were started before this instant.
    pub started_before: Option<Timestamp>,
    /// Only executions with this label: its name and its value.
    pub label: Option<(String, String)>,
    /// Only executions that have failed with an error of this code.
    pub error: Option<String>,
}

impl ExecutionFilter {
    /// The shortest list with all executions that fit.
    pub fn listed(&self) -> Listed {
        let is_failed =
            |status: &ExecutionStatus| matches!(status, ExecutionStatus::Failed | ExecutionStatus::TimedOut);
        let is_for_failed = !self.statuses.is_empty() && self.statuses.iter().all(is_failed);
        if is_for_failed { Listed::Failed } else { Listed::All }
    }

    /// Whether an execution fits, apart from its labels, which may be in an item of their own.
    pub fn fits_but_for_labels(&self, execution: &Execution) -> bool {
        let started_at = execution.created_at;
        self.workflow.as_ref().is_none_or(|workflow| *workflow == execution.workflow)
            && (self.statuses.is_empty() || self.statuses.contains(&execution.status()))
            && self.started_from.is_none_or(|from| started_at >= from)
            && self.started_before.is_none_or(|before| started_at < before)
            && self.error.as_deref().is_none_or(|code| execution.error_code() == Some(code))
    }
}
