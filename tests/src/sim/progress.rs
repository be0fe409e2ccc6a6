//! How far the clients are, and which tasks and executions people have heard of. It outlives the processes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tickover_core::id::{ExecutionId, TaskId};

use super::dice::Dice;

/// What one client has done; the tasks that anybody has heard of are the same for all.
#[derive(Debug, Default)]
pub struct Progress {
    jobs: AtomicUsize,
    known: Arc<Mutex<Vec<TaskId>>>,
    executions: Arc<Mutex<Vec<ExecutionId>>>,
}

impl Progress {
    /// Another client's, who hears of the same tasks.
    #[must_use]
    pub fn beside(&self) -> Self {
        let (known, executions) = (Arc::clone(&self.known), Arc::clone(&self.executions));
        Self { jobs: AtomicUsize::new(0), known, executions }
    }

    /// Jobs done.
    pub fn jobs_done(&self) -> usize {
        self.jobs.load(Ordering::Relaxed)
    }

    /// One more is done.
    pub fn job_done(&self) {
        self.jobs.fetch_add(1, Ordering::Relaxed);
    }

    /// People have heard of these tasks.
    pub fn remember(&self, tasks: impl IntoIterator<Item = TaskId>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).extend(tasks);
    }

    /// People have heard of this execution.
    pub fn remember_execution(&self, id: ExecutionId) {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    /// An execution that people have heard of.
    pub fn recall_execution(&self, dice: &Dice) -> Option<ExecutionId> {
        let known = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        let last = u64::try_from(known.len()).unwrap_or(0).checked_sub(1)?;
        known.get(usize::try_from(dice.between(0, last)).unwrap_or(0)).cloned()
    }

    /// A task that people have heard of; recent ones come to mind more easily.
    pub fn recall(&self, dice: &Dice) -> Option<TaskId> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let back = dice.between(1, 5).min(u64::try_from(known.len()).unwrap_or(1));
        known.get(known.len().checked_sub(usize::try_from(back).unwrap_or(1))?).cloned()
    }
}
