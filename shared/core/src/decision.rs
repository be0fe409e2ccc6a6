//! What follows from a command. Its caller does it in this order: parts, writes, effects, answer.

use crate::cron::Cron;
use crate::due::Due;
use crate::error::Reject;
use crate::execution::Execution;
use crate::execution::journal::{Segment, SegmentKey};
use crate::execution::message::TurnHint;
use crate::id::{ExecutionId, Fingerprint, Incarnation, QueueName};
use crate::parent::Parent;
use crate::payload::{BlobRef, Json};
use crate::queue::{KeyRecord, QueueRecord};
use crate::task::Task;
use crate::task::hint::Hint;
use crate::tick::TickRecord;
use crate::time::Timestamp;
use crate::timer::Timer;

/// All that follows from a command on a record `R`, where `A` is what a successful answer says.
#[derive(Clone, Debug)]
pub struct Decision<R, A> {
    /// Items to write first, so that no record ever points to nothing.
    pub parts: Vec<NewPart>,
    /// Writes to commit together, each under its condition. None means that nothing changes.
    pub writes: Vec<Write>,
    /// What to tell others, only after the commit.
    pub effects: Vec<Effect>,
    /// The record as it stands after the writes, and the answer. A refusal may come with writes: an expiry noticed on
    /// the way is recorded all the same.
    pub outcome: Result<(R, A), Refusal<R>>,
}

/// A command was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal<R> {
    /// The record as it stands after the writes, if there is one.
    pub record: Option<R>,
    /// Why.
    pub reject: Reject,
}

impl<R, A> Decision<R, A> {
    /// An answer or refusal about this record, with nothing to write.
    pub fn of(record: R, answer: Result<A, Reject>) -> Self {
        let outcome = match answer {
            Ok(reply) => Ok((record, reply)),
            Err(reject) => Err(Refusal { record: Some(record), reject }),
        };
        Self { parts: vec![], writes: vec![], effects: vec![], outcome }
    }

    /// A refusal that changes nothing.
    pub fn refuse(record: Option<&R>, reject: Reject) -> Self
    where
        R: Clone,
    {
        let outcome = Err(Refusal { record: record.cloned(), reject });
        Self { parts: vec![], writes: vec![], effects: vec![], outcome }
    }

    /// An answer that changes nothing.
    pub fn unchanged(record: &R, answer: Result<A, Reject>) -> Self
    where
        R: Clone,
    {
        Self::of(record.clone(), answer)
    }

    /// The record as it stands after the writes.
    pub const fn record(&self) -> Option<&R> {
        match &self.outcome {
            Ok((record, _)) => Some(record),
            Err(refusal) => refusal.record.as_ref(),
        }
    }

    /// The same, to be changed.
    pub const fn record_mut(&mut self) -> Option<&mut R> {
        match &mut self.outcome {
            Ok((record, _)) => Some(record),
            Err(refusal) => refusal.record.as_mut(),
        }
    }

    /// What is answered.
    pub const fn reply(&self) -> Result<&A, &Reject> {
        match &self.outcome {
            Ok((_, reply)) => Ok(reply),
            Err(refusal) => Err(&refusal.reject),
        }
    }
}

/// An item of its own that a record points to.
#[derive(Clone, Debug, PartialEq)]
pub enum NewPart {
    /// A payload.
    Blob {
        /// Where.
        at: BlobRef,
        /// What.
        body: Json,
    },
    /// A sealed part of an execution's journal.
    Segment {
        /// Whose.
        of: ExecutionId,
        /// Where.
        key: SegmentKey,
        /// What.
        segment: Segment,
        /// Until when it is kept at least.
        expires_at: Timestamp,
    },
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
    /// Only if there is no cron of this id, or still the very record that was decided on.
    PutCron {
        /// What was decided on.
        before: Option<Box<Cron>>,
        /// What it becomes.
        after: Box<Cron>,
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

/// The record that a write changes: before, where there was one, and after.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// A task's.
    Task(Option<&'a Task>, &'a Task),
    /// An execution's.
    Execution(Option<&'a Execution>, &'a Execution),
    /// A cron's.
    Cron(Option<&'a Cron>, &'a Cron),
}

impl Write {
    /// What was decided about a record; nothing for what only moves a record in the due index, and for other items.
    pub fn change(&self) -> Option<Change<'_>> {
        match self {
            Self::CreateTask { task, .. } => Some(Change::Task(None, task)),
            Self::UpdateTask { before, after, .. } => Some(Change::Task(Some(before), after)),
            Self::CreateExecution { execution, .. } => Some(Change::Execution(None, execution)),
            Self::UpdateExecution { before, after, .. } => Some(Change::Execution(Some(before), after)),
            Self::PutCron { before, after } => Some(Change::Cron(before.as_deref(), after)),
            Self::Rearm { .. }
            | Self::RearmExecution { .. }
            | Self::Wake { .. }
            | Self::PutKey { .. }
            | Self::PutQueue { .. }
            | Self::PutTick { .. }
            | Self::ExtendBlob { .. }
            | Self::ExtendSegment { .. }
            | Self::ExtendKey { .. } => None,
        }
    }
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
    NotifyParent(Parent),
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

#[cfg(test)]
impl<R, A> Decision<R, A> {
    /// The new payloads.
    pub(crate) fn blobs(&self) -> Vec<(&BlobRef, &Json)> {
        let mut blobs = vec![];
        for part in &self.parts {
            match part {
                NewPart::Blob { at, body } => blobs.push((at, body)),
                NewPart::Segment { .. } => {}
            }
        }
        blobs
    }

    /// The new segments.
    pub(crate) fn segments(&self) -> Vec<(&SegmentKey, &Segment)> {
        let mut segments = vec![];
        for part in &self.parts {
            match part {
                NewPart::Blob { .. } => {}
                NewPart::Segment { key, segment, .. } => segments.push((key, segment)),
            }
        }
        segments
    }
}
