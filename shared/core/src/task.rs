//! A task's record: what was asked for, where it stands, and what its last attempts came to.
//!
//! The short serialised names are a wire format: the record is stored, and travels in hints, in this shape.

pub mod command;
pub(crate) mod decide;
pub mod decision;
pub mod due;
pub mod event;
pub mod hint;
pub mod next;
mod transition;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::due::Due;
use crate::duration::Millis;
use crate::id::{Fingerprint, Incarnation, LeaseId, Nonce, QueueName, TaskId, TaskKind, WorkerName};
use crate::parent::Parent;
use crate::payload::{BlobRef, Payload};
use crate::retry::RetryPolicy;
use crate::time::Timestamp;
use crate::timeout::{TimeoutKind, Timeouts};
use crate::trace::TraceContext;

pub use crate::failure::Failure;
pub use command::Command;
pub use decide::decide;
pub use decision::{Decision, Reply};

/// The version of the stored format. Readers refuse another one loudly and never rewrite it.
pub const FORMAT: u8 = 1;

/// The control record of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Version of the format, always [`FORMAT`].
    #[serde(rename = "v")]
    pub format: u8,
    /// Its id.
    #[serde(rename = "id")]
    pub id: TaskId,
    /// Tells it from earlier tasks of the same id.
    #[serde(rename = "inc")]
    pub incarnation: Incarnation,
    /// Counts the decisions written; every write is conditional on it.
    #[serde(rename = "ver")]
    pub version: u64,
    /// The decision that wrote this version.
    #[serde(rename = "non")]
    pub nonce: Nonce,
    /// Where workers find it.
    #[serde(rename = "q")]
    pub queue: QueueName,
    /// What sort of work it is.
    #[serde(rename = "k")]
    pub kind: TaskKind,
    /// When it was scheduled.
    #[serde(rename = "t0")]
    pub created_at: Timestamp,
    /// Digest of the request that scheduled it.
    #[serde(rename = "fp")]
    pub fingerprint: Fingerprint,
    /// The execution it is a remote step of, which is told of its end.
    #[serde(rename = "par", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The trace that it belongs to, as its caller said. Kept for as long as there is room for it.
    #[serde(rename = "tr", default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The idempotency key it was scheduled with.
    #[serde(rename = "key", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<HeldKey>,
    /// Its input.
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Payload>,
    /// Its labels, a JSON object of strings.
    #[serde(rename = "lab", default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Payload>,
    /// How it is retried.
    #[serde(rename = "ret")]
    pub retry: RetryPolicy,
    /// Its timeouts as durations.
    #[serde(rename = "tim", default)]
    pub timeouts: Timeouts,
    /// When the whole task must have ended: fixed at scheduling, never moved.
    #[serde(rename = "dl", default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// Number of the attempt that runs or ran last; 0 before the first. Lost and released ones don't count.
    #[serde(rename = "n")]
    pub attempt: u32,
    /// Workers lost in a row.
    #[serde(rename = "los", default, skip_serializing_if = "is_zero")]
    pub losses: u32,
    /// How far the last attempt that told said it had come, from 0 to 1. The next one may go on from there.
    #[serde(rename = "pro", default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// When its hint was last sent again because the first seemed lost.
    #[serde(rename = "hin", default, skip_serializing_if = "Option::is_none")]
    pub hinted_at: Option<Timestamp>,
    /// Whether its hint was deleted because its queue is paused: resuming the queue sends another one.
    #[serde(rename = "prk", default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
    /// When an operator last revived it after it had ended.
    #[serde(rename = "rev", default, skip_serializing_if = "Option::is_none")]
    pub revived_at: Option<Timestamp>,
    /// The last attempts that ended, oldest first.
    #[serde(rename = "att", default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<PastAttempt>,
    /// Where it stands.
    #[serde(rename = "st")]
    pub state: State,
    /// When the tick has to look at it; absent once it has ended.
    #[serde(rename = "due", default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The idempotency key that stands for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldKey {
    /// Digest of the key.
    #[serde(rename = "d")]
    pub digest: Fingerprint,
    /// When the key's record may be deleted; moved later while the task is open.
    #[serde(rename = "x")]
    pub expires_at: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_start(version: &u64) -> bool {
    *version == 0
}

/// Where a task stands, with all that belongs to that state only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum State {
    /// Waits for a worker, or for the instant from which one may have it.
    #[serde(rename = "p")]
    Pending(Pending),
    /// A worker holds it.
    #[serde(rename = "r")]
    Running(Running),
    /// It has ended.
    #[serde(rename = "e")]
    Ended(Ended),
}

/// A task waiting to be claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// From when a worker may claim it.
    #[serde(rename = "a")]
    pub available_at: Timestamp,
    /// Until when one must.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub schedule_to_start_at: Option<Timestamp>,
    /// Whether its hint is still to be sent, by the tick, because it starts later than a queue can delay.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub hint_later: bool,
    /// The record's version when it became pending; 0 if it always was. Hints of older versions are spent.
    #[serde(rename = "v", default, skip_serializing_if = "is_start")]
    pub since_version: u64,
    /// Since when nobody has read its hint, where the time to start has passed meanwhile: the hint is still the same.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub unread_since: Option<Timestamp>,
}

/// A task in a worker's hands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The fence of this attempt.
    #[serde(rename = "l")]
    pub lease: LeaseId,
    /// Who holds it.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// When it was claimed.
    #[serde(rename = "c")]
    pub claimed_at: Timestamp,
    /// How long a claim or heartbeat holds.
    #[serde(rename = "d")]
    pub lease_length: Millis,
    /// Until when the worker counts as alive.
    #[serde(rename = "x")]
    pub lease_expires_at: Timestamp,
    /// Until when this attempt must have ended.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub start_to_close_at: Option<Timestamp>,
    /// Until when the next heartbeat must have come.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<Timestamp>,
    /// What was left, at the claim, of the time in which a worker had to come. It goes on if the task is given back.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub start_left: Option<Millis>,
    /// Whether its process had other attempts under way: if it is lost, nobody knows by which of them.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Whether somebody asked to cancel it: the worker is told with its next heartbeat.
    #[serde(rename = "z", default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
}

/// A task that has ended. Only an operator's retry changes it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How.
    #[serde(rename = "o")]
    pub outcome: Outcome,
    /// When.
    #[serde(rename = "e")]
    pub ended_at: Timestamp,
    /// When the record may be deleted.
    #[serde(rename = "x")]
    pub expires_at: Timestamp,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// With a result.
    #[serde(rename = "c")]
    Completed {
        /// The result, if its worker sent one.
        #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
        output: Option<Payload>,
    },
    /// With an error that isn't retried, or with no attempts left.
    #[serde(rename = "f")]
    Failed {
        /// The error, its message cut to what the record can hold.
        #[serde(rename = "x")]
        error: Failure,
        /// The whole message, as a JSON string, where it was cut.
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        message: Option<BlobRef>,
    },
    /// Too late.
    #[serde(rename = "t")]
    TimedOut {
        /// Which timeout.
        #[serde(rename = "k")]
        kind: TimeoutKind,
        /// Why, with the last error if there was one.
        #[serde(rename = "x")]
        error: Failure,
    },
    /// On request, or by a timeout that isn't to count as an error.
    #[serde(rename = "z")]
    Cancelled {
        /// The timeout, if it was one.
        #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
        timeout: Option<TimeoutKind>,
    },
    /// It was never to run: `max_attempts` was 0.
    #[serde(rename = "s")]
    Skipped,
}

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastAttempt {
    /// Its number.
    #[serde(rename = "n")]
    pub attempt: u32,
    /// Its fence, by which a repeated report is recognised; absent if nobody ever claimed it.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseId>,
    /// Who held it.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// When it was claimed.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    /// When it ended.
    #[serde(rename = "e")]
    pub ended_at: Timestamp,
    /// How it ended.
    #[serde(rename = "o")]
    pub ending: Ending,
    /// What went wrong, the message cut short.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// Its worker reported a result.
    #[serde(rename = "c")]
    Completed,
    /// Its worker reported an error.
    #[serde(rename = "f")]
    Failed,
    /// One of its timeouts, or the task's deadline, passed.
    #[serde(rename = "t")]
    TimedOut(TimeoutKind),
    /// Its worker gave it back.
    #[serde(rename = "r")]
    Released,
    /// Its worker went silent.
    #[serde(rename = "l")]
    Lost,
    /// The task was cancelled under it.
    #[serde(rename = "z")]
    Cancelled,
}

impl Ending {
    /// The name that answers use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut(_) => "timed_out",
            Self::Released => "released",
            Self::Lost => "lost",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A task's state without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Waiting.
    Pending,
    /// Held by a worker.
    Running,
    /// Ended with a result.
    Completed,
    /// Ended with an error.
    Failed,
    /// Ended by a timeout.
    TimedOut,
    /// Ended on request.
    Cancelled,
    /// Never to run.
    Skipped,
}

impl Status {
    /// Every status, in the order of a life.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::Skipped,
    ];

    /// The name that requests and answers use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }

    /// The status of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether the task is still to be done.
    pub const fn is_live(self) -> bool {
        match self {
            Self::Pending | Self::Running => true,
            Self::Completed | Self::Failed | Self::TimedOut | Self::Cancelled | Self::Skipped => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Task {
    /// Its status.
    pub const fn status(&self) -> Status {
        match &self.state {
            State::Pending(_) => Status::Pending,
            State::Running(_) => Status::Running,
            State::Ended(ended) => match ended.outcome {
                Outcome::Completed { .. } => Status::Completed,
                Outcome::Failed { .. } => Status::Failed,
                Outcome::TimedOut { .. } => Status::TimedOut,
                Outcome::Cancelled { .. } => Status::Cancelled,
                Outcome::Skipped => Status::Skipped,
            },
        }
    }

    /// How it ended, if it has.
    pub const fn ended(&self) -> Option<&Ended> {
        match &self.state {
            State::Pending(_) | State::Running(_) => None,
            State::Ended(ended) => Some(ended),
        }
    }

    /// Who holds it, if anybody does.
    pub const fn running(&self) -> Option<&Running> {
        match &self.state {
            State::Running(running) => Some(running),
            State::Pending(_) | State::Ended(_) => None,
        }
    }

    /// The attempt among the remembered ones that this lease belonged to.
    pub fn past_attempt(&self, lease: &LeaseId) -> Option<&PastAttempt> {
        self.history.iter().find(|past| past.lease.as_ref() == Some(lease))
    }

    /// Whether its retention has passed, so that for readers it no longer exists.
    pub fn is_gone(&self, now: Timestamp) -> bool {
        self.ended().is_some_and(|ended| ended.expires_at <= now)
    }

    /// A number that differs from task to task and stays the same for one: the seed of its jitter.
    pub fn seed(&self) -> u64 {
        u64::from_be_bytes(*self.incarnation.as_bytes())
    }

    /// All payload items the record points to.
    pub fn blobs(&self) -> impl Iterator<Item = &BlobRef> {
        let closing = self.ended().and_then(|ended| match &ended.outcome {
            Outcome::Completed { output } => output.as_ref().and_then(Payload::blob),
            Outcome::Failed { message, .. } => message.as_ref(),
            Outcome::TimedOut { .. } | Outcome::Cancelled { .. } | Outcome::Skipped => None,
        });
        let asked = [&self.input, &self.labels];
        asked.into_iter().filter_map(|payload| payload.as_ref().and_then(Payload::blob)).chain(closing)
    }
}
