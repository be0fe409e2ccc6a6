//! Tasks.

use serde::Deserialize;
use tickover_core::id::TaskId;
use tickover_core::payload::Json;
use tickover_core::retry::MaxAttempts;
use tickover_core::task::Status;
use tickover_core::time::Timestamp;
use tickover_core::timeout::TimeoutKind;

use super::unknown;
use crate::client::{Attempt, ClientError, Next, TaskDescription, TaskOutcome, json};
use crate::error::Failure;

/// The timeouts that answers name.
const TIMEOUTS: [TimeoutKind; 4] = [
    TimeoutKind::ScheduleToClose,
    TimeoutKind::ScheduleToStart,
    TimeoutKind::Heartbeat,
    TimeoutKind::StartToClose,
];

/// One task.
#[derive(Deserialize)]
pub(in crate::client::http) struct OneTask {
    pub(in crate::client::http) task: TaskView,
}

/// A page of tasks.
#[derive(Deserialize)]
pub(in crate::client::http) struct TaskPage {
    pub(in crate::client::http) tasks: Vec<TaskView>,
    pub(in crate::client::http) cursor: Option<String>,
}

/// A task.
#[derive(Deserialize)]
pub(in crate::client::http) struct TaskView {
    pub(in crate::client::http) id: TaskId,
    queue: String,
    kind: String,
    status: String,
    attempt: u32,
    max_attempts: MaxAttempts,
    #[serde(deserialize_with = "json::instant")]
    created_at: Timestamp,
    #[serde(default, deserialize_with = "json::some_instant")]
    available_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "json::some_instant")]
    ended_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "json::some_instant")]
    deadline_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "json::some_instant")]
    schedule_to_start_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "json::some_instant")]
    start_to_close_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "json::some_instant")]
    heartbeat_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "json::some_instant")]
    lease_expires_at: Option<Timestamp>,
    timeout_kind: Option<String>,
    #[serde(default, deserialize_with = "json::payload")]
    input: Option<Json>,
    #[serde(default, deserialize_with = "json::payload")]
    output: Option<Json>,
    error: Option<Failure>,
    attempts: Vec<Attempt>,
    progress: Option<f64>,
    #[serde(default, deserialize_with = "json::payload")]
    labels: Option<Json>,
    next: Next,
}

impl TaskView {
    pub(in crate::client::http) fn describe(self) -> Result<TaskDescription, ClientError> {
        let status = Status::parse(&self.status).ok_or_else(|| unknown("status", &self.status))?;
        let timeout = |name: &String| {
            let found = TIMEOUTS.into_iter().find(|kind| kind.as_str() == name);
            found.ok_or_else(|| unknown("timeout", name))
        };
        let timeout = self.timeout_kind.as_ref().map(timeout).transpose()?;
        let error = |code: &str| self.error.clone().unwrap_or_else(|| Failure::new(code, ""));
        let outcome = match status {
            Status::Pending | Status::Running => None,
            Status::Completed => Some(TaskOutcome::Completed(self.output)),
            Status::Failed => Some(TaskOutcome::Failed(error("failed"))),
            Status::TimedOut => {
                let kind = timeout.unwrap_or(TimeoutKind::ScheduleToClose);
                Some(TaskOutcome::TimedOut { kind, error: error("timed_out") })
            }
            Status::Cancelled => Some(TaskOutcome::Cancelled { timeout }),
            Status::Skipped => Some(TaskOutcome::Skipped),
        };
        Ok(TaskDescription {
            id: self.id,
            queue: self.queue,
            kind: self.kind,
            status,
            attempt: self.attempt,
            max_attempts: self.max_attempts,
            created_at: self.created_at,
            available_at: self.available_at,
            ended_at: self.ended_at,
            deadline_at: self.deadline_at,
            schedule_to_start_at: self.schedule_to_start_at,
            start_to_close_at: self.start_to_close_at,
            heartbeat_at: self.heartbeat_at,
            lease_expires_at: self.lease_expires_at,
            last_error: self.error.filter(|_| status.is_live()),
            outcome,
            attempts: self.attempts,
            progress: self.progress,
            input: self.input,
            labels: self.labels,
            next: self.next,
        })
    }
}
