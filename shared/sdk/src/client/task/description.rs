//! A task as a client sees it.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tickover_core::id::TaskId;
use tickover_core::payload::Json;
use tickover_core::retry::MaxAttempts;
use tickover_core::task::next::next;
use tickover_core::task::{self, Ending, PastAttempt, State, Status, Task};
use tickover_core::time::Timestamp;
use tickover_core::timeout::TimeoutKind;
use tickover_service::describe::Described;

use crate::client::outcome::{null, read};
use crate::client::{TaskError, json};
use crate::error::Failure;

/// A task as it stood when it was asked for. Lists and [`TaskHandle::retry`](super::TaskHandle::retry) leave out
/// payloads that are large.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskDescription {
    /// Its id, the same for all its attempts.
    pub id: TaskId,
    /// Where workers find it.
    pub queue: String,
    /// What sort of work it is.
    pub kind: String,
    /// Where it stands.
    pub status: Status,
    /// Number of the attempt that runs or ran last; 0 before the first. Attempts that were lost or given back don't
    /// count.
    pub attempt: u32,
    /// How many there may be, the first included.
    pub max_attempts: MaxAttempts,
    /// When it was scheduled.
    pub created_at: Timestamp,
    /// While pending: from when a worker may have it.
    pub available_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When it must have ended, whatever attempts are left.
    pub deadline_at: Option<Timestamp>,
    /// While pending: until when a worker must have claimed it.
    pub schedule_to_start_at: Option<Timestamp>,
    /// While running: until when this attempt must have ended.
    pub start_to_close_at: Option<Timestamp>,
    /// While running: until when the next heartbeat must have come.
    pub heartbeat_at: Option<Timestamp>,
    /// While running: until when its worker counts as alive.
    pub lease_expires_at: Option<Timestamp>,
    /// How it ended, if it has.
    pub outcome: Option<TaskOutcome>,
    /// While it waits to be tried again: what went wrong in the last attempt, the message cut short.
    pub last_error: Option<Failure>,
    /// Its last attempts, oldest first, with the one that runs.
    pub attempts: Vec<Attempt>,
    /// How far the running attempt says it is, from 0 to 1.
    pub progress: Option<f64>,
    /// Its input.
    pub input: Option<Json>,
    /// Its labels, an object of strings.
    pub labels: Option<Json>,
    /// What happens to it by itself, if nobody does anything.
    pub next: Next,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskOutcome {
    /// With a result, as JSON. Absent where the answer left it out because it is large, or there is none.
    Completed(Option<Json>),
    /// With an error that isn't retried, or with no attempts left.
    Failed(Failure),
    /// Too late.
    TimedOut {
        /// Which timeout.
        kind: TimeoutKind,
        /// Why, with the last error if there was one.
        error: Failure,
    },
    /// On request, or by a timeout that isn't to count as an error.
    Cancelled {
        /// The timeout, if it was one.
        timeout: Option<TimeoutKind>,
    },
    /// It was never to run: its retry policy gives it no attempt.
    Skipped,
}

/// An attempt at a task.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Attempt {
    /// Its number, from 1. That of one that was lost or given back is used again.
    pub attempt: u32,
    /// Who had it.
    pub worker: Option<String>,
    /// When it was claimed; absent if nobody came in time.
    #[serde(default, deserialize_with = "json::some_instant")]
    pub claimed_at: Option<Timestamp>,
    /// When it ended; absent while it runs.
    #[serde(default, deserialize_with = "json::some_instant")]
    pub ended_at: Option<Timestamp>,
    /// How it ended; absent while it runs.
    pub outcome: Option<AttemptOutcome>,
    /// What went wrong, the message cut short.
    pub error: Option<Failure>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// Its worker reported a result.
    Completed,
    /// Its worker reported an error.
    Failed,
    /// One of its timeouts, or the task's deadline, passed.
    TimedOut,
    /// Its worker gave it back.
    Released,
    /// Its worker went silent.
    Lost,
    /// The task was cancelled under it.
    Cancelled,
}

/// What happens next by itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Next {
    /// `becomes_available`, `waits_for_worker`, `lease_expires`, `deleted`, or a timeout such as
    /// `schedule_to_close_timeout`.
    pub what: String,
    /// When; absent where it is up to others.
    #[serde(default, deserialize_with = "json::some_instant")]
    pub at: Option<Timestamp>,
}

impl TaskDescription {
    /// Whether it is still to be done.
    pub const fn is_live(&self) -> bool {
        self.status.is_live()
    }

    pub(in crate::client) fn of(described: Described, now: Timestamp) -> Self {
        let outcome = outcome(&described);
        let Described { task, input, labels, .. } = described;
        let (pending, running) = match &task.state {
            State::Pending(pending) => (Some(pending), None),
            State::Running(running) => (None, Some(running)),
            State::Ended(_) => (None, None),
        };
        let last = pending.and(task.history.last()).and_then(|last| last.error.clone());
        let current = running.map(|running| Attempt {
            attempt: task.attempt,
            worker: running.worker.as_ref().map(ToString::to_string),
            claimed_at: Some(running.claimed_at),
            ended_at: None,
            outcome: None,
            error: None,
        });
        let next = next(&task, now);
        Self {
            queue: task.queue.to_string(),
            kind: task.kind.to_string(),
            status: task.status(),
            attempt: task.attempt,
            max_attempts: task.retry.max_attempts,
            created_at: task.created_at,
            available_at: pending.map(|pending| pending.available_at),
            ended_at: task.ended().map(|ended| ended.ended_at),
            deadline_at: task.deadline_at,
            schedule_to_start_at: pending.and_then(|pending| pending.schedule_to_start_at),
            start_to_close_at: running.and_then(|running| running.start_to_close_at),
            heartbeat_at: running.and_then(|running| running.heartbeat_at),
            lease_expires_at: running.map(|running| running.lease_expires_at),
            outcome,
            last_error: last.map(failure),
            attempts: task.history.iter().map(Attempt::from).chain(current).collect(),
            progress: task.progress,
            input,
            labels,
            next: Next { what: next.what.as_str().to_owned(), at: next.at },
            id: task.id,
        }
    }
}

fn outcome(described: &Described) -> Option<TaskOutcome> {
    let Task { state: State::Ended(ended), .. } = &described.task else { return None };
    Some(match ended.outcome.clone() {
        task::Outcome::Completed { .. } => TaskOutcome::Completed(described.output.clone()),
        task::Outcome::Failed { error, .. } => {
            let whole = described.error_message.as_ref();
            let whole = whole.and_then(|json| serde_json::from_str(json.as_str()).ok());
            TaskOutcome::Failed(Failure::new(error.code, whole.unwrap_or(error.message)))
        }
        task::Outcome::TimedOut { kind, error } => TaskOutcome::TimedOut { kind, error: failure(error) },
        task::Outcome::Cancelled { timeout } => TaskOutcome::Cancelled { timeout },
        task::Outcome::Skipped => TaskOutcome::Skipped,
    })
}

impl TaskOutcome {
    /// The result, read as its type, or why there is none. A task without a result has `null`.
    pub(super) fn into_result<O: DeserializeOwned>(self) -> Result<O, TaskError> {
        match self {
            Self::Completed(output) => read(&output.unwrap_or_else(null))
                .map_err(|(type_name, problem)| TaskError::Unreadable { type_name, problem }),
            Self::Failed(error) => Err(TaskError::Failed(error)),
            Self::TimedOut { kind, error } => Err(TaskError::TimedOut { kind, error }),
            Self::Cancelled { timeout } => Err(TaskError::Cancelled { timeout }),
            Self::Skipped => Err(TaskError::Skipped),
        }
    }
}

impl From<&PastAttempt> for Attempt {
    fn from(past: &PastAttempt) -> Self {
        Self {
            attempt: past.attempt,
            worker: past.worker.as_ref().map(ToString::to_string),
            claimed_at: past.claimed_at,
            ended_at: Some(past.ended_at),
            outcome: Some(match past.ending {
                Ending::Completed => AttemptOutcome::Completed,
                Ending::Failed => AttemptOutcome::Failed,
                Ending::TimedOut(_) => AttemptOutcome::TimedOut,
                Ending::Released => AttemptOutcome::Released,
                Ending::Lost => AttemptOutcome::Lost,
                Ending::Cancelled => AttemptOutcome::Cancelled,
            }),
            error: past.error.clone().map(failure),
        }
    }
}

fn failure(failure: task::Failure) -> Failure {
    Failure::new(failure.code, failure.message)
}
