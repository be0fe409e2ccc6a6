//! The result of a command. The caller carries it out in this order: new items, writes, effects, answer.

use crate::cron::Cron;
use crate::due::Due;
use crate::error::Reject;
use crate::execution::Execution;
use crate::execution::journal::{Segment, SegmentKey};
use crate::execution::message::TurnHint;
use crate::flow::{Gated, Paced};
use crate::gate::{Gate, Waiter};
use crate::id::{EventId, ExecutionId, Fingerprint, GateId, Incarnation, Nonce, Owner, QueueName};
use crate::operation::Operation;
use crate::parent::Parent;
use crate::payload::{BlobRef, Json};
use crate::queue::{KeyRecord, QueueRecord};
use crate::task::Task;
use crate::task::hint::Hint;
use crate::tick::TickRecord;
use crate::time::Timestamp;
use crate::timer::Timer;

/// All results of a command on a record `R`. `A` is the type of a successful answer.
#[derive(Clone, Debug)]
pub struct Decision<R, A> {
    /// Items to write before the record, so that no record points to an item that doesn't exist.
    pub new_items: Vec<NewItem>,
    /// Writes to commit together, each with its condition. An empty list means that nothing changes.
    pub writes: Vec<Write>,
    /// Messages to send after the commit.
    pub effects: Vec<Effect>,
    /// The record after the writes, and the answer. A refusal may come with writes: if a timeout has expired, that
    /// is recorded although the command is refused.
    pub outcome: Result<(R, A), Refusal<R>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal<R> {
    /// The record after the writes, if there is one.
    pub record: Option<R>,
    pub reject: Reject,
}

impl<R, A> Decision<R, A> {
    /// An answer or a refusal about this record, with nothing to write.
    pub fn of(record: R, answer: Result<A, Reject>) -> Self {
        let outcome = match answer {
            Ok(reply) => Ok((record, reply)),
            Err(reject) => Err(Refusal { record: Some(record), reject }),
        };
        Self { new_items: vec![], writes: vec![], effects: vec![], outcome }
    }

    /// A refusal that changes nothing.
    pub fn refuse(record: Option<&R>, reject: Reject) -> Self
    where
        R: Clone,
    {
        let outcome = Err(Refusal { record: record.cloned(), reject });
        Self { new_items: vec![], writes: vec![], effects: vec![], outcome }
    }

    /// An answer that changes nothing.
    pub fn unchanged(record: &R, answer: Result<A, Reject>) -> Self
    where
        R: Clone,
    {
        Self::of(record.clone(), answer)
    }

    /// The record after the writes.
    pub const fn record(&self) -> Option<&R> {
        match &self.outcome {
            Ok((record, _)) => Some(record),
            Err(refusal) => refusal.record.as_ref(),
        }
    }

    /// The record after the writes, mutable.
    pub const fn record_mut(&mut self) -> Option<&mut R> {
        match &mut self.outcome {
            Ok((record, _)) => Some(record),
            Err(refusal) => refusal.record.as_mut(),
        }
    }

    /// The answer or the refusal.
    pub const fn reply(&self) -> Result<&A, &Reject> {
        match &self.outcome {
            Ok((_, reply)) => Ok(reply),
            Err(refusal) => Err(&refusal.reject),
        }
    }
}

/// An item, separate from the record that points to it.
#[derive(Clone, Debug, PartialEq)]
pub enum NewItem {
    Blob {
        at: BlobRef,
        body: Json,
    },
    /// A sealed segment of an execution's journal.
    Segment {
        of: ExecutionId,
        key: SegmentKey,
        segment: Segment,
        /// It is kept until this instant or longer.
        expires_at: Timestamp,
    },
    /// That an execution has the event with this id, which its record no longer shows.
    Event {
        of: ExecutionId,
        incarnation: Incarnation,
        id: EventId,
        expires_at: Timestamp,
    },
}

/// A conditional write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Condition: no task has this id, or that task's retention has passed at `now`.
    CreateTask {
        task: Box<Task>,
        /// The time of the decision.
        now: Timestamp,
    },
    /// Condition: the record is still the one decided on, with the same incarnation and version.
    UpdateTask {
        /// The record decided on.
        before: Box<Task>,
        /// The record after the write.
        after: Box<Task>,
        /// A further condition: its due slot is not later than this. Set when the write leaves the due slot as it
        /// is, because a tick may have moved the slot since then without a new version.
        due_no_later_than: Option<Timestamp>,
    },
    /// Condition: the due slot is still the one decided on. The version doesn't change, so hints stay valid.
    Rearm {
        task: Box<Task>,
        /// The new due slot. Never written for a record that has ended.
        to: Due,
    },
    /// Condition: no execution has this id, or that execution's retention has passed at `now`.
    CreateExecution {
        execution: Box<Execution>,
        /// The time of the decision.
        now: Timestamp,
    },
    /// Condition: the record is still the one decided on, with the same incarnation and version. Never changes
    /// `wakes`.
    UpdateExecution {
        /// The record decided on.
        before: Box<Execution>,
        /// The record after the write.
        after: Box<Execution>,
        /// A further condition: its due slot is not later than this, as for tasks.
        due_no_later_than: Option<Timestamp>,
        /// A further condition: the record's `wakes` has this value.
        wakes: Option<u64>,
    },
    /// Condition: the due slot is still the one decided on. The version doesn't change.
    RearmExecution { execution: Box<Execution>, to: Due },
    /// Adds one to an execution's `wakes` at any version, if the execution is open and has this incarnation.
    /// Otherwise nothing is written, and that isn't a conflict.
    Wake { id: ExecutionId, incarnation: Incarnation },
    /// Condition: no record has this key, or the record is still the one to replace.
    PutKey {
        record: KeyRecord,
        /// The record to replace.
        replaces: Option<KeyRecord>,
    },
    /// Condition: the queue's record has the version before this one, or is absent for version 1.
    PutQueue { record: QueueRecord },
    /// Condition: the tick's record has the version before this one, or is absent for version 1.
    PutTick { record: TickRecord },
    /// Condition: the operation's record has the version before this one, or is absent for version 1.
    PutOperation { record: Box<Operation> },
    /// Condition: there is no record of the key, or it is still exactly the one decided on.
    PutGate {
        record: Box<Gate>,
        /// The nonce of the record decided on.
        replaces: Option<Nonce>,
    },
    /// Writes the item of one that waits in the line of a key, before the other writes of its commit and without a
    /// condition.
    PutWaiter {
        gate: GateId,
        waiter: Waiter,
        /// When the item may be deleted.
        expires_at: Timestamp,
    },
    /// Deletes that item, after the other writes of its commit. One that isn't there is no conflict.
    DeleteWaiter { gate: GateId, waiter: Waiter },
    /// Condition: no cron has this id, or the record is still exactly the one decided on.
    PutCron {
        /// The record decided on.
        before: Option<Box<Cron>>,
        /// The record after the write.
        after: Box<Cron>,
    },
    /// Keeps a blob longer. If it is kept as long already, or doesn't exist, nothing is written and that isn't a
    /// conflict.
    ExtendBlob {
        /// The blob, with its new expiry.
        at: BlobRef,
    },
    /// Keeps a segment of an execution's journal longer, as [`Write::ExtendBlob`] does.
    ExtendSegment { id: ExecutionId, key: SegmentKey, expires_at: Timestamp },
    /// Keeps an idempotency key longer. Condition: the key's record exists.
    ExtendKey { key: Fingerprint, expires_at: Timestamp },
}

/// A record before and after a write. A new record has no state before.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    Task(Option<&'a Task>, &'a Task),
    Execution(Option<&'a Execution>, &'a Execution),
    Cron(Option<&'a Cron>, &'a Cron),
}

impl Write {
    /// The change of a record that was decided on. `None` if the write only moves a record in the due index, or
    /// writes another item.
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
            | Self::PutOperation { .. }
            | Self::PutGate { .. }
            | Self::PutWaiter { .. }
            | Self::DeleteWaiter { .. }
            | Self::ExtendBlob { .. }
            | Self::ExtendSegment { .. }
            | Self::ExtendKey { .. } => None,
        }
    }
}

/// A message to send after the commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Sends the hint to the task's queue so that it arrives at that instant.
    Dispatch {
        hint: Box<Hint>,
        /// When workers may receive it.
        at: Timestamp,
    },
    /// Sends the timer so that it arrives at its instant.
    Timer(Timer),
    /// Sends the hint of an execution's turn to its queue so that it arrives at that instant.
    Turn {
        queue: QueueName,
        hint: TurnHint,
        /// When workers may receive it.
        at: Timestamp,
    },
    /// Notifies an execution that one of its remote steps or children has ended.
    NotifyParent(Parent),
    /// Looks at a key for one that has just come to its line: a place may have become free meanwhile.
    CameToLine { gate: GateId, waiter: Box<Waiter> },
    /// Gives up what a task or an execution has at its keys.
    FreePlaces(Box<FreePlaces>),
}

/// What a task or an execution gives up at its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreePlaces {
    pub owner: Owner,
    pub incarnation: Incarnation,
    pub gates: Vec<Gated>,
    /// Its places are those that were taken for a version of its record before this one.
    pub before: u64,
    /// Whether it hadn't begun, or waited once more: it may have been offered a place.
    pub waited: bool,
    /// The key by whose rate it starts, with the start that was reserved and isn't needed.
    pub start: Option<Paced>,
}

/// The result of a tick or timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueReply {
    /// A deadline or timeout had passed, and that was recorded.
    TimedOut,
    /// The hint of a later start was sent, or the hint of lost work again.
    Dispatched,
    /// Nothing was due yet: the record was moved in the due index.
    Rearmed,
    /// Nothing was due yet: the timer was sent again for the record's next instant.
    Waiting,
    /// Nothing: the index was stale, or another process has done the work.
    Nothing,
}

#[cfg(test)]
impl<R, A> Decision<R, A> {
    pub(crate) fn blobs(&self) -> Vec<(&BlobRef, &Json)> {
        let mut blobs = vec![];
        for part in &self.new_items {
            match part {
                NewItem::Blob { at, body } => blobs.push((at, body)),
                NewItem::Segment { .. } | NewItem::Event { .. } => {}
            }
        }
        blobs
    }

    pub(crate) fn segments(&self) -> Vec<(&SegmentKey, &Segment)> {
        let mut segments = vec![];
        for part in &self.new_items {
            match part {
                NewItem::Blob { .. } | NewItem::Event { .. } => {}
                NewItem::Segment { key, segment, .. } => segments.push((key, segment)),
            }
        }
        segments
    }
}
