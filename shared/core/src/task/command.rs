//! What can be asked of a task. Commands carry everything random or read from outside.

use crate::command::Isolation;
use crate::duration::Millis;
use crate::failure::Failure;
use crate::id::{BlobId, Fingerprint, Incarnation, LeaseId, QueueName, TaskId, TaskKind, WorkerName};
use crate::parent::Parent;
use crate::payload::Json;
use crate::queue::{KeyRecord, QueueView};
use crate::retry::RetryPolicy;
use crate::time::Timestamp;
use crate::timeout::Timeouts;
use crate::trace::TraceContext;

/// Something asked of a task.
#[derive(Clone, Debug)]
pub enum Command {
    /// Make it.
    Schedule(Box<Schedule>),
    /// Take it to work on.
    Claim(Claim),
    /// Say that it is still being worked on.
    Heartbeat(Heartbeat),
    /// Report its result.
    Complete(Complete),
    /// Report that the attempt failed.
    Fail(Fail),
    /// Give it back undone.
    Release {
        /// The fence of the attempt.
        lease: LeaseId,
    },
    /// End it, or ask its worker to.
    Cancel {
        /// End it even while a worker has it.
        force: bool,
    },
    /// Revive it after it ended: an operator's call.
    Retry,
    /// Send its hint again, if it is parked: its queue was resumed.
    Unpark,
    /// See what has become due: the tick's look.
    Due(QueueView),
    /// See what has become due: a timer's look, sent for this place in the due index.
    Timer {
        /// See [`crate::timer::Timer::due_at`].
        due_at: Timestamp,
    },
}

/// A request for a new task.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Its id, chosen by the caller or at random.
    pub id: TaskId,
    /// Random.
    pub incarnation: Incarnation,
    /// Where to.
    pub queue: QueueName,
    /// What.
    pub kind: TaskKind,
    /// With which input.
    pub input: Option<Json>,
    /// Labels, a JSON object of strings.
    pub labels: Option<Json>,
    /// Retried how.
    pub retry: RetryPolicy,
    /// Timed out when.
    pub timeouts: Timeouts,
    /// From when.
    pub start: Start,
    /// Digest of the request's content.
    pub fingerprint: Fingerprint,
    /// The idempotency key and what it is known to stand for.
    pub key: Option<Key>,
    /// The execution it is a remote step of.
    pub parent: Option<Parent>,
    /// The trace that it belongs to.
    pub trace: Option<TraceContext>,
    /// Random keys for payloads that don't fit: the input's, then the labels'.
    pub blob_ids: [BlobId; 2],
}

/// From when a task may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// After this long, which may be zero.
    After(Millis),
    /// From this instant, or at once if it has passed.
    At(Timestamp),
}

/// An idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its digest.
    pub digest: Fingerprint,
    /// The record to be replaced, if one is left from an earlier task.
    pub replaces: Option<KeyRecord>,
}

/// A request for work.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Random: the fence of the attempt to come.
    pub lease: LeaseId,
    /// For whom.
    pub worker: Option<WorkerName>,
    /// For how long without a heartbeat.
    pub length: Millis,
    /// The hint that led to it; none for a claim by id.
    pub hint: Option<HintedRecord>,
    /// What else the claiming process has under way.
    pub company: Isolation,
    /// Whether its queue is paused: then nothing is handed out, and the task is parked.
    pub paused: bool,
}

/// Which record, and how old a copy of it, a hint holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintedRecord {
    /// Its incarnation: a hint says nothing of another task that has its id by now.
    pub incarnation: Incarnation,
    /// Its version. If the task has become pending anew since, a newer hint is on its way.
    pub version: u64,
}

/// A sign of life.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// The fence of the attempt.
    pub lease: LeaseId,
    /// How far it is, from 0 to 1.
    pub progress: Option<f64>,
    /// Whether it renews the lease; otherwise it only reports progress.
    pub renews: bool,
}

/// A result.
#[derive(Clone, Debug)]
pub struct Complete {
    /// The fence of the attempt.
    pub lease: LeaseId,
    /// The result.
    pub output: Option<Json>,
    /// Random key for a result that doesn't fit.
    pub blob_id: BlobId,
}

/// An error.
#[derive(Clone, Debug)]
pub struct Fail {
    /// The fence of the attempt.
    pub lease: LeaseId,
    /// What went wrong.
    pub error: Failure,
    /// Whether trying again can help; the policy may still say no.
    pub retryable: bool,
    /// Random key for a message that doesn't fit.
    pub blob_id: BlobId,
}
