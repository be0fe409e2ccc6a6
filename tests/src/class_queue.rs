//! Queues in memory whose messages of high and low priority wait apart from the normal ones, as in SQS with `Priorities=on`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_core::limits::Limits;
use tickover_service::memory::{MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{ClassDepth, Depth, Outgoing, Queue, QueueError, QueueTraits, Received};
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};
use tickover_sqs::{receipt_of, split_receipt};

use crate::scene::{LeapClock, Scene};

/// The name of a class queue.
fn class_queue(queue: &str, class: Priority) -> String {
    format!("{queue}.{class}")
}

/// Such queues, and the way back to queues without classes.
pub struct ClassQueue {
    inner: Arc<MemoryQueue>,
    on: AtomicBool,
}

impl ClassQueue {
    /// A scene over such queues.
    pub fn scene() -> (Scene, Arc<Self>) {
        let clock = Arc::new(LeapClock::default());
        let inner = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
        let queue = Arc::new(Self { inner: inner.clone(), on: AtomicBool::new(true) });
        let store = Arc::new(MemoryStore::default());
        let ports = Ports { store, queue: queue.clone(), clock: clock.clone(), ids: Arc::new(SystemIds) };
        (Scene { service: Service::new(ports, Limits::default()), clock, queue: inner }, queue)
    }

    /// Deletes the class queues with their messages, or makes them again.
    pub fn set(&self, on: bool) {
        self.on.store(on, Ordering::SeqCst);
    }

    /// The queue in which the messages of a class wait.
    ///
    /// # Panics
    ///
    /// If the queue's name is too long for that of a class queue.
    #[expect(clippy::expect_used, reason = "test code, outside of a test function")]
    pub fn of(&self, queue: &QueueName, class: Priority) -> QueueName {
        match class {
            Priority::High | Priority::Low if self.on.load(Ordering::SeqCst) => {
                QueueName::parse(class_queue(queue.as_str(), class)).expect("a short name")
            }
            Priority::High | Priority::Normal | Priority::Low => queue.clone(),
        }
    }

    /// The queue of a receipt's message, and its receipt there.
    fn there<'a>(&self, queue: &QueueName, receipt: &'a str) -> (QueueName, &'a str) {
        let (class, receipt) = split_receipt(receipt);
        (self.of(queue, class), receipt)
    }
}

#[async_trait]
impl Queue for ClassQueue {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        for message in messages {
            let to = self.of(queue, message.lane.priority);
            self.inner.open(&to).await?;
            self.inner.send(&to, std::slice::from_ref(message)).await?;
        }
        Ok(vec![Ok(()); messages.len()])
    }

    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        _wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        let mut received = Vec::new();
        for class in Priority::ALL {
            let from = self.of(queue, class);
            if received.len() == max || !self.inner.open(&from).await? {
                continue;
            }
            let given = self.inner.receive(&from, max - received.len(), visibility, Millis::ZERO).await?;
            let there = if from == *queue { Priority::Normal } else { class };
            received.extend(given.into_iter().map(|message| {
                let receipt = receipt_of(there, message.receipt.clone());
                Received { receipt, ..message }
            }));
        }
        Ok(received)
    }

    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError> {
        let (queue, receipt) = self.there(queue, receipt);
        self.inner.delete(&queue, receipt).await
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError> {
        let (queue, receipt) = self.there(queue, receipt);
        self.inner.change_visibility(&queue, receipt, visibility).await
    }

    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError> {
        self.inner.depth(queue).await
    }

    async fn class_depth(&self, queue: &QueueName, class: Priority) -> Result<ClassDepth, QueueError> {
        let there = self.of(queue, class);
        self.inner.open(&there).await?;
        Ok(ClassDepth { depth: self.inner.depth(&there).await?, apart: there != *queue })
    }

    fn class_of(&self, receipt: &str) -> Priority {
        split_receipt(receipt).0
    }

    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError> {
        self.inner.open(queue).await
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

    async fn discover(&self) -> Result<Vec<QueueName>, QueueError> {
        self.inner.discover().await
    }
}
