//! What steps of workflows do outside.

use tickover_core::id::{ExecutionId, Incarnation, TaskId};

/// Something that the body of a step did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// The call that all decisions of its process are noted as of.
    pub call: u64,
    /// The idempotency key of the step: the same for all its attempts, and no other step's.
    pub key: String,
    /// The step's name, as its author calls it.
    pub step: String,
    pub attempt: u32,
    /// What it did.
    pub stage: Stage,
}

/// How far a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It begins.
    Begins,
    /// The outside hears of it: from here on, it has had its effect.
    Asks,
}

/// Where a step runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a turn.
    Turn {
        execution: ExecutionId,
        /// Which of those that had this id.
        incarnation: Incarnation,
        run: u32,
        /// The step's name in the journal.
        name: String,
    },
    /// As a task of its own.
    Task(TaskId),
}

impl Act {
    /// Where its step runs. Ids of executions have no colon here.
    pub fn place(&self) -> Option<Place> {
        let mut parts = self.key.splitn(4, ':');
        let first = parts.next()?;
        let Some(incarnation) = parts.next() else { return TaskId::parse(first).ok().map(Place::Task) };
        Some(Place::Turn {
            execution: ExecutionId::parse(first).ok()?,
            incarnation: Incarnation::try_from(incarnation.to_owned()).ok()?,
            run: parts.next()?.parse().ok()?,
            name: parts.next()?.to_owned(),
        })
    }
}
