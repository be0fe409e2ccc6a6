//! The calls of workflows' steps to the outside world.

use tickover_core::id::{ExecutionId, Incarnation, TaskId};

/// An action of the body of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// The call under which all decisions of its process are recorded.
    pub call: u64,
    /// The idempotency key of the step: the same for all its attempts, and no other step's.
    pub key: String,
    /// The step's name in its author's code.
    pub step: String,
    pub attempt: u32,
    /// The progress of the body.
    pub stage: Stage,
}

/// The progress of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Begins,
    /// Its call has reached the outside world: from here on, it has had its effect.
    Asks,
}

/// Where a step runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a turn.
    Turn {
        execution: ExecutionId,
        /// The execution's incarnation among those that had this id.
        incarnation: Incarnation,
        run: u32,
        /// The step's name in the journal.
        name: String,
    },
    /// As a task.
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
