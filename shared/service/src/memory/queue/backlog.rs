//! Hints that a queue doesn't keep in memory, because the store can tell which tasks are pending.

use tickover_core::id::{Incarnation, QueueName};
use tickover_core::lane::Lane;
use tickover_core::time::Timestamp;

use crate::ports::StoreError;

/// A store that finds the pending tasks of a queue.
///
/// A queue over it keeps a bounded number of hints in memory and drops further ones. When few are left, it reads the
/// next ones here. So a process needs no memory for a backlog, and starts at once with any backlog. It keeps equal
/// shares of the lanes' hints, so that a backlog of one tenant keeps no other out.
pub trait Backlog: Send + Sync {
    /// All queues that tasks or executions were ever written for.
    fn queues(&self) -> Result<Vec<QueueName>, StoreError>;

    /// Which lanes of a queue have tasks that need a hint, in the order of [`Lane`]: at most `max`, those after a lane
    /// or all.
    fn lanes(&self, queue: &QueueName, after: Option<Lane>, max: usize) -> Result<Vec<Lane>, StoreError>;

    /// Shows the tasks of a queue's lane that need a hint, those that are ready first come first, until `choose` stops.
    /// Returns the bodies of the hints that it takes, in this order.
    fn hints(
        &self,
        queue: &QueueName,
        lane: Lane,
        choose: &mut dyn FnMut(Ready) -> Choice,
    ) -> Result<Vec<String>, StoreError>;

    /// The latest instant from which on workers may have a task that needs a hint.
    fn latest(&self) -> Result<Option<Timestamp>, StoreError>;

    /// How many tasks need a hint that workers may have by `now`.
    fn count(&self, queue: &QueueName, now: Timestamp) -> Result<u64, StoreError>;
}

/// A task that needs a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// From when on workers may have it.
    pub at: Timestamp,
    pub incarnation: Incarnation,
    /// The version of its record, which its hint has as well.
    pub version: u64,
}

/// What becomes of a task's hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Take,
    Skip,
    /// It isn't taken, nor is any later one.
    Stop,
}
