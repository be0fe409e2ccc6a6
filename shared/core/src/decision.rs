//! What a decision asks its caller to do, in this order: blobs, writes, effects, reply.

use crate::cron::Cron;
use crate::due::Due;
use crate::execution::journal::SegmentKey;
use crate::execution::message::TurnHint;
use crate::execution::{Execution, Parent};
use crate::id::{ExecutionId, Fingerprint, Incarnation, Nonce, QueueName};
use crate::payload::{BlobRef, Json};
use crate::queue::{KeyRecord, QueueRecord};
use crate::task::Task;
use crate::task::hint::Hint;
use crate::tick::TickRecord;
use crate::time::Timestamp;
use crate::timer::Timer;

/// A payload item to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBlob {
    /// Where.
    pub at: BlobRef,
    /// What.
    pub body: Json,
}

/// A conditional write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Only if there is no task of this id, or its retention has passed at that instant.
    CreateTask {
        /// The new record.
        task: Box<Task>,
        /// The time of the decision.
        now: Timestamp,
    },
    /// Only if the record is still the one decided on: same incarnation, same version.
    UpdateTask {
        /// What was decided on.
        before: Box<Task>,
        /// What it becomes.
        after: Box<Task>,
        /// And only if its place in the due index is no later than this. Set when that place stays as it is,
        /// because a tick may have moved it meanwhile without touching the version.
        due_no_later_than: Option<Timestamp>,
    },
    /// Only if its place in the due index is still the one decided on. The version stays, so hints stay good.
    Rearm {
        /// The record.
        task: Box<Task>,
        /// The new place; never written for a record that has ended.
        to: Due,
    },
    /// Only if there is no execution of this id, or its retention has passed at that instant.
    CreateExecution {
        /// The new record.
        execution: Box<Execution>,
        /// The time of the decision.
        now: Timestamp,
    },
    /// Only if the record is still the one decided on: same incarnation, same version. Never touches `wakes`.
    UpdateExecution {
        /// What was decided on.
        before: Box<Execution>,
        /// What it becomes.
        after: Box<Execution>,
        /// And only if its place in the due index is no later than this, as for tasks.
        due_no_later_than: Option<Timestamp>,
        /// And only if it has been woken exactly so often.
        wakes: Option<u64>,
    },
    /// Only if its place in the due index is still the one decided on. The version stays.
    RearmExecution {
        /// The record.
        execution: Box<Execution>,
        /// The new place.
        to: Due,
    },
    /// Adds one to an execution's `wakes`, whatever its version, while it is open and of this incarnation. Where it
    /// isn't, nothing is written and that is no conflict.
    Wake {
        /// Whose.
        id: ExecutionId,
        /// Of which incarnation.
        incarnation: Incarnation,
    },
    /// Only if there is no record of this key, or still the one it replaces.
    PutKey {
        /// The new record.
        record: KeyRecord,
        /// The one it replaces.
        replaces: Option<KeyRecord>,
    },
    /// Only if the queue's record has the version before this one, or is absent for version 1.
    PutQueue {
        /// The new record.
        record: QueueRecord,
    },
    /// Only if the tick's record has the version before this one, or is absent for version 1.
    PutTick {
        /// The new record.
        record: TickRecord,
    },
    /// Only if there is no schedule of this id, or still the very record that this one replaces.
    PutCron {
        /// The new record.
        record: Box<Cron>,
        /// The decision that wrote the one it replaces.
        replaces: Option<Nonce>,
    },
    /// Keeps a payload item longer. Where it is kept as long already, or there is none, nothing is written and that is
    /// no conflict.
    ExtendBlob {
        /// Which, with its new expiry.
        at: BlobRef,
    },
    /// Keeps a segment of an execution's journal longer, as a payload.
    ExtendSegment {
        /// Whose.
        id: ExecutionId,
        /// Which.
        key: SegmentKey,
        /// Until when.
        expires_at: Timestamp,
    },
    /// Keeps an idempotency key longer; no condition but its existence.
    ExtendKey {
        /// Which.
        key: Fingerprint,
        /// Until when.
        expires_at: Timestamp,
    },
}

/// What to tell others.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send the hint to the task's queue so that it arrives at that instant.
    Dispatch {
        /// The hint.
        hint: Box<Hint>,
        /// When workers may have it.
        at: Timestamp,
    },
    /// Send the timer so that it arrives at its instant.
    Timer(Timer),
    /// Send the hint of an execution's turn to its queue so that it arrives at that instant.
    Turn {
        /// Where to.
        queue: QueueName,
        /// The hint.
        hint: TurnHint,
        /// When workers may have it.
        at: Timestamp,
    },
    /// Tell an execution that a remote step or child of its has ended.
    Tell(Parent),
}

/// What the tick did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueReply {
    /// A deadline or timeout had passed.
    TimedOut,
    /// The hint of a start or of lost work was sent.
    Dispatched,
    /// Nothing was due yet: its place in the index was moved.
    Rearmed,
    /// Nothing was due yet, and the timer goes on to what will be.
    Waiting,
    /// Nothing at all: the index was behind, or others have done it.
    Nothing,
}
