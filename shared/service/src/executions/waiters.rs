//! Callers that wait for the end of an execution. Callers in the process in which it ends are given the record at once;
//! all others read it again from time to time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;
use tickover_core::execution::Execution;
use tickover_core::id::ExecutionId;

type ByExecution = HashMap<ExecutionId, Vec<oneshot::Sender<Box<Execution>>>>;

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    by_execution: Mutex<ByExecution>,
}

impl Waiters {
    /// Resolves when the execution has its outcome in this process, if it ever does.
    pub(crate) fn wait(&self, id: &ExecutionId) -> oneshot::Receiver<Box<Execution>> {
        let (ended, wait) = oneshot::channel();
        let mut waiters = self.waiters();
        let those = waiters.entry(id.clone()).or_default();
        // Removes callers that don't wait any more.
        those.retain(|waiter| !waiter.is_canceled());
        those.push(ended);
        wait
    }

    /// Gives all callers that wait for the execution its record with the outcome.
    pub(crate) fn ended(&self, execution: &Execution) {
        let waiting = self.waiters().remove(&execution.id);
        for waiter in waiting.into_iter().flatten() {
            // An error means that the caller doesn't wait any more.
            let _gone = waiter.send(Box::new(execution.clone()));
        }
    }

    fn waiters(&self) -> MutexGuard<'_, ByExecution> {
        self.by_execution.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
