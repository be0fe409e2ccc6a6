//! The conditions of writes, for stores that read a record before they write it. `DynamoDB` gets the same conditions as
//! expressions, from its own adapter.

use tickover_core::decision::{self, Write};
use tickover_core::due::Due;
use tickover_core::record::{Head, Record};

/// The condition of one write, with what it compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Put {
        condition: decision::Condition,
        /// The record decided on.
        before: Option<Head>,
        after: Head,
    },
    /// The record is the one that was decided on, and its due slot is still the same.
    Rearm { before: Head, to: Due },
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
            Write::Put { before, after, condition } => {
                let before = before.as_ref().map(Record::head);
                Some(Self::Put { condition: *condition, before, after: after.head() })
            }
            Write::Rearm { record, to } => Some(Self::Rearm { before: record.head(), to: *to }),
            Write::Wake { .. }
            | Write::PutWaiter { .. }
            | Write::DeleteWaiter { .. }
            | Write::Extend { .. } => None,
        }
    }

    /// What it comes to for the record that is stored.
    pub fn verdict(&self, stored: Option<&Head>) -> Verdict {
        match self {
            Self::Put { condition, before, after } => {
                if holds(condition, before.as_ref(), after, stored) {
                    Verdict::Holds
                } else if stored.is_some_and(|stored| stored.nonce == after.nonce) {
                    Verdict::Written
                } else {
                    Verdict::Fails
                }
            }
            Self::Rearm { before, to } => {
                let same = stored.filter(|stored| stored.incarnation == before.incarnation);
                let same_version = same.is_some_and(|stored| stored.version == before.version);
                match same.and_then(|stored| stored.due) {
                    Some(due) if Some(due) == before.due && same_version => Verdict::Holds,
                    Some(due) if due == *to => Verdict::AlreadyApplied,
                    Some(_) | None => Verdict::Fails,
                }
            }
        }
    }
}

fn holds(
    condition: &decision::Condition,
    before: Option<&Head>,
    after: &Head,
    stored: Option<&Head>,
) -> bool {
    let is_same = stored.map(|stored| stored.nonce) == before.map(|before| before.nonce);
    match *condition {
        decision::Condition::Free { now } => {
            stored.is_none_or(|stored| stored.expires_at.is_some_and(|at| at <= now))
        }
        decision::Condition::Unchanged { due_no_later_than, wakes } => {
            stored.zip(before).is_some_and(|(stored, before)| {
                let in_time = |latest| stored.due.is_some_and(|due| due.at <= latest);
                (stored.incarnation, stored.version, stored.nonce)
                    == (before.incarnation, before.version, before.nonce)
                    && due_no_later_than.is_none_or(in_time)
                    && wakes.is_none_or(|wakes| stored.wakes == wakes)
            })
        }
        decision::Condition::Same => is_same,
        decision::Condition::SameOrAbsent => is_same || stored.is_none(),
        decision::Condition::Follows => stored.map_or(0, |stored| stored.version) + 1 == after.version,
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
