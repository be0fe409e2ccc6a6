//! Tasks, what workers get, queues, and the server itself.

use serde::{Deserialize, Serialize};
use tickover_core::id::{QueueName, TaskId, TaskKind, WorkerName, WorkflowName};
use tickover_core::task::Ending;

use super::Problem;
use crate::verbatim::present;
use crate::word::words;
use crate::{
    Attempts, Cursor, Instant, LeaseToken, SaidAttemptOutcome, SaidCancelOutcome, SaidHealth, SaidTaskStatus,
    SaidTimeoutKind, Verbatim,
};

words! {
    /// How an attempt ended.
    AttemptOutcome {
        /// With a result.
        Completed = "completed",
        /// With an error.
        Failed = "failed",
        /// By a timeout.
        TimedOut = "timed_out",
        /// Given back. It doesn't count.
        Released = "released",
        /// Its worker was lost. It doesn't count.
        Lost = "lost",
        /// The task was cancelled.
        Cancelled = "cancelled",
    }

    /// What became of a cancellation.
    CancelOutcome {
        /// It has ended.
        Cancelled = "cancelled",
        /// Its worker, or its code, will be told.
        Requested = "requested",
        /// It had ended before.
        AlreadyFinished = "already_finished",
    }

    /// How the server is.
    Health {
        /// All is well.
        Ok = "ok",
        /// Records were found that can't be read.
        Degraded = "degraded",
    }
}

impl From<Ending> for AttemptOutcome {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Completed => Self::Completed,
            Ending::Failed => Self::Failed,
            Ending::TimedOut(_) => Self::TimedOut,
            Ending::Released => Self::Released,
            Ending::Lost => Self::Lost,
            Ending::Cancelled => Self::Cancelled,
        }
    }
}

/// What happens to a task by itself, if nobody does anything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NextView {
    /// `becomes_available`, `waits_for_worker`, `lease_expires`, `deleted`, or a timeout such as
    /// `schedule_to_close_timeout`.
    pub what: String,
    /// When; absent where it is up to others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Instant>,
}

/// A task. Instants are RFC 3339 in UTC with milliseconds; what doesn't apply is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskView {
    /// Its id, the same for all its attempts: the idempotency key to hand to outside services.
    pub id: TaskId,
    /// Where workers find it.
    pub queue: QueueName,
    /// What sort of work it is.
    pub kind: TaskKind,
    /// Where it stands.
    pub status: SaidTaskStatus,
    /// Number of the attempt that runs or ran last; 0 before the first.
    pub attempt: u32,
    /// Attempts it has, the first included; 0 skips, -1 is without limit.
    pub max_attempts: Attempts,
    /// When it was scheduled.
    pub created_at: Instant,
    /// While pending: from when a worker may claim it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_at: Option<Instant>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Instant>,
    /// When the whole task must have ended. Nothing moves it but an operator's retry, which clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Instant>,
    /// While pending: until when a worker must have claimed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_to_start_at: Option<Instant>,
    /// While running: until when this attempt must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_to_close_at: Option<Instant>,
    /// While running: until when the next heartbeat must have come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<Instant>,
    /// While running: until when its worker counts as alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<Instant>,
    /// Which timeout ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_kind: Option<SaidTimeoutKind>,
    /// Its input as it was sent. Lists and workers' reports leave out one that is stored apart, being large.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
    /// Its result as it was sent; left out like the input.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Verbatim>,
    /// Why it failed or timed out; while it waits to be tried again, the last attempt's error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// The last attempts, oldest first, with the one that runs.
    pub attempts: Vec<AttemptView>,
    /// How far the last attempt that told said it had come, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// Its labels, an object of strings.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::BTreeMap<String, String>>))]
    pub labels: Option<Verbatim>,
    /// What happens next by itself, and when.
    pub next: NextView,
}

/// A task in a worker's hands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClaimedView {
    /// Its id, the same for all its attempts.
    pub id: TaskId,
    /// What sort of work it is.
    pub kind: TaskKind,
    /// Its input as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// The trace that it belongs to, where traces are carried: W3C's trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The token to report with: opaque.
    pub lease: LeaseToken,
    /// Until when the worker counts as alive; a heartbeat renews it.
    pub lease_expires_at: Instant,
    /// When the attempt must have ended: the task's deadline or the attempt's own, whichever is sooner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Instant>,
    /// Milliseconds from this answer to `deadline_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_ms: Option<u64>,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorView {
    /// What sort of error, as the worker said; `timed_out` and `poisoned` are Tickover's own.
    pub code: String,
    /// For people. A past attempt keeps only its first 120 bytes.
    pub message: String,
}

/// An attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AttemptView {
    /// Its number, from 1. An attempt that was lost or given back doesn't count: its number is used again.
    pub attempt: u32,
    /// Who had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// When it was claimed; absent if nobody came in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Instant>,
    /// When it ended; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Instant>,
    /// How it ended; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<SaidAttemptOutcome>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskAnswer {
    /// The task as it stands now.
    pub task: TaskView,
    /// `true` where the same report had been taken before: the first one stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<bool>,
}

/// What became of a cancellation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CancelAnswer {
    /// The task as it stands now.
    pub task: TaskView,
    /// What became of it.
    pub outcome: SaidCancelOutcome,
}

/// Tasks for a worker; none if there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClaimAnswer {
    /// The tasks.
    pub tasks: Vec<ClaimedView>,
}

/// What a heartbeat is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HeartbeatAnswer {
    /// Until when the worker counts as alive now.
    pub lease_expires_at: Instant,
    /// When the attempt must have ended: a heartbeat doesn't move it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Instant>,
    /// Milliseconds from this answer to `deadline_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_ms: Option<u64>,
    /// Whether somebody wants the task cancelled: the worker should stop and fail or release it.
    pub cancel_requested: bool,
}

/// One result for each entry of the batch, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BatchAnswer {
    /// The results.
    pub results: Vec<BatchResult>,
}

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BatchResult {
    /// The status that the entry would have had by itself.
    pub status: u16,
    /// The task, where the entry succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<TaskView>>,
    /// `true` where the same report had been taken before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<bool>,
    /// The problem, where it didn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<Problem>>,
}

/// A page of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ListAnswer {
    /// The tasks. A page may have fewer than asked for, even none, and still not be the last.
    pub tasks: Vec<TaskView>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueueAnswer {
    /// The queue as it stands now.
    pub queue: QueueView,
}

/// All queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueuesAnswer {
    /// The queues, by name.
    pub queues: Vec<QueueView>,
}

/// That the server answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HealthAnswer {
    /// `degraded` where records were found that can't be read.
    pub status: SaidHealth,
    /// Records that a local server couldn't read when it started and left alone, at most 100 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// A queue. Its numbers are those of its messages, and approximate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueueView {
    /// Its name.
    pub name: QueueName,
    /// Whether nothing is handed out.
    pub paused: bool,
    /// Tasks waiting for a worker.
    pub depth: u64,
    /// Tasks in workers' hands.
    pub in_flight: u64,
    /// Tasks that start within 15 minutes.
    pub delayed: u64,
    /// The workflows of which its workers have said that they have the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<WorkflowName>,
    /// Since when its oldest waiting task could have been claimed; only looked up for a single queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_at: Option<Instant>,
}
