//! Tasks, answers for workers, queues, and the server's health.

use serde::{Deserialize, Serialize};
use tickover_core::id::{
    Capability, ExecutionId, QueueName, StepName, TaskId, TaskKind, WorkerName, WorkflowName,
};
use tickover_core::task::Ending;

use super::ByView;
use super::Problem;
use crate::answer::WaitsAtView;
#[cfg(feature = "schema")]
use crate::request::{KindDefaults, Retry};
use crate::verbatim::present;
use crate::word::words;
use crate::{
    Attempts, Cursor, Instant, LeaseToken, Length, OpenAttemptOutcome, OpenCancelOutcome, OpenHealth,
    OpenOnTimeout, OpenPriority, OpenTaskStatus, OpenTimeoutKind, Verbatim,
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
        /// The worker released it. It doesn't count.
        Released = "released",
        /// Its worker was lost. It doesn't count.
        Lost = "lost",
        /// The task was cancelled.
        Cancelled = "cancelled",
    }

    /// The outcome of a cancellation.
    CancelOutcome {
        /// It has ended.
        Cancelled = "cancelled",
        /// Its worker, or its code, will be notified.
        Requested = "requested",
        /// It had ended before.
        AlreadyFinished = "already_finished",
    }

    /// The health of the server.
    Health {
        /// No problems are known.
        Ok = "ok",
        /// Records were found that can't be read, or writes are refused.
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

/// What happens next without another call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NextView {
    /// `becomes_available`, `waits_for_rate`, `waits_for_worker`, `waits_for_place`, `queue_paused` (nothing, until its
    /// queue is resumed, and not before `at`), `lease_expires`, `next_run` (of an earlier run), `deleted`, or a timeout
    /// such as `schedule_to_close_timeout`.
    pub what: String,
    /// When; absent if it depends on workers or callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Instant>,
    /// The key whose rate it waits for, at most the first 48 bytes of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What a waiting task requires and no worker of its queue has said that it provides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unprovided: Vec<Capability>,
    /// `true` while it waits in a queue that is paused: no worker gets it, whatever comes first. An answer about a pause
    /// may be 5 s old; answers to calls that schedule or start may not know of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// A task. Instants are RFC 3339 in UTC with milliseconds. A field that doesn't apply is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskView {
    /// Its id, the same for all its attempts.
    pub id: TaskId,
    /// The queue of its workers.
    pub queue: QueueName,
    /// What kind of work it is.
    pub kind: TaskKind,
    /// Its status.
    pub status: OpenTaskStatus,
    /// The execution that it is a remote step of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The name of that step, if the record has space for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepName>,
    /// Number of the running or last attempt; 0 before the first.
    pub attempt: u32,
    /// The number of attempts it may have, including the first; 0 skips it, -1 is no limit.
    pub max_attempts: Attempts,
    /// Its retry policy with all fields, in the form of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Retry>))]
    pub retry: Option<Verbatim>,
    /// Its timeouts: how long each is, and what happens after it. Absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<TimeoutsView>,
    /// When it was scheduled.
    pub created_at: Instant,
    /// While pending: from when a worker may claim it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_at: Option<Instant>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Instant>,
    /// When the whole task must have ended. Only an operator's retry changes it: the retry clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Instant>,
    /// While pending: when a worker must have claimed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_to_start_at: Option<Instant>,
    /// While running: when this attempt must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_to_close_at: Option<Instant>,
    /// While running: when the next sign of life of the work must have arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<Instant>,
    /// While running: when the worker's lease expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<Instant>,
    /// Which timeout ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_kind: Option<OpenTimeoutKind>,
    /// Its input as it was sent. Lists and the answers to workers' reports leave out a large input that is stored as a
    /// blob.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
    /// Its result as it was sent; left out like the input.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Verbatim>,
    /// Why it failed or timed out; while it waits for a retry, the last attempt's error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// The last attempts, oldest first, including the running one.
    pub attempts: Vec<AttemptView>,
    /// The last progress that an attempt reported, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// The last details of the progress that an attempt reported, as they were sent; left out like the input.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub details: Option<Verbatim>,
    /// Its labels, an object of strings.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::BTreeMap<String, String>>))]
    pub labels: Option<Verbatim>,
    /// The trace that it belongs to, if the server carries traces: W3C's trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Its priority, if it isn't normal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<OpenPriority>,
    /// The beginning of its fairness key, at most 48 bytes: the tasks of a key are one tenant of their queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness_key: Option<String>,
    /// The key whose limit holds it back: while it waits for a place. Only in the answer about this one task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_at: Option<WaitsAtView>,
    /// Who has revived or cancelled it last, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ByView>,
    /// What happens next without another call, and when.
    pub next: NextView,
}

/// The timeouts of a task. One that it doesn't have is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimeoutsView {
    /// Of the whole task, from its scheduling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_to_close: Option<TimeoutView>,
    /// Of each attempt's wait for a worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_to_start: Option<TimeoutView>,
    /// Of each attempt, from its claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_to_close: Option<TimeoutView>,
    /// Between two heartbeats of an attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<TimeoutView>,
}

/// A timeout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimeoutView {
    /// How long it is.
    pub after: Length,
    /// What it does: `retry` while attempts are left, or `terminal`.
    pub on_timeout: OpenOnTimeout,
    /// Whether it counts as an error. If not, the task ends as `cancelled`.
    pub error_on_timeout: bool,
}

/// A task that a worker has claimed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClaimedView {
    /// Its id, the same for all its attempts.
    pub id: TaskId,
    /// The idempotency key for calls to other services. It is the same for all attempts, and for a task in which a rerun of
    /// an execution repeats the work of an earlier one. Absent only from servers of an earlier version: then it is the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<TaskId>,
    /// What kind of work it is.
    pub kind: TaskKind,
    /// Its input as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// The last progress that an earlier attempt reported, from 0 to 1: this one may continue from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// The last details of the progress that an earlier attempt reported, as they were sent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub details: Option<Verbatim>,
    /// The trace that it belongs to, if the server carries traces: W3C's trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The token for the worker's reports. It is opaque.
    pub lease: LeaseToken,
    /// When the lease expires. A heartbeat extends it.
    pub lease_expires_at: Instant,
    /// The heartbeat timeout in milliseconds: the attempt ends if its work gives no sign of life for so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout_ms: Option<u64>,
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
    /// The kind of error, as the worker reported it. `timed_out` and `poisoned` come from Tickover.
    pub code: String,
    /// For people. A past attempt keeps only its first 120 bytes.
    pub message: String,
}

/// An attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AttemptView {
    /// Its number, from 1. An attempt that was lost or released doesn't count: its number is used again.
    pub attempt: u32,
    /// The worker that claimed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// When it was claimed; absent if no worker claimed it in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Instant>,
    /// When it ended; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Instant>,
    /// How it ended; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OpenAttemptOutcome>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskAnswer {
    /// The task in its current state.
    pub task: TaskView,
    /// `true` if the same report was accepted before. The first one is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<bool>,
}

/// The outcome of a cancellation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CancelAnswer {
    /// The task in its current state.
    pub task: TaskView,
    /// The outcome.
    pub outcome: OpenCancelOutcome,
}

/// Tasks for a worker; an empty list if there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClaimAnswer {
    /// The tasks.
    pub tasks: Vec<ClaimedView>,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HeartbeatAnswer {
    /// When the lease expires now.
    pub lease_expires_at: Instant,
    /// By when the work must give its next sign of life, if it has a heartbeat timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<Instant>,
    /// When the attempt must have ended. A heartbeat doesn't change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Instant>,
    /// Milliseconds from this answer to `deadline_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_ms: Option<u64>,
    /// Whether a cancellation of the task was requested. If so, the worker should stop, and fail or release the task.
    pub cancel_requested: bool,
}

/// One result for each entry of the batch, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BatchAnswer {
    /// The results.
    pub results: Vec<BatchResult>,
}

/// The result of one entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BatchResult {
    /// The status that the entry would have had by itself.
    pub status: u16,
    /// The task, if the entry succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<TaskView>>,
    /// `true` if the same report was accepted before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<bool>,
    /// The problem, if the entry failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<Problem>>,
}

/// A page of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ListAnswer {
    /// The tasks. A page may have fewer records than the limit, even none, although it isn't the last page.
    pub tasks: Vec<TaskView>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueueAnswer {
    /// The queue in its current state.
    pub queue: QueueView,
}

/// All queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueuesAnswer {
    /// The queues, by name.
    pub queues: Vec<QueueView>,
}

/// The health of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HealthAnswer {
    /// `degraded` if the server found records that it can't read, or if its disk refuses writes.
    pub status: OpenHealth,
    /// Records that a local server couldn't read when it started, at most 100 of them. It didn't change them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
    /// Why a local server refuses calls that write, such as a full disk. It goes on by itself when the disk takes
    /// writes again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
}

/// The defaults of a kind of task on a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KindView {
    /// The queue.
    pub queue: QueueName,
    /// The kind.
    pub kind: TaskKind,
    /// Its defaults, as they were set.
    #[cfg_attr(feature = "schema", schema(value_type = KindDefaults))]
    pub defaults: Verbatim,
    /// Who set them, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ByView>,
}

/// The defaults of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KindAnswer {
    /// The kind.
    pub kind: KindView,
}

/// The kinds of a queue that have defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KindsAnswer {
    /// By name.
    pub kinds: Vec<KindView>,
}

/// The answer to the removal of a kind's defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeletedKindAnswer {
    /// The queue.
    pub queue: QueueName,
    /// The kind.
    pub kind: TaskKind,
    /// Always `true`: it has no defaults any more.
    pub deleted: bool,
}

/// A queue. Its numbers count messages, and are approximate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueueView {
    /// Its name.
    pub name: QueueName,
    /// Whether it is paused: its tasks aren't leased to workers.
    pub paused: bool,
    /// Tasks waiting for a worker.
    pub depth: u64,
    /// Tasks that workers have leased.
    pub in_flight: u64,
    /// Tasks that start within 15 minutes.
    pub delayed: u64,
    /// The workflows whose code its workers have announced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<WorkflowName>,
    /// What its workers have said that they provide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<Capability>,
    /// From when its oldest waiting task could be claimed. Only in the description of a single queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_at: Option<Instant>,
    /// Who has paused or resumed it last, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ByView>,
}
