//! The progress of the clients, and the tasks and executions from answers that clients got. It outlives the processes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tickover_core::id::{ExecutionId, TaskId};

use super::dice::Dice;

/// The progress of one client. All clients share the list of known tasks.
#[derive(Debug, Default)]
pub struct Progress {
    jobs: AtomicUsize,
    known: Arc<Mutex<Vec<TaskId>>>,
    executions: Arc<Mutex<Vec<ExecutionId>>>,
}

impl Progress {
    /// The progress of another client, which knows the same tasks.
    #[must_use]
    pub fn sharing_tasks(&self) -> Self {
        let (known, executions) = (Arc::clone(&self.known), Arc::clone(&self.executions));
        Self { jobs: AtomicUsize::new(0), known, executions }
    }

    /// Jobs done.
    pub fn jobs_done(&self) -> usize {
        self.jobs.load(Ordering::Relaxed)
    }

    /// Counts one more job.
    pub fn job_done(&self) {
        self.jobs.fetch_add(1, Ordering::Relaxed);
    }

    /// Clients got an answer with these tasks.
    pub fn remember(&self, tasks: impl IntoIterator<Item = TaskId>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).extend(tasks);
    }

    /// Clients got an answer with this execution.
    pub fn remember_execution(&self, id: ExecutionId) {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    pub fn known_tasks(&self) -> Vec<TaskId> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn known_executions(&self) -> Vec<ExecutionId> {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A random known execution.
    pub fn recall_execution(&self, dice: &Dice) -> Option<ExecutionId> {
        let known = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        let last = u64::try_from(known.len()).unwrap_or(0).checked_sub(1)?;
        known.get(usize::try_from(dice.between(0, last)).unwrap_or(0)).cloned()
    }

    /// A random known task; recent ones are more likely.
    pub fn recall(&self, dice: &Dice) -> Option<TaskId> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let back = dice.between(1, 5).min(u64::try_from(known.len()).unwrap_or(1));
        known.get(known.len().checked_sub(usize::try_from(back).unwrap_or(1))?).cloned()
    }
}
