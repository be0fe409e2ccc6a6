//! A queue of events that doesn't exist, or that fails.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_core::limits::Limits;
use tickover_service::memory::{MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{ClassDepth, Depth, Outgoing, Queue, QueueError, QueueTraits, Received};
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};
use tickover_tests::http::Caller;
use tickover_tests::scene::{LeapClock, Scene};

use crate::stage::eventful_life;

/// What is wrong with the queue of events.
#[derive(Clone, Copy, PartialEq)]
enum EventQueueFault {
    /// It doesn't exist.
    Absent,
    /// It accepts no message.
    Failing,
}

/// Queues in memory, except that of events. It records to which queues messages were sent, in order.
struct Troubled {
    inner: Arc<MemoryQueue>,
    fault: EventQueueFault,
    sent_to: Mutex<Vec<QueueName>>,
}

#[async_trait]
impl Queue for Troubled {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        self.sent_to.lock().unwrap().push(queue.clone());
        if *queue == QueueName::events() {
            return Err(QueueError::Unavailable { reason: "out of order".to_owned() });
        }
        self.inner.send(queue, messages).await
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
        self.inner.traits()
    }

    fn knows(&self, queue: &QueueName) -> bool {
        if *queue == QueueName::events() {
            self.fault == EventQueueFault::Failing
        } else {
            self.inner.knows(queue)
        }
    }

    fn names(&self) -> Vec<QueueName> {
        self.inner.names().into_iter().filter(|name| self.knows(name)).collect()
    }

    async fn class_depth(&self, queue: &QueueName, class: Priority) -> Result<ClassDepth, QueueError> {
        self.inner.class_depth(queue, class).await
    }

    async fn discover(&self) -> Result<Vec<QueueName>, QueueError> {
        self.inner.discover().await
    }
}

fn troubled(fault: EventQueueFault) -> (Caller, Arc<Troubled>) {
    let clock = Arc::new(LeapClock::default());
    let inner = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let queue = Arc::new(Troubled { inner: inner.clone(), fault, sent_to: Mutex::default() });
    let store = Arc::new(MemoryStore::default());
    let ports = Ports { store, queue: queue.clone(), clock: clock.clone(), ids: Arc::new(SystemIds) };
    let service = Service::new(ports, Limits::default());
    (Caller::of(Scene { service, clock, queue: inner }), queue)
}

#[tokio::test]
async fn without_a_queue_of_events_nothing_is_sent_there_and_nothing_fails() {
    let (caller, queue) = troubled(EventQueueFault::Absent);
    eventful_life(&caller, "a").await;
    assert_eq!(caller.task("a").await["status"], "completed");
    let sent_to = queue.sent_to.lock().unwrap();
    assert!(!sent_to.is_empty() && !sent_to.contains(&QueueName::events()), "{sent_to:?}");
}

#[tokio::test]
async fn a_queue_of_events_that_fails_fails_no_call() {
    let (caller, queue) = troubled(EventQueueFault::Failing);
    eventful_life(&caller, "a").await;
    assert_eq!(caller.task("a").await["status"], "completed");
    caller.schedule("b", json!({"timeout": "5s"})).await;
    caller.pass(6).await;
    assert_eq!(caller.task("b").await["status"], "timed_out");
    let tried = queue.sent_to.lock().unwrap().iter().filter(|name| **name == QueueName::events()).count();
    assert!(tried >= 9, "{tried}");
}

#[tokio::test]
async fn hints_are_sent_before_events() {
    let (caller, queue) = troubled(EventQueueFault::Failing);
    caller.schedule("a", json!({"timeout": "30s"})).await;
    let batch = json!({"tasks": [{"queue": "work", "kind": "work"}, {"queue": "more", "kind": "work"}]});
    caller.ok("/v1/tasks/batch", batch).await;
    let sent_to: Vec<_> = queue.sent_to.lock().unwrap().iter().map(ToString::to_string).collect();
    let events: Vec<_> = sent_to.iter().enumerate().filter(|(_, name)| *name == "@events").collect();
    // Each call's hints and timers, and then its events in one send.
    assert_eq!(events.len(), 2, "{sent_to:?}");
    assert_eq!(events[1].0 + 1, sent_to.len(), "{sent_to:?}");
    let first = &sent_to[..events[0].0];
    assert!(first.iter().any(|name| name == "work"), "{sent_to:?}");
}
