//! Callers that wait for the end of an execution. Callers in the process in which it ends are given the record at once;
//! all others read it again from time to time.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::channel::oneshot;
use tickover_core::execution::Execution;
use tickover_core::id::ExecutionId;

type ByExecution = HashMap<ExecutionId, Vec<oneshot::Sender<Box<Execution>>>>;

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    by_execution: Mutex<ByExecution>,
}

/// A wait for the outcome of an execution, which may never come in this process.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    waiters: &'a Waiters,
    id: ExecutionId,
    ended: oneshot::Receiver<Box<Execution>>,
}

impl Waiters {
    /// Resolves when the execution has its outcome in this process, if it ever does.
    pub(crate) fn wait(&self, id: &ExecutionId) -> Wait<'_> {
        let (waiter, ended) = oneshot::channel();
        self.waiters().entry(id.clone()).or_default().push(waiter);
        Wait { waiters: self, id: id.clone(), ended }
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

impl Future for Wait<'_> {
    type Output = Result<Box<Execution>, oneshot::Canceled>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.ended.poll_unpin(context)
    }
}

/// Most executions end in another process: a wait that is over leaves nothing behind.
impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.ended.close();
        let mut waiters = self.waiters.waiters();
        if let Some(those) = waiters.get_mut(&self.id) {
            those.retain(|waiter| !waiter.is_canceled());
            if those.is_empty() {
                waiters.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tickover_core::execution::fixture::pending;
    use tickover_core::time::Timestamp;

    use super::*;

    #[test]
    fn each_caller_gets_the_record_of_its_execution() {
        let waiters = Waiters::default();
        let execution = pending(Timestamp::EPOCH);
        let other = ExecutionId::parse("other").unwrap();
        let (first, second, others) =
            (waiters.wait(&execution.id), waiters.wait(&execution.id), waiters.wait(&other));
        waiters.ended(&execution);
        assert_eq!(first.now_or_never(), Some(Ok(Box::new(execution.clone()))));
        assert_eq!(second.now_or_never(), Some(Ok(Box::new(execution))));
        assert_eq!(others.now_or_never(), None);
    }

    #[test]
    fn a_wait_that_is_over_leaves_nothing() {
        let waiters = Waiters::default();
        let id = ExecutionId::parse("e").unwrap();
        let (first, second) = (waiters.wait(&id), waiters.wait(&id));
        drop(first);
        assert_eq!(waiters.waiters().get(&id).map(Vec::len), Some(1));
        drop(second);
        assert!(waiters.waiters().is_empty());
    }
}
