//! The conditions of writes, for stores that read a record before they write it. `DynamoDB` gets the same conditions as
//! expressions, from its own adapter.

use tickover_core::decision::Write;
use tickover_core::due::Due;
use tickover_core::id::{Incarnation, Nonce};
use tickover_core::record::Head;
use tickover_core::time::Timestamp;

/// The condition of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// There is no record, or its retention has passed at that instant.
    Free { now: Timestamp, nonce: Nonce },
    /// The record is the one that was decided on.
    Unchanged {
        incarnation: Incarnation,
        version: u64,
        /// The latest instant at which its due slot may be.
        due_by: Option<Timestamp>,
        /// How often it has been woken.
        wakes: Option<u64>,
        nonce: Nonce,
    },
    /// The record is the one that was decided on, and its due slot is still the same.
    InSlot { incarnation: Incarnation, version: u64, from: Option<Due>, to: Due },
    /// The record was written by the decision `before`; where that is `None`, there is no record.
    WrittenBy { before: Option<Nonce>, nonce: Nonce },
    /// The same, or there is no record.
    WrittenByOrAbsent { before: Option<Nonce>, nonce: Nonce },
    /// The record has the version before this one. No record counts as version 0.
    Follows { version: u64, nonce: Nonce },
}

/// What a condition came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    /// It doesn't hold, because this very decision was written before.
    Written,
    /// It doesn't hold, and the record is already as wanted. That is enough for a write by itself, but proves nothing
    /// about other writes of its commit.
    AlreadyApplied,
    Fails,
}

/// What is to be done about the writes of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// All of them are to be written.
    Write,
    /// Nothing: they were written before.
    Done,
    /// Nothing: the conditions of the writes at these indices fail.
    Conflict(Vec<usize>),
}

impl Condition {
    /// The condition of a write; `None` where it only asks for a record to change.
    pub fn of(write: &Write) -> Option<Self> {
        match write {
            Write::CreateTask { task, now } => Some(Self::Free { now: *now, nonce: task.nonce }),
            Write::CreateExecution { execution, now } => {
                Some(Self::Free { now: *now, nonce: execution.nonce })
            }
            Write::UpdateTask { before, after, due_no_later_than } => Some(Self::Unchanged {
                incarnation: before.incarnation,
                version: before.version,
                due_by: *due_no_later_than,
                wakes: None,
                nonce: after.nonce,
            }),
            Write::UpdateExecution { before, after, due_no_later_than, wakes } => Some(Self::Unchanged {
                incarnation: before.incarnation,
                version: before.version,
                due_by: *due_no_later_than,
                wakes: *wakes,
                nonce: after.nonce,
            }),
            Write::Rearm { task, to } => Some(Self::in_slot((&**task).into(), task.incarnation, *to)),
            Write::RearmExecution { execution, to } => {
                Some(Self::in_slot((&**execution).into(), execution.incarnation, *to))
            }
            Write::PutKey { record, replaces } => {
                let before = replaces.as_ref().map(|replaced| replaced.nonce);
                Some(Self::WrittenByOrAbsent { before, nonce: record.nonce })
            }
            Write::PutCron { before, after } => {
                let before = before.as_ref().map(|before| before.nonce);
                Some(Self::WrittenBy { before, nonce: after.nonce })
            }
            Write::PutQueue { record } => {
                Some(Self::Follows { version: record.version, nonce: record.nonce })
            }
            Write::PutOperation { record } => {
                Some(Self::Follows { version: record.version, nonce: record.nonce })
            }
            Write::PutGate { record, replaces } => {
                Some(Self::WrittenBy { before: *replaces, nonce: record.nonce })
            }
            Write::PutTick { record } => Some(Self::Follows { version: record.version, nonce: record.nonce }),
            Write::Wake { .. }
            | Write::PutWaiter { .. }
            | Write::DeleteWaiter { .. }
            | Write::ExtendBlob { .. }
            | Write::ExtendSegment { .. }
            | Write::ExtendKey { .. } => None,
        }
    }

    const fn in_slot(before: Head, incarnation: Incarnation, to: Due) -> Self {
        Self::InSlot { incarnation, version: before.version, from: before.due, to }
    }

    /// What it comes to for the record that is stored.
    pub fn verdict(&self, stored: Option<&Head>) -> Verdict {
        let written_by = stored.map(|stored| stored.nonce);
        let marked = |holds: bool, nonce: Nonce| match (holds, written_by == Some(nonce)) {
            (true, _) => Verdict::Holds,
            (false, true) => Verdict::Written,
            (false, false) => Verdict::Fails,
        };
        match *self {
            Self::Free { now, nonce } => {
                let is_gone = |stored: &Head| stored.expires_at.is_some_and(|at| at <= now);
                marked(stored.is_none_or(is_gone), nonce)
            }
            Self::Unchanged { incarnation, version, due_by, wakes, nonce } => {
                let holds = stored.is_some_and(|stored| {
                    let in_time = |latest| stored.due.is_some_and(|due| due.at <= latest);
                    stored.incarnation == Some(incarnation)
                        && stored.version == version
                        && due_by.is_none_or(in_time)
                        && wakes.is_none_or(|wakes| stored.wakes == wakes)
                });
                marked(holds, nonce)
            }
            Self::InSlot { incarnation, version, from, to } => {
                let same = stored.filter(|stored| stored.incarnation == Some(incarnation));
                let same_version = same.is_some_and(|stored| stored.version == version);
                match same.and_then(|stored| stored.due) {
                    Some(due) if Some(due) == from && same_version => Verdict::Holds,
                    Some(due) if due == to => Verdict::AlreadyApplied,
                    Some(_) | None => Verdict::Fails,
                }
            }
            Self::WrittenBy { before, nonce } => marked(written_by == before, nonce),
            Self::WrittenByOrAbsent { before, nonce } => {
                marked(written_by.is_none() || written_by == before, nonce)
            }
            Self::Follows { version, nonce } => {
                marked(stored.map_or(0, |stored| stored.version) + 1 == version, nonce)
            }
        }
    }
}

impl Ruling {
    /// What follows from the verdicts on a commit's writes, in their order.
    pub fn of(verdicts: &[Verdict]) -> Self {
        // The writes of a commit are applied together: if one was, all were.
        if verdicts == [Verdict::AlreadyApplied] || verdicts.contains(&Verdict::Written) {
            return Self::Done;
        }
        let failed = |(index, verdict): (usize, &Verdict)| match verdict {
            Verdict::Fails | Verdict::AlreadyApplied => Some(index),
            Verdict::Holds | Verdict::Written => None,
        };
        let failed: Vec<usize> = verdicts.iter().enumerate().filter_map(failed).collect();
        if failed.is_empty() { Self::Write } else { Self::Conflict(failed) }
    }
}
