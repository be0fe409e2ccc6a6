//! Whoever waits in this process for the end of an execution that ends in this process hears of it at once. All
//! others look again from time to time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;
use tickover_core::id::ExecutionId;

/// Those who wait, by what for.
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
        // Those who have gone away leave nothing behind.
        those.retain(|waiter| !waiter.is_canceled());
        those.push(ended);
        wait
    }

    /// Tells everybody who waits for it.
    pub(crate) fn ended(&self, id: &ExecutionId) {
        for waiter in self.waiters().remove(id).into_iter().flatten() {
            // Whoever has gone away needn't be told.
            let _gone = waiter.send(());
        }
    }

    fn waiters(&self) -> MutexGuard<'_, HashMap<ExecutionId, Vec<oneshot::Sender<()>>>> {
        self.by_execution.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
