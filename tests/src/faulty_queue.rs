//! Queues that fail, don't answer, lose a message, or don't exist.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_core::limits::Limits;
use tickover_core::time::Timestamp;
use tickover_service::memory::{MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{ClassDepth, Clock, Depth, Outgoing, Queue, QueueError, QueueTraits, Received};
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};

use crate::scene::{LeapClock, Scene};

/// What is wrong with all queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueFault {
    Fails,
    /// No call ever answers.
    Hangs,
    /// The next call fails after this time, and no other one.
    FailsAfter(Millis),
}

#[derive(Default)]
struct FaultState {
    fault: Option<QueueFault>,
    missing: BTreeSet<QueueName>,
    to_lose: Option<String>,
    lost: Option<Timestamp>,
    calls: BTreeMap<&'static str, u64>,
}

/// Queues in memory with injected faults.
pub struct FaultyQueue {
    inner: Arc<MemoryQueue>,
    clock: Arc<LeapClock>,
    fault_state: Mutex<FaultState>,
}

impl FaultyQueue {
    /// A scene over such queues, with this many shards of the due index.
    pub fn scene(due_shards: u16) -> (Scene, Arc<Self>) {
        let clock = Arc::new(LeapClock::default());
        let inner = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
        let queue =
            Arc::new(Self { inner: inner.clone(), clock: clock.clone(), fault_state: Mutex::default() });
        let store = Arc::new(MemoryStore::default());
        let ports = Ports { store, queue: queue.clone(), clock: clock.clone(), ids: Arc::new(SystemIds) };
        let service = Service::new(ports, Limits { due_shards, ..Limits::default() });
        (Scene { service, clock, queue: inner }, queue)
    }

    /// From now on all queues have this fault, or none.
    pub fn set_fault(&self, fault: Option<QueueFault>) {
        self.lock_state().fault = fault;
    }

    /// Removes a queue from the configuration, or adds it again.
    pub fn set_missing(&self, queue: &QueueName, missing: bool) {
        if missing {
            self.lock_state().missing.insert(queue.clone());
        } else {
            self.lock_state().missing.remove(queue);
        }
    }

    /// Loses the next message of a work queue whose body contains this text.
    pub fn lose_next(&self, text: &str) {
        let mut lock_state = self.lock_state();
        lock_state.to_lose = Some(text.to_owned());
        lock_state.lost = None;
    }

    /// When the lost message would have arrived, if one was lost.
    pub fn lost_due_at(&self) -> Option<Timestamp> {
        self.lock_state().lost
    }

    /// How often this method was called since the last time that this count was read.
    pub fn calls(&self, call: &'static str) -> u64 {
        self.lock_state().calls.remove(call).unwrap_or_default()
    }

    fn lock_state(&self) -> MutexGuard<'_, FaultState> {
        self.fault_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call(&self, call: &'static str, queue: &QueueName) -> Result<(), QueueError> {
        let (fault, missing) = {
            let mut lock_state = self.lock_state();
            *lock_state.calls.entry(call).or_default() += 1;
            let fault = lock_state.fault;
            if matches!(fault, Some(QueueFault::FailsAfter(_))) {
                lock_state.fault = None;
            }
            (fault, lock_state.missing.contains(queue))
        };
        match fault {
            _ if missing => Err(QueueError::Unknown { queue: queue.to_string() }),
            Some(QueueFault::Fails) => Err(QueueError::Unavailable { reason: "out of order".to_owned() }),
            Some(QueueFault::Hangs) => std::future::pending().await,
            Some(QueueFault::FailsAfter(span)) => {
                self.clock.advance(span);
                Err(QueueError::Throttled)
            }
            None => Ok(()),
        }
    }

    /// Whether the message gets lost.
    fn is_lost(&self, queue: &QueueName, message: &Outgoing) -> bool {
        let mut lock_state = self.lock_state();
        let lost = !queue.is_reserved()
            && lock_state.to_lose.as_ref().is_some_and(|text| message.body.contains(text.as_str()));
        if lost {
            lock_state.to_lose = None;
            lock_state.lost = Some(self.clock.now().plus(message.delay));
        }
        lost
    }
}

#[async_trait]
impl Queue for FaultyQueue {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        self.call("send", queue).await?;
        let kept: Vec<_> = messages.iter().filter(|message| !self.is_lost(queue, message)).cloned().collect();
        self.inner.send(queue, &kept).await?;
        Ok(vec![Ok(()); messages.len()])
    }

    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        self.call("receive", queue).await?;
        self.inner.receive(queue, max, visibility, wait).await
    }

    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError> {
        self.call("delete", queue).await?;
        self.inner.delete(queue, receipt).await
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError> {
        self.call("change_visibility", queue).await?;
        self.inner.change_visibility(queue, receipt, visibility).await
    }

    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError> {
        self.call("depth", queue).await?;
        self.inner.depth(queue).await
    }

    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError> {
        self.call("open", queue).await?;
        self.inner.open(queue).await
    }

    fn class_of(&self, receipt: &str) -> Priority {
        self.inner.class_of(receipt)
    }

    fn traits(&self) -> QueueTraits {
        self.inner.traits()
    }

    fn knows(&self, queue: &QueueName) -> bool {
        !self.lock_state().missing.contains(queue) && self.inner.knows(queue)
    }

    fn names(&self) -> Vec<QueueName> {
        self.inner.names().into_iter().filter(|name| self.knows(name)).collect()
    }

    async fn class_depth(&self, queue: &QueueName, class: Priority) -> Result<ClassDepth, QueueError> {
        self.call("depth", queue).await?;
        self.inner.class_depth(queue, class).await
    }

    async fn discover(&self) -> Result<Vec<QueueName>, QueueError> {
        self.inner.discover().await
    }
}
