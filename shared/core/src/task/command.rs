//! The commands on a task. A command contains all random values and all data from outside that its decision needs.

use crate::command::Isolation;
use crate::duration::Millis;
use crate::failure::Failure;
use crate::flow::Flow;
use crate::gate::Places;
use crate::gate::rate::Reservation;
use crate::id::{BlobId, Fingerprint, Incarnation, LeaseId, QueueName, TaskId, TaskKind, WorkerName};
use crate::parent::Parent;
use crate::payload::Json;
use crate::queue::{KeyRecord, QueueView};
use crate::retry::RetryPolicy;
use crate::time::Timestamp;
use crate::timeout::Timeouts;
use crate::trace::TraceContext;

/// A command on a task.
#[derive(Clone, Debug)]
pub enum Command {
    /// Create the task.
    Schedule(Box<Schedule>),
    /// Put another request of a burst in its place, if no worker has had it.
    Bounce(Box<Bounce>),
    /// Grant a worker a lease on it.
    Claim(Claim),
    /// Report that the worker is alive.
    Heartbeat(Heartbeat),
    /// Report a result.
    Complete(Complete),
    /// Report that the attempt failed.
    Fail(Fail),
    /// Return the task to its queue before it is done.
    Release {
        /// The fence of the attempt.
        lease: LeaseId,
    },
    /// Cancel it, or ask its worker to stop.
    Cancel {
        /// Cancel it even while a worker has a lease on it.
        force: bool,
    },
    /// Revive it after its end, perhaps with another input. Operators do this.
    Retry(Option<Box<NewInput>>),
    /// Stop its time, because its execution is paused, or was until now: a timeout of its own has passed while it waited
    /// for a worker. For a task whose time is stopped, the tick looks again later.
    Hold,
    /// Wait in the line of a key, because there is no place for it.
    WaitInLine {
        /// The version of the record for which no place was found.
        seen_version: u64,
    },
    /// Send its hint again if it is parked, because its queue or its execution was resumed.
    Unpark,
    /// Handle whatever has become due, called by the tick.
    Due(QueueView),
    /// Handle whatever has become due, called by a timer that was sent for this due slot.
    Timer {
        /// See [`crate::timer::Timer::due_at`].
        due_at: Timestamp,
        /// Whether its message was received before. The process that had it may have died after its write.
        again: bool,
    },
}

/// A request for a new task.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Its id, chosen by the caller or random.
    pub id: TaskId,
    /// Random.
    pub incarnation: Incarnation,
    pub queue: QueueName,
    pub kind: TaskKind,
    pub input: Option<Json>,
    /// Labels, a JSON object of strings.
    pub labels: Option<Json>,
    pub retry: RetryPolicy,
    pub timeouts: Timeouts,
    /// What its starts are limited or ordered by.
    pub flow: Flow,
    pub start: Start,
    /// Whether it begins in the line of a key, because there is no place for it.
    pub in_line: bool,
    /// Digest of the request's content.
    pub fingerprint: Fingerprint,
    /// The idempotency key, with its record.
    pub key: Option<Key>,
    /// The execution it is a remote step of.
    pub parent: Option<Parent>,
    /// The trace that it belongs to.
    pub trace: Option<TraceContext>,
    /// Random keys for payloads that don't fit into the record: the input's, then the labels'.
    pub blob_ids: [BlobId; 2],
}

/// Another request of a burst, which takes the place of the one that waits.
#[derive(Clone, Debug)]
pub struct Bounce {
    pub input: Option<Json>,
    /// Labels, a JSON object of strings.
    pub labels: Option<Json>,
    /// Digest of the request's content.
    pub fingerprint: Fingerprint,
    /// How long it must have been quiet before the task may start.
    pub wait: Millis,
    /// How long after the first request of the burst it may start at the latest.
    pub at_most: Millis,
    /// Random keys for payloads that don't fit into the record: the input's, then the labels'.
    pub blob_ids: [BlobId; 2],
}

/// An input in place of the one that a task has.
#[derive(Clone, Debug)]
pub struct NewInput {
    pub input: Json,
    /// A random key, in case that it doesn't fit into the record.
    pub blob_id: BlobId,
}

/// From when a task may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// After this delay, which may be zero.
    After(Millis),
    /// From this instant, or at once if it has passed.
    At(Timestamp),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub digest: Fingerprint,
    /// The key's record from an earlier task, which the write replaces.
    pub replaces: Option<KeyRecord>,
}

/// A request for a lease.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Random. It becomes the fence of the attempt.
    pub lease: LeaseId,
    pub worker: Option<WorkerName>,
    /// The length of the lease.
    pub length: Millis,
    /// The hint that led to the claim. None if the task is claimed by its id.
    pub hint: Option<HintedRecord>,
    /// Whether the claiming process runs other attempts.
    pub isolation: Isolation,
    /// Whether the worker runs inside the process that has the store to itself.
    pub inside: bool,
    /// Whether the task's queue is paused. Then no lease is granted, and the task is parked.
    pub paused: bool,
    /// Whether the execution that it is a remote step of is paused. Then no lease is granted either, and the time of the
    /// task starts afresh when it is unparked.
    pub held: bool,
    /// The places that were taken for this attempt, if the task needs some.
    pub places: Option<Places>,
    /// The start that was reserved for this attempt, or that of its record, confirmed, if the task starts by a rate.
    pub start: Option<Reservation>,
    /// The version of the record whose start was confirmed: another claim may use it meanwhile. None if the start was
    /// reserved for this attempt.
    pub start_of: Option<u64>,
}

/// The identity and version of the record that a hint contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintedRecord {
    /// Its incarnation. A hint for an earlier task with the same id is stale.
    pub incarnation: Incarnation,
    /// Its version. If the task has become pending after it, a newer hint has been sent.
    pub version: u64,
    /// Whether its message was received before. The process that had it may have died after a write, and before it sent
    /// the newer hint.
    pub again: bool,
}

/// What is alive, as a heartbeat says. The lease asks whether the worker lives, the heartbeat timeout whether the work
/// does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignOfLife {
    /// The worker and the work: it extends the lease and restarts the heartbeat timeout.
    #[default]
    Both,
    /// The worker alone: it extends the lease. The work may hang.
    Worker,
    /// The work alone: it restarts the heartbeat timeout. The lease may be meant to end with its worker's process.
    Work,
}

impl SignOfLife {
    /// Whether it extends the lease.
    pub const fn extends_lease(self) -> bool {
        match self {
            Self::Both | Self::Worker => true,
            Self::Work => false,
        }
    }

    /// Whether it restarts the heartbeat timeout.
    pub const fn is_of_work(self) -> bool {
        match self {
            Self::Both | Self::Work => true,
            Self::Worker => false,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// The fence of the attempt.
    pub lease: LeaseId,
    pub sign_of: SignOfLife,
    /// The attempt's progress, from 0 to 1.
    pub progress: Option<f64>,
    /// Details of the progress, at most [`crate::limits::DETAILS_MAX`] bytes.
    pub details: Option<Json>,
    /// Random key for details that don't fit into the record.
    pub blob_id: BlobId,
    /// Its places, if the task needs some, extended for the version that its record had. The lease doesn't outlive them.
    pub places: Option<Places>,
}

#[derive(Clone, Debug)]
pub struct Complete {
    /// The fence of the attempt.
    pub lease: LeaseId,
    pub output: Option<Json>,
    /// Random key for a result that doesn't fit into the record.
    pub blob_id: BlobId,
}

#[derive(Clone, Debug)]
pub struct Fail {
    /// The fence of the attempt.
    pub lease: LeaseId,
    pub error: Failure,
    /// Whether a retry can help. The policy may still refuse one.
    pub retryable: bool,
    /// Random key for a message that doesn't fit into the record.
    pub blob_id: BlobId,
}
