//! The lifecycle events of tasks: the changes that one committed write made.
//!
//! Events are derived from the record before and after the write. So there is one event for each change, however
//! many callers tried to make it. Events contain names, numbers and instants, never payloads: an error's code, but
//! not its message. The serialised names are a wire format.

mod derive;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::duration::Millis;
use crate::id::{ExecutionId, Incarnation, QueueName, StepName, TaskId, TaskKind, WorkerName};
use crate::task::{Ending, Status};
use crate::time::Timestamp;
use crate::timeout::TimeoutKind;
use crate::trace::TraceContext;

pub use derive::events;

/// The version of the format, `v` in every event. Another version has other fields.
pub const FORMAT: u8 = 1;

/// A change of a task. No two events have the same task, incarnation, version and type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Version of the format, always [`FORMAT`].
    pub v: u8,
    /// The type of the event, with its own fields.
    #[serde(flatten)]
    pub what: EventType,
    pub task_id: TaskId,
    /// Distinguishes it from earlier tasks with the same id.
    pub incarnation: Incarnation,
    /// The record's version after this write. Later events have later versions.
    pub version: u64,
    pub queue: QueueName,
    /// The kind of work.
    pub task_kind: TaskKind,
    /// The execution that it is a remote step of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// Its name in that execution, if the record had space for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepName>,
    /// Number of the attempt that the event is about; 0 before the first.
    pub attempt: u32,
    /// The trace that it belongs to, as in a `traceparent` header, if traces are kept.
    #[serde(rename = "traceparent", serialize_with = "wire::trace", skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    #[serde(serialize_with = "wire::instant")]
    pub at: Timestamp,
}

/// The type of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
pub enum EventType {
    /// The task was created.
    TaskScheduled {
        /// From when a worker may claim it. Absent if the task never runs.
        #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
        available_at: Option<Timestamp>,
        /// When the whole task must have ended.
        #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
        deadline_at: Option<Timestamp>,
    },
    /// A worker claimed it, perhaps after another worker was lost.
    TaskStarted {
        #[serde(skip_serializing_if = "Option::is_none")]
        worker: Option<WorkerName>,
        /// How long it could have been claimed before this: from `available_at`, or from the end of a lost lease.
        #[serde(rename = "waited_ms")]
        waited: Millis,
    },
    /// An attempt timed out, and that timeout didn't end the task. The next event says what happened to the task.
    AttemptTimedOut {
        #[serde(flatten)]
        expiry: Expiry,
        #[serde(flatten)]
        attempt: EndedAttempt,
    },
    /// An attempt ended without a result, and the task waits for another one.
    TaskRetrying {
        #[serde(flatten)]
        attempt: EndedAttempt,
        /// The code of the error that its worker reported, if the record had space for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
        /// From when the task may be claimed again.
        #[serde(serialize_with = "wire::instant")]
        retry_at: Timestamp,
    },
    /// It ended with a result.
    TaskCompleted {
        /// The attempt that returned the result.
        #[serde(flatten)]
        attempt: Option<EndedAttempt>,
    },
    /// It ended with an error.
    TaskFailed {
        /// The error's code; `poisoned` if too many workers in a row were lost.
        error_code: String,
        /// The last attempt.
        #[serde(flatten)]
        attempt: Option<EndedAttempt>,
    },
    /// It ended because its deadline or a timeout of its last attempt passed.
    TaskTimedOut {
        #[serde(flatten)]
        expiry: Expiry,
        /// The attempt that ended with it, if one ran.
        #[serde(flatten)]
        attempt: Option<EndedAttempt>,
        /// The code of the error that its worker reported, if there was no time for a retry.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
    },
    /// It ended by a request, or by a timeout that doesn't count as an error.
    TaskCancelled {
        /// The timeout, if there was one.
        #[serde(flatten)]
        expiry: Option<Expiry>,
        /// The attempt that ended with it, if one ran.
        #[serde(flatten)]
        attempt: Option<EndedAttempt>,
    },
    /// A cancellation was requested. The worker is notified by its next heartbeat.
    TaskCancelRequested,
    /// It never runs.
    TaskSkipped,
    /// An operator revived it after its end. It waits for a worker again.
    TaskRevived,
}

/// An expired timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Expiry {
    #[serde(serialize_with = "wire::timeout")]
    pub kind: TimeoutKind,
    /// The instant at which it expired.
    #[serde(serialize_with = "wire::instant")]
    pub deadline_at: Timestamp,
    /// How long after that instant it was recorded.
    #[serde(rename = "lateness_ms")]
    pub lateness: Millis,
    /// Whether that instant is in the future: the task ended early because a retry could only start after it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub doomed: bool,
}

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndedAttempt {
    /// How it ended, as in the list of a task's attempts.
    #[serde(serialize_with = "wire::ending")]
    pub outcome: Ending,
    /// When it was claimed. Absent if no worker claimed it in time.
    #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The worker that ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
}

impl Event {
    /// The event as a message's body.
    pub fn body(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

impl EventType {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TaskScheduled { .. } => "TaskScheduled",
            Self::TaskStarted { .. } => "TaskStarted",
            Self::AttemptTimedOut { .. } => "AttemptTimedOut",
            Self::TaskRetrying { .. } => "TaskRetrying",
            Self::TaskCompleted { .. } => "TaskCompleted",
            Self::TaskFailed { .. } => "TaskFailed",
            Self::TaskTimedOut { .. } => "TaskTimedOut",
            Self::TaskCancelled { .. } => "TaskCancelled",
            Self::TaskCancelRequested => "TaskCancelRequested",
            Self::TaskSkipped => "TaskSkipped",
            Self::TaskRevived => "TaskRevived",
        }
    }

    /// The status that the task ended in, if it ended.
    pub const fn ended_as(&self) -> Option<Status> {
        match self {
            Self::TaskCompleted { .. } => Some(Status::Completed),
            Self::TaskFailed { .. } => Some(Status::Failed),
            Self::TaskTimedOut { .. } => Some(Status::TimedOut),
            Self::TaskCancelled { .. } => Some(Status::Cancelled),
            Self::TaskSkipped => Some(Status::Skipped),
            Self::TaskScheduled { .. }
            | Self::TaskStarted { .. }
            | Self::AttemptTimedOut { .. }
            | Self::TaskRetrying { .. }
            | Self::TaskCancelRequested
            | Self::TaskRevived => None,
        }
    }

    /// The timeout that expired, if one did.
    pub const fn expiry(&self) -> Option<&Expiry> {
        match self {
            Self::AttemptTimedOut { expiry, .. } | Self::TaskTimedOut { expiry, .. } => Some(expiry),
            Self::TaskCancelled { expiry, .. } => expiry.as_ref(),
            Self::TaskScheduled { .. }
            | Self::TaskStarted { .. }
            | Self::TaskRetrying { .. }
            | Self::TaskCompleted { .. }
            | Self::TaskFailed { .. }
            | Self::TaskCancelRequested
            | Self::TaskSkipped
            | Self::TaskRevived => None,
        }
    }

    /// The code of an error, if there was one.
    pub fn error_code(&self) -> Option<&str> {
        match self {
            Self::TaskFailed { error_code, .. } => Some(error_code),
            Self::TaskRetrying { error_code, .. } | Self::TaskTimedOut { error_code, .. } => {
                error_code.as_deref()
            }
            Self::TaskScheduled { .. }
            | Self::TaskStarted { .. }
            | Self::AttemptTimedOut { .. }
            | Self::TaskCompleted { .. }
            | Self::TaskCancelled { .. }
            | Self::TaskCancelRequested
            | Self::TaskSkipped
            | Self::TaskRevived => None,
        }
    }

    /// The attempt that ended, if one did.
    pub const fn ended_attempt(&self) -> Option<&EndedAttempt> {
        match self {
            Self::AttemptTimedOut { attempt, .. } | Self::TaskRetrying { attempt, .. } => Some(attempt),
            Self::TaskCompleted { attempt }
            | Self::TaskFailed { attempt, .. }
            | Self::TaskTimedOut { attempt, .. }
            | Self::TaskCancelled { attempt, .. } => attempt.as_ref(),
            Self::TaskScheduled { .. }
            | Self::TaskStarted { .. }
            | Self::TaskCancelRequested
            | Self::TaskSkipped
            | Self::TaskRevived => None,
        }
    }
}

/// Serialises full names and readable instants. Records have short names.
pub(crate) mod wire {
    #![expect(
        clippy::trivially_copy_pass_by_ref,
        clippy::ref_option,
        reason = "the signatures that serde asks for"
    )]

    use serde::{Serialize as _, Serializer};

    use super::{Ending, TimeoutKind, Timestamp, TraceContext};

    pub(crate) fn instant<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&at.to_rfc3339())
    }

    pub(crate) fn maybe_instant<S: Serializer>(at: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => instant(at, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn trace<S: Serializer>(trace: &Option<TraceContext>, to: S) -> Result<S::Ok, S::Error> {
        trace.map(|trace| trace.traceparent()).serialize(to)
    }

    pub(crate) fn timeout<S: Serializer>(kind: &TimeoutKind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(kind.as_str())
    }

    pub(crate) fn ending<S: Serializer>(ending: &Ending, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(ending.as_str())
    }
}
