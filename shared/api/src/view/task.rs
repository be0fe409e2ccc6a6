//! A task as callers see it.

use serde::Serialize;
use tickover_core::task::next::next;
use tickover_core::task::{Outcome, Pending, Running, State, Task};
use tickover_core::time::Timestamp;
use tickover_service::claim::ClaimedTask;
use tickover_service::describe::Described;
use utoipa::ToSchema;

use super::attempt::{AttemptView, ErrorView, attempts};
use super::verbatim::Verbatim;

/// What happens to a task by itself, if nobody does anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct NextView {
    /// `becomes_available`, `waits_for_worker`, `lease_expires`, `deleted`, or a timeout such as
    /// `schedule_to_close_timeout`.
    #[schema(value_type = String)]
    pub what: &'static str,
    /// When; absent where it is up to others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub at: Option<String>,
}

/// A task. Instants are RFC 3339 in UTC with milliseconds; what doesn't apply is absent.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct TaskView {
    /// Its id, the same for all its attempts: the idempotency key to hand to outside services.
    pub id: String,
    /// Where workers find it.
    pub queue: String,
    /// What sort of work it is.
    pub kind: String,
    /// `pending`, `running`, `completed`, `failed`, `timed_out`, `cancelled` or `skipped`.
    #[schema(value_type = String)]
    pub status: &'static str,
    /// Number of the attempt that runs or ran last; 0 before the first.
    pub attempt: u32,
    /// Attempts it has, the first included; 0 skips, -1 is without limit.
    pub max_attempts: i64,
    /// When it was scheduled.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// While pending: from when a worker may claim it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub available_at: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub ended_at: Option<String>,
    /// When the whole task must have ended. Nothing moves it but an operator's retry, which clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub deadline_at: Option<String>,
    /// While pending: until when a worker must have claimed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub schedule_to_start_at: Option<String>,
    /// While running: until when this attempt must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub start_to_close_at: Option<String>,
    /// While running: until when the next heartbeat must have come.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub heartbeat_at: Option<String>,
    /// While running: until when its worker counts as alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub lease_expires_at: Option<String>,
    /// Which timeout ended it: `schedule_to_close`, `schedule_to_start`, `heartbeat` or `start_to_close`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub timeout_kind: Option<&'static str>,
    /// Its input as it was sent. Lists and workers' reports leave out one that is stored apart, being large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub input: Option<Verbatim>,
    /// Its result as it was sent; left out like the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub output: Option<Verbatim>,
    /// Why it failed or timed out; while it waits to be tried again, the last attempt's error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<ErrorView>,
    /// The last attempts, oldest first, with the one that runs.
    pub attempts: Vec<AttemptView>,
    /// How far the last attempt that told said it had come, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub progress: Option<f64>,
    /// Its labels, an object of strings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub labels: Option<Verbatim>,
    /// What happens next by itself, and when.
    pub next: NextView,
}

impl TaskView {
    /// The view of a task at an instant, which only `next` depends on.
    pub fn of(described: &Described, now: Timestamp) -> Self {
        let task = &described.task;
        let text = |instant: Option<Timestamp>| instant.map(Timestamp::to_rfc3339);
        let (pending, running) = (pending(task), task.running());
        let next = next(task, now);
        Self {
            id: task.id.to_string(),
            queue: task.queue.to_string(),
            kind: task.kind.to_string(),
            status: task.status().as_str(),
            attempt: task.attempt,
            max_attempts: task.retry.max_attempts.into(),
            created_at: task.created_at.to_rfc3339(),
            available_at: text(pending.map(|pending| pending.available_at)),
            ended_at: text(task.ended().map(|ended| ended.ended_at)),
            deadline_at: text(task.deadline_at),
            schedule_to_start_at: text(pending.and_then(|pending| pending.schedule_to_start_at)),
            start_to_close_at: text(running.and_then(|running| running.start_to_close_at)),
            heartbeat_at: text(running.and_then(|running| running.heartbeat_at)),
            lease_expires_at: text(running.map(|running: &Running| running.lease_expires_at)),
            timeout_kind: timeout_kind(task),
            input: described.input.clone().map(Verbatim),
            output: described.output.clone().map(Verbatim),
            error: error(described),
            attempts: attempts(task),
            progress: task.progress,
            labels: described.labels.clone().map(Verbatim),
            next: NextView { what: next.what.as_str(), at: text(next.at) },
        }
    }
}

fn pending(task: &Task) -> Option<&Pending> {
    match &task.state {
        State::Pending(pending) => Some(pending),
        State::Running(_) | State::Ended(_) => None,
    }
}

fn timeout_kind(task: &Task) -> Option<&'static str> {
    match &task.ended()?.outcome {
        Outcome::TimedOut { kind, .. } => Some(kind.as_str()),
        Outcome::Cancelled { timeout } => timeout.map(tickover_core::timeout::TimeoutKind::as_str),
        Outcome::Completed { .. } | Outcome::Failed { .. } | Outcome::Skipped => None,
    }
}

fn error(described: &Described) -> Option<ErrorView> {
    let task = &described.task;
    match &task.state {
        State::Pending(_) => task.history.last()?.error.as_ref().map(ErrorView::from),
        State::Running(_) => None,
        State::Ended(ended) => match &ended.outcome {
            Outcome::Failed { error, .. } => {
                let whole = described.error_message.as_ref();
                let message = whole.and_then(|json| serde_json::from_str(json.as_str()).ok());
                Some(ErrorView {
                    code: error.code.clone(),
                    message: message.unwrap_or_else(|| error.message.clone()),
                })
            }
            Outcome::TimedOut { error, .. } => Some(error.into()),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } | Outcome::Skipped => None,
        },
    }
}

/// A task in a worker's hands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ClaimedView {
    /// Its id, the same for all its attempts.
    pub id: String,
    /// What sort of work it is.
    pub kind: String,
    /// Its input as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub input: Option<Verbatim>,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// The trace that it belongs to, where traces are carried: W3C's trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub traceparent: Option<String>,
    /// The token to report with: opaque.
    pub lease: String,
    /// Until when the worker counts as alive; a heartbeat renews it.
    #[schema(format = DateTime)]
    pub lease_expires_at: String,
    /// When the attempt must have ended: the task's deadline or the attempt's own, whichever is sooner.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub deadline_at: Option<String>,
    /// Milliseconds from this answer to `deadline_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub remaining_ms: Option<u64>,
}

impl ClaimedView {
    /// The view of a claimed task at an instant.
    pub fn of(claimed: ClaimedTask, now: Timestamp) -> Self {
        Self {
            id: claimed.task.id.to_string(),
            kind: claimed.task.kind.to_string(),
            input: claimed.input.map(Verbatim),
            attempt: claimed.task.attempt,
            traceparent: claimed.task.trace.map(|trace| trace.traceparent()),
            lease: claimed.token,
            lease_expires_at: claimed.lease_expires_at.to_rfc3339(),
            deadline_at: claimed.deadline_at.map(Timestamp::to_rfc3339),
            remaining_ms: claimed.deadline_at.map(|deadline| deadline.since(now).as_u64()),
        }
    }
}
