//! Callers that wait for the end of an execution. Callers in the process in which it ends are notified at once; all
//! others read the record again from time to time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;
use tickover_core::id::ExecutionId;

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    by_execution: Mutex<HashMap<ExecutionId, Vec<oneshot::Sender<()>>>>,
}

impl Waiters {
    /// Resolves when the execution has ended in this process, if it ever does.
    pub(crate) fn wait(&self, id: &ExecutionId) -> oneshot::Receiver<()> {
        let (ended, wait) = oneshot::channel();
        let mut waiters = self.waiters();
        let those = waiters.entry(id.clone()).or_default();
        // Removes callers that don't wait any more.
        those.retain(|waiter| !waiter.is_canceled());
        those.push(ended);
        wait
    }

    /// Notifies all callers that wait for the execution.
    pub(crate) fn ended(&self, id: &ExecutionId) {
        for waiter in self.waiters().remove(id).into_iter().flatten() {
            // An error means that the caller doesn't wait any more.
            let _gone = waiter.send(());
        }
    }

    fn waiters(&self) -> MutexGuard<'_, HashMap<ExecutionId, Vec<oneshot::Sender<()>>>> {
        self.by_execution.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
