//! Queues with a short timeout: expiries must not depend on whether SQS answers.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::{self, Either};
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::{Incarnation, QueueName};

use crate::ports::{ClassDepth, Clock, Depth, Outgoing, Queue, QueueError, QueueTraits, Received};
use crate::service::{Ports, Service};

/// The timeout of one call.
const TIMEOUT: Millis = Millis::from_secs(3);
/// After this many failed calls in a row, a queue isn't called any more.
const FAILURES_OF_ONE: u32 = 2;
/// After this many failed queues and no answer of any queue, no queue is called any more.
const SILENT_QUEUES: usize = 4;

/// The queues, for the duration of one tick or one message of the timers queue. A queue that fails twice isn't called
/// any more: a later tick sends a hint that isn't sent, but a deadline that waits is late.
struct BriefQueues {
    inner: Arc<dyn Queue>,
    clock: Arc<dyn Clock>,
    failures: Mutex<Failures>,
}

#[derive(Default)]
struct Failures {
    /// Failed calls in a row.
    of: HashMap<QueueName, u32>,
    /// Queues that have failed, until one answers. Failed calls aren't counted: many calls to one queue may be in
    /// progress at once, and they say nothing about other queues.
    silent: HashSet<QueueName>,
    /// Whether any queue has answered: then queues that don't answer have a problem of their own.
    answered: bool,
}

impl Service {
    /// The same service with a short timeout for queues. Queues that don't answer are no longer called.
    pub(crate) fn with_short_timeouts(&self) -> Self {
        let queue = BriefQueues {
            inner: Arc::clone(&self.ports.queue),
            clock: Arc::clone(&self.ports.clock),
            failures: Mutex::default(),
        };
        Self { ports: Ports { queue: Arc::new(queue), ..self.ports.clone() }, ..self.clone() }
    }
}

impl BriefQueues {
    async fn call<T>(
        &self,
        queue: &QueueName,
        call: impl Future<Output = Result<T, QueueError>>,
    ) -> Result<T, QueueError> {
        if self.is_given_up(queue) {
            return Err(unavailable("it didn't answer a moment ago"));
        }
        let mut call = std::pin::pin!(call);
        let answer = loop {
            let give_up_at = self.clock.now().plus(TIMEOUT);
            match future::select(call.as_mut(), self.clock.sleep_until(give_up_at)).await {
                Either::Left((answer, _)) => break answer,
                // This process itself stood still for as long: that says nothing about the queue.
                Either::Right(_) if self.clock.now() >= give_up_at.plus(TIMEOUT) => {}
                Either::Right(_) => break Err(unavailable("it took too long")),
            }
        };
        self.note(queue, &answer);
        answer
    }

    fn is_given_up(&self, queue: &QueueName) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one = failures.of.get(queue).copied().unwrap_or_default();
        of_one >= FAILURES_OF_ONE || (!failures.answered && failures.silent.len() >= SILENT_QUEUES)
    }

    fn note<T>(&self, queue: &QueueName, answer: &Result<T, QueueError>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            // A prompt answer, so there is no outage.
            Ok(_) | Err(QueueError::Unknown { .. } | QueueError::StaleReceipt) => {
                failures.answered = true;
                failures.silent.clear();
                failures.of.remove(queue);
            }
            Err(QueueError::Throttled | QueueError::Unavailable { .. }) => {
                failures.silent.insert(queue.clone());
                *failures.of.entry(queue.clone()).or_default() += 1;
            }
        }
    }
}

fn unavailable(reason: &str) -> QueueError {
    QueueError::Unavailable { reason: reason.to_owned() }
}

/// The first failure, if no message was sent: one refused message says nothing about its queue.
fn if_any_was_sent(results: Vec<Result<(), QueueError>>) -> Result<Vec<Result<(), QueueError>>, QueueError> {
    match results.first() {
        Some(Err(error)) if results.iter().all(Result::is_err) => Err(error.clone()),
        Some(_) | None => Ok(results),
    }
}

#[async_trait]
impl Queue for BriefQueues {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        self.call(queue, async { if_any_was_sent(self.inner.send(queue, messages).await?) }).await
    }

    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        self.inner.receive(queue, max, visibility, wait).await
    }

    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError> {
        self.call(queue, self.inner.delete(queue, receipt)).await
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError> {
        self.call(queue, self.inner.change_visibility(queue, receipt, visibility)).await
    }

    fn forget(&self, queue: &QueueName, of: Incarnation) {
        self.inner.forget(queue, of);
    }

    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError> {
        self.call(queue, self.inner.depth(queue)).await
    }

    async fn class_depth(&self, queue: &QueueName, class: Priority) -> Result<ClassDepth, QueueError> {
        self.call(queue, self.inner.class_depth(queue, class)).await
    }

    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError> {
        self.call(queue, self.inner.open(queue)).await
    }

    async fn discover(&self) -> Result<Vec<QueueName>, QueueError> {
        self.inner.discover().await
    }

    fn class_of(&self, receipt: &str) -> Priority {
        self.inner.class_of(receipt)
    }

    fn traits(&self) -> QueueTraits {
        self.inner.traits()
    }

    fn knows(&self, queue: &QueueName) -> bool {
        self.inner.knows(queue)
    }

    fn names(&self) -> Vec<QueueName> {
        self.inner.names()
    }
}

#[cfg(test)]
mod tests;
