//! The table: one record for each task, and conditional writes.

use tickover_core::decision::{Condition, Write};
use tickover_core::record;
use tickover_core::task::Task;
use tickover_core::time::Timestamp;

use super::record::Record;

/// A write to a task's record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Only if there is no record, or only one past its retention.
    Create {
        /// The new record.
        after: Record,
        /// The time of the decision.
        now: Timestamp,
    },
    /// Only if the stored record is still the one that was decided on, and its due slot is early enough where the write
    /// asks for that.
    Update {
        /// The record that was decided on.
        before: Record,
        /// The record after the write.
        after: Record,
        /// The latest instant that its due slot may have.
        due_no_later_than: Option<Timestamp>,
    },
    /// Only if the stored record is still the one that was decided on, in the same due slot.
    Rearm {
        /// The record that was decided on.
        before: Record,
        /// The same record in its new due slot.
        after: Record,
    },
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was done, and this record is stored now.
    Written(Record),
    /// It had been done before, by this decision or with the same effect.
    Done,
    /// The condition doesn't hold.
    Conflict,
}

impl Change {
    /// The change that a write makes to a task's record; `None` if it writes another item. `known` is usually the
    /// record that was decided on, and is reused.
    pub fn of(write: &Write, known: Option<&Record>) -> Option<Self> {
        let decided_on = |task: &Task| {
            known.filter(|known| ***known == *task).cloned().unwrap_or_else(|| Record::new(task.clone()))
        };
        match write {
            Write::Put { after: record::Record::Task(task), condition: Condition::Free { now }, .. } => {
                Some(Self::Create { after: Record::new((**task).clone()), now: *now })
            }
            Write::Put {
                before: Some(record::Record::Task(before)),
                after: record::Record::Task(after),
                condition: Condition::Unchanged { due_no_later_than, .. },
            } => Some(Self::Update {
                before: decided_on(before),
                after: Record::new((**after).clone()),
                due_no_later_than: *due_no_later_than,
            }),
            Write::Rearm { record: record::Record::Task(task), to } => {
                let after = Record::new(Task { due: Some(*to), ..(**task).clone() });
                Some(Self::Rearm { before: decided_on(task), after })
            }
            Write::Put { .. }
            | Write::Rearm { .. }
            | Write::Wake { .. }
            | Write::PutWaiter { .. }
            | Write::DeleteWaiter { .. }
            | Write::Extend { .. } => None,
        }
    }

    /// The record after the write.
    pub const fn after(&self) -> &Record {
        match self {
            Self::Create { after, .. } | Self::Update { after, .. } | Self::Rearm { after, .. } => after,
        }
    }
}

/// Writes if the condition holds for the stored record. `any_version` is a bug: the version isn't checked.
pub fn write(stored: Option<&Record>, change: &Change, any_version: bool) -> Verdict {
    let (holds, nonce, written) = match change {
        Change::Create { after, now } => {
            (stored.is_none_or(|stored| stored.is_gone(*now)), after.nonce, after.clone())
        }
        Change::Update { before, after, due_no_later_than } => {
            let in_time = |stored: &Record, latest| stored.due.is_some_and(|due| due.at <= latest);
            let holds = stored.is_some_and(|stored| {
                stored.incarnation == before.incarnation
                    && (any_version || stored.version == before.version)
                    && due_no_later_than.is_none_or(|latest| in_time(stored, latest))
            });
            let due = stored.and_then(|stored| stored.due).filter(|_| before.due == after.due);
            let kept = due.filter(|due| Some(*due) != after.due);
            let written = kept.map_or_else(
                || after.clone(),
                |due| Record::new(Task { due: Some(due), ..(**after).clone() }),
            );
            (holds, after.nonce, written)
        }
        Change::Rearm { before, after } => return rearm(stored, before, after),
    };
    match stored {
        _ if holds => Verdict::Written(written),
        Some(stored) if stored.nonce == nonce => Verdict::Done,
        Some(_) | None => Verdict::Conflict,
    }
}

fn rearm(stored: Option<&Record>, before: &Record, after: &Record) -> Verdict {
    let Some(stored) = stored.filter(|stored| stored.incarnation == before.incarnation) else {
        return Verdict::Conflict;
    };
    match stored.due {
        Some(due) if Some(due) == before.due && stored.version == before.version => {
            Verdict::Written(Record::new(Task { due: after.due, ..(**stored).clone() }))
        }
        Some(_) if stored.due == after.due => Verdict::Done,
        Some(_) | None => Verdict::Conflict,
    }
}
