//! Hints that a queue doesn't keep in memory, because the store can tell which tasks are pending.

use tickover_core::id::{Incarnation, QueueName};
use tickover_core::time::Timestamp;

use crate::ports::StoreError;

/// A store that finds the pending tasks of a queue.
///
/// A queue over it keeps a bounded number of hints in memory and drops what is beyond. When few are left, it reads the
/// next ones here. So a process needs no memory for a backlog, and starts at once with any backlog.
pub trait Backlog: Send + Sync {
    /// All queues that tasks or executions were ever written for.
    fn queues(&self) -> Result<Vec<QueueName>, StoreError>;

    /// The hints of tasks that workers may have by `now`: of the first `limit` in order of that instant, those that
    /// aren't `known`.
    fn ready(
        &self,
        queue: &QueueName,
        now: Timestamp,
        limit: usize,
        known: &dyn Fn(Incarnation) -> bool,
    ) -> Result<Ready, StoreError>;

    /// How many tasks workers may have by `now`.
    fn count(&self, queue: &QueueName, now: Timestamp) -> Result<u64, StoreError>;
}

/// Tasks that are ready for workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Bodies of hints.
    pub hints: Vec<String>,
    /// When to read again: the first instant that isn't covered by this answer; `None` if no further task is pending.
    pub next_at: Option<Timestamp>,
}
