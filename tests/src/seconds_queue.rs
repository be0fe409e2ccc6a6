//! A queue that counts delays in whole seconds, as SQS does, and notes what it is sent.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_core::time::Timestamp;
use tickover_service::memory::MemoryQueue;
use tickover_service::ports::{ClassDepth, Clock, Depth, Outgoing, Queue, QueueError, QueueTraits, Received};

/// A message that was sent.
#[derive(Clone, Debug)]
pub struct Noted {
    /// The call that sent it, counted from 0.
    pub call: usize,
    pub body: String,
    pub visible_at: Timestamp,
}

/// Queues in memory with delays in whole seconds, rounded down.
pub struct SecondsQueue {
    pub inner: Arc<MemoryQueue>,
    clock: Arc<dyn Clock>,
    calls: Mutex<Vec<Vec<Noted>>>,
}

impl SecondsQueue {
    pub fn new(inner: Arc<MemoryQueue>, clock: Arc<dyn Clock>) -> Self {
        Self { inner, clock, calls: Mutex::default() }
    }

    /// What was sent so far, in order.
    pub fn noted(&self) -> Vec<Noted> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().cloned().collect()
    }
}

#[async_trait]
impl Queue for SecondsQueue {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        let now = self.clock.now();
        let whole = |message: &Outgoing| Outgoing {
            delay: Millis::from_secs(message.delay.as_secs_floor()),
            ..message.clone()
        };
        let messages: Vec<Outgoing> = messages.iter().map(whole).collect();
        {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let call = calls.len();
            let noted = |message: &Outgoing| Noted {
                call,
                body: message.body.clone(),
                visible_at: now.plus(message.delay),
            };
            calls.push(messages.iter().map(noted).collect());
        }
        self.inner.send(queue, &messages).await
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
        self.inner.delete(queue, receipt).await
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError> {
        self.inner.change_visibility(queue, receipt, visibility).await
    }

    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError> {
        self.inner.depth(queue).await
    }

    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError> {
        self.inner.open(queue).await
    }

    fn class_of(&self, receipt: &str) -> Priority {
        self.inner.class_of(receipt)
    }

    fn traits(&self) -> QueueTraits {
        QueueTraits { counts_seconds: true, ..self.inner.traits() }
    }

    fn knows(&self, queue: &QueueName) -> bool {
        self.inner.knows(queue)
    }

    fn names(&self) -> Vec<QueueName> {
        self.inner.names()
    }

    async fn class_depth(&self, queue: &QueueName, class: Priority) -> Result<ClassDepth, QueueError> {
        self.inner.class_depth(queue, class).await
    }

    async fn discover(&self) -> Result<Vec<QueueName>, QueueError> {
        self.inner.discover().await
    }
}
