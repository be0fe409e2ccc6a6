//! The result of a command. The caller carries it out in this order: new items, writes, effects, answer.

use crate::cron::Cron;
use crate::due::Due;
use crate::error::Reject;
use crate::execution::Execution;
use crate::execution::journal::{Segment, SegmentKey};
use crate::execution::message::TurnHint;
use crate::flow::{Gated, Paced};
use crate::gate::{AskedLimit, Waiter};
use crate::id::{BlobId, EventId, ExecutionId, Fingerprint, GateId, Incarnation, Owner, QueueName};
use crate::parent::Parent;
use crate::payload::{BlobRef, Json};
use crate::record::Record;
use crate::task::Task;
use crate::task::hint::Hint;
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
        /// The run whose journal has it. A later one may have it too, if this one hasn't taken it.
        run: u32,
        expires_at: Timestamp,
    },
}

/// A conditional write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Writes a record if the condition holds.
    Put {
        /// The record decided on, if there was one and the condition or a report needs it.
        before: Option<Record>,
        /// The record after the write.
        after: Record,
        condition: Condition,
    },
    /// Moves a task or an execution in the due index. Condition: the record is the one decided on, and its due slot
    /// still the same. The version doesn't change, so hints stay valid.
    Rearm {
        /// The record decided on.
        record: Record,
        /// The new due slot. Never written for a record that has ended.
        to: Due,
    },
    /// Adds one to an execution's `wakes` at any version, if the execution is open and has this incarnation.
    /// Otherwise nothing is written, and that isn't a conflict.
    Wake { id: ExecutionId, incarnation: Incarnation },
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
    /// Keeps an item longer, before the other writes of its commit. If it isn't there, nothing is written and that isn't
    /// a conflict.
    Extend { item: Expiring, expires_at: Timestamp },
}

/// What must hold of the stored record when another one is put in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// No record has this id, or its retention has passed at `now`, the time of the decision.
    Free { now: Timestamp },
    /// A task or an execution is the one decided on, with the same incarnation and version. The write has only what
    /// differs, and never `wakes`.
    Unchanged {
        /// A further condition: its due slot is not later than this. Set when the write leaves the due slot as it
        /// is, because a tick may have moved the slot since then without a new version.
        due_no_later_than: Option<Timestamp>,
        /// A further condition: the record's `wakes` has this value.
        wakes: Option<u64>,
    },
    /// It is exactly the one decided on, by its nonce. Where there was none, there is none.
    Same,
    /// The same, or there is none.
    SameOrAbsent,
    /// It has the version before this one, or is absent for version 1.
    Follows,
}

impl Condition {
    /// That the record is the one decided on, and nothing further.
    pub const UNCHANGED: Self = Self::Unchanged { due_no_later_than: None, wakes: None };
}

/// An item that is kept as long as a record needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expiring {
    /// Never shorter than before.
    Blob(BlobId),
    /// A segment of an execution's journal. Never shorter than before.
    Segment(ExecutionId, SegmentKey),
    /// The record of an idempotency key.
    Key(Fingerprint),
}

/// A record before and after a write. A new record has no state before.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    Task(Option<&'a Task>, &'a Task),
    Execution(Option<&'a Execution>, &'a Execution),
    Cron(Option<&'a Cron>, &'a Cron),
}

impl Write {
    /// Writes a record for which there was none, or whose condition doesn't need the one before.
    pub fn put(after: impl Into<Record>, condition: Condition) -> Self {
        Self::Put { before: None, after: after.into(), condition }
    }

    /// Writes a record in the place of the one decided on.
    pub fn replace(before: impl Into<Record>, after: impl Into<Record>, condition: Condition) -> Self {
        Self::Put { before: Some(before.into()), after: after.into(), condition }
    }

    /// Keeps a blob until the expiry in its pointer.
    pub const fn extend_blob(at: &BlobRef) -> Self {
        Self::Extend { item: Expiring::Blob(at.id), expires_at: at.expires_at }
    }

    /// The record that is decided on or new; `None` if the write needs no decision.
    pub const fn record(&self) -> Option<&Record> {
        match self {
            Self::Put { after: record, .. } | Self::Rearm { record, .. } => Some(record),
            Self::Wake { .. } | Self::PutWaiter { .. } | Self::DeleteWaiter { .. } | Self::Extend { .. } => {
                None
            }
        }
    }

    /// The change of a record that was decided on. `None` if the write only moves a record in the due index, or
    /// writes another item.
    pub fn change(&self) -> Option<Change<'_>> {
        let Self::Put { before, after, .. } = self else { return None };
        let before = before.as_ref();
        match after {
            Record::Task(after) => Some(Change::Task(of_kind(before), after)),
            Record::Execution(after) => Some(Change::Execution(of_kind(before), after)),
            Record::Cron(after) => Some(Change::Cron(of_kind(before), after)),
            Record::Queue(_) | Record::Operation(_) | Record::Gate(_) | Record::Tick(_) | Record::Key(_) => {
                None
            }
        }
    }
}

fn of_kind<'a, R>(record: Option<&'a Record>) -> Option<&'a R>
where
    &'a R: TryFrom<&'a Record>,
{
    record.and_then(|record| record.try_into().ok())
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
    CameToLine { gate: GateId, waiter: Box<Waiter>, limit: AskedLimit },
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
    /// The mark of its branch, if it hadn't begun or waited once more: it may have been offered a place.
    pub waited: Option<u32>,
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
