//! Filters on tasks and executions, and which list has what fits.

use serde::{Deserialize, Serialize};
use tickover_core::execution::{Execution, ExecutionStatus};
use tickover_core::id::{ExecutionId, QueueName, TaskId, TaskKind, WorkflowName};
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

/// A period of time. A bound that is absent bounds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// Its first instant.
    pub from: Option<Timestamp>,
    /// The first instant after it.
    pub before: Option<Timestamp>,
}

impl Period {
    fn is_boundless(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an end, if there was one, is within it. Without bounds, no end is needed.
    pub(crate) fn has(self, ended_at: Option<Timestamp>) -> bool {
        let within = |at: Timestamp| {
            self.from.is_none_or(|from| at >= from) && self.before.is_none_or(|before| at < before)
        };
        ended_at.map_or(self.is_boundless(), within)
    }
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
    /// Only tasks that ended within this.
    #[serde(skip_serializing_if = "Period::is_boundless")]
    pub ended: Period,
    /// Whether only those are meant that get no worker before somebody acts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stuck: bool,
    /// Only tasks whose id begins with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_prefix: Option<TaskId>,
    /// Only tasks with this label: its name and its value.
    pub label: Option<(String, String)>,
    /// Only tasks that have failed or timed out with an error of this code.
    pub error: Option<String>,
}

impl TaskFilter {
    /// The same filter with the only statuses that fit it, where it names none: so the shortest lists are read.
    #[must_use]
    pub fn narrowed(mut self) -> Self {
        if self.statuses.is_empty() && self.stuck {
            self.statuses = vec![Status::Pending];
        } else if self.statuses.is_empty() && !self.ended.is_boundless() {
            self.statuses = Status::ALL.into_iter().filter(|status| !status.is_live()).collect();
        }
        self
    }

    /// Whether a task fits, apart from its labels, which may be in an item of their own, and from what is known of its
    /// queue.
    pub fn fits_but_for_labels(&self, task: &Task) -> bool {
        self.queue.as_ref().is_none_or(|queue| *queue == task.queue)
            && (self.statuses.is_empty() || self.statuses.contains(&task.status()))
            && self.kind.as_ref().is_none_or(|kind| *kind == task.kind)
            && self.created_from.is_none_or(|from| task.created_at >= from)
            && self.created_before.is_none_or(|before| task.created_at < before)
            && self.ended.has(task.ended().map(|ended| ended.ended_at))
            && (!self.stuck || task.status() == Status::Pending)
            && self.id_prefix.as_ref().is_none_or(|prefix| task.id.as_str().starts_with(prefix.as_str()))
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
    /// Only executions that ended within this.
    #[serde(skip_serializing_if = "Period::is_boundless")]
    pub ended: Period,
    /// Whether only those are meant that are paused or that no worker can continue.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stuck: bool,
    /// Only executions whose id begins with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_prefix: Option<ExecutionId>,
    /// Only executions with this label: its name and its value.
    pub label: Option<(String, String)>,
    /// Only executions that have failed with an error of this code.
    pub error: Option<String>,
}

impl ExecutionFilter {
    /// The same filter with the only statuses that fit it, where it names none: so the shortest lists are read.
    #[must_use]
    pub fn narrowed(mut self) -> Self {
        let live = self.stuck;
        if self.statuses.is_empty() && (live || !self.ended.is_boundless()) {
            self.statuses =
                ExecutionStatus::ALL.into_iter().filter(|status| status.is_live() == live).collect();
        }
        self
    }

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
            && self.ended.has(execution.closed().map(|closed| closed.ended_at))
            && (!self.stuck || may_need_operator(execution))
            && self.id_prefix.as_ref().is_none_or(|prefix| execution.id.as_str().starts_with(prefix.as_str()))
            && self.error.as_deref().is_none_or(|code| execution.error_code() == Some(code))
    }
}

/// Whether an open execution is paused, or the last worker couldn't continue it.
const fn may_need_operator(execution: &Execution) -> bool {
    execution.closed().is_none() && (execution.paused || execution.stuck.is_some())
}
