//! What a decision asks its caller to do, in this order: blobs, writes, effects, reply.

use crate::cron::Cron;
use crate::due::Due;
use crate::error::Reject;
use crate::execution::journal::SegmentKey;
use crate::execution::message::TurnHint;
use crate::execution::{Execution, Parent};
use crate::hint::Hint;
use crate::id::{ExecutionId, Fingerprint, Incarnation, Nonce, QueueName};
use crate::payload::{BlobRef, Json};
use crate::queue::{KeyRecord, QueueRecord};
use crate::task::Task;
use crate::tick::TickRecord;
use crate::time::Timestamp;
use crate::timer::Timer;

/// All that follows from a command.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Payload items to write first, so that no record ever points to nothing.
    pub blobs: Vec<NewBlob>,
    /// Writes to commit together, each under its condition. None means that nothing changes.
    pub writes: Vec<Write>,
    /// What to tell others, only after the commit.
    pub effects: Vec<Effect>,
    /// The task as it stands after the writes.
    pub task: Option<Task>,
    /// The answer. A refusal may come with writes: an expiry noticed on the way is recorded all the same.
    pub outcome: Result<Reply, Reject>,
}

impl Decision {
    /// A refusal that changes nothing.
    pub fn refuse(task: Option<&Task>, reject: Reject) -> Self {
        Self::unchanged(task, Err(reject))
    }

    /// An answer that changes nothing.
    pub fn unchanged(task: Option<&Task>, outcome: Result<Reply, Reject>) -> Self {
        Self { blobs: vec![], writes: vec![], effects: vec![], task: task.cloned(), outcome }
    }
}

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
    /// Only if there is no cron of this id, or still the very record that this one replaces.
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

/// A successful answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The task exists now.
    Scheduled {
        /// Whether it had existed before.
        existed: bool,
    },
    /// What became of a claim.
    Claim(ClaimReply),
    /// The lease is renewed.
    Renewed,
    /// The attempt is over.
    Closed {
        /// Whether it had been closed by this same lease before.
        duplicate: bool,
    },
    /// What became of a cancellation.
    Cancel(CancelReply),
    /// The task is pending again.
    Revived,
    /// What became of the wish to send a parked task's hint.
    Unparked {
        /// Whether it was parked.
        was_parked: bool,
    },
    /// What the tick did.
    Due(DueReply),
}

/// What became of a claim, and what the message that led to it is good for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimReply {
    /// The caller has it. Its message stays in flight until the attempt ends.
    Claimed,
    /// Somebody alive has it: the message is left alone, it comes back when their lease would be over.
    Held,
    /// It may not start yet: the message is to be sent again with what remains.
    Early {
        /// When it may.
        available_at: Timestamp,
    },
    /// Its last worker was lost, perhaps because of it: only a worker that has nothing else under way may have it.
    Suspect,
    /// Its queue is paused. The message is to be deleted: another one is sent when the queue is resumed.
    Parked,
    /// Nothing will ever come of this message: it is to be deleted.
    Spent,
}

/// What became of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReply {
    /// The task has ended.
    Cancelled,
    /// Its worker will be told.
    Requested,
    /// It had ended before.
    AlreadyFinished,
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
