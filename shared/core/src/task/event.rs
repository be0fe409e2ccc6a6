//! What happened to a task in one committed write, for those who want to be told.
//!
//! Events are derived from the record before and after the write, so there is one for each change however many
//! tried to make it. They carry names, numbers and instants, never payloads: an error's code, but not its message.
//! The serialised names are a wire format.

mod derive;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::duration::Millis;
use crate::id::{Incarnation, QueueName, TaskId, TaskKind, WorkerName};
use crate::task::{Ending, Status};
use crate::time::Timestamp;
use crate::timeout::TimeoutKind;
use crate::trace::TraceContext;

pub use derive::events;

/// The version of the format, `v` in every event. Another one means other fields.
pub const FORMAT: u8 = 1;

/// Something that happened to a task. No two events have the same task, incarnation, version and type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Version of the format, always [`FORMAT`].
    pub v: u8,
    /// What, with its own fields beside these.
    #[serde(flatten)]
    pub what: What,
    /// The task.
    pub task_id: TaskId,
    /// Tells it from earlier tasks of the same id.
    pub incarnation: Incarnation,
    /// The record's version since this write; a later event has a later one.
    pub version: u64,
    /// The task's queue.
    pub queue: QueueName,
    /// What sort of work it is.
    pub task_kind: TaskKind,
    /// Number of the attempt that the event is about; 0 before the first.
    pub attempt: u32,
    /// The trace that it belongs to, as in a `traceparent` header, where traces are carried.
    #[serde(rename = "traceparent", serialize_with = "wire::trace", skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// When.
    #[serde(serialize_with = "wire::instant")]
    pub at: Timestamp,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
pub enum What {
    /// The task exists now.
    TaskScheduled {
        /// From when a worker may claim it; absent if none ever may.
        #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
        available_at: Option<Timestamp>,
        /// When the whole task must have ended.
        #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
        deadline_at: Option<Timestamp>,
    },
    /// A worker claimed it, perhaps after another one was lost.
    TaskStarted {
        /// Who.
        #[serde(skip_serializing_if = "Option::is_none")]
        worker: Option<WorkerName>,
        /// How long it could have been claimed before: from `available_at`, or from the end of a lost lease.
        #[serde(rename = "waited_ms")]
        waited: Millis,
    },
    /// An attempt's time ran out, and the task didn't end by it: the next event says what became of the task.
    AttemptTimedOut {
        /// The timeout.
        #[serde(flatten)]
        expiry: Expiry,
        /// The attempt.
        #[serde(flatten)]
        attempt: EndedAttempt,
    },
    /// An attempt is over without a result, and the task waits for another one.
    TaskRetrying {
        /// The attempt.
        #[serde(flatten)]
        attempt: EndedAttempt,
        /// The code of the error that its worker reported, if the record had room for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
        /// From when the task may be claimed again.
        #[serde(serialize_with = "wire::instant")]
        retry_at: Timestamp,
    },
    /// It ended with a result.
    TaskCompleted {
        /// The attempt that brought it.
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
    /// It ended because its time, or its last attempt's, ran out.
    TaskTimedOut {
        /// The timeout.
        #[serde(flatten)]
        expiry: Expiry,
        /// The attempt that ended with it, if one ran.
        #[serde(flatten)]
        attempt: Option<EndedAttempt>,
        /// The code of the error that its worker reported, where that can't be retried in time.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
    },
    /// It ended on request, or by a timeout that isn't to count as an error.
    TaskCancelled {
        /// The timeout, if it was one.
        #[serde(flatten)]
        expiry: Option<Expiry>,
        /// The attempt that ended with it, if one ran.
        #[serde(flatten)]
        attempt: Option<EndedAttempt>,
    },
    /// Its worker is to be told to stop.
    TaskCancelRequested,
    /// It was never to run.
    TaskSkipped,
    /// An operator made it wait for a worker again after it had ended.
    TaskRevived,
}

/// A timeout that was enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Expiry {
    /// Which timeout.
    #[serde(serialize_with = "wire::timeout")]
    pub kind: TimeoutKind,
    /// The instant that it was set to.
    #[serde(serialize_with = "wire::instant")]
    pub deadline_at: Timestamp,
    /// How long after that instant it was enforced.
    #[serde(rename = "lateness_ms")]
    pub lateness: Millis,
    /// Whether that instant is still to come: the task ended early because a retry could only start after it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub doomed: bool,
}

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndedAttempt {
    /// How it ended, as the list of a task's attempts says it.
    #[serde(serialize_with = "wire::ending")]
    pub outcome: Ending,
    /// When it was claimed; absent if nobody came in time.
    #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Who had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
}

impl Event {
    /// The event as a message's body.
    pub fn body(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

impl What {
    /// The event's type.
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

    /// The timeout that was enforced, if one was.
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

    /// The attempt that is over.
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

/// Full names and readable instants, where records have short ones.
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
