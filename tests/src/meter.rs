//! A service over the embedded database, with a meter for what each call consumes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dynamodb::LocalDynamo;
use anyhow::Result;
use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_core::limits::Limits;
use tickover_dynamodb::{DynamoStore, Table};
use tickover_service::cost::Units;
use tickover_service::memory::{MemoryQueue, Queues};
use tickover_service::ports::{
    ClassDepth, Clock, Depth, Listed, Outgoing, Queue, QueueError, QueueTraits, Received,
};
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};

use crate::scene::{LeapClock, Scene};

/// The most messages that SQS takes in one request.
const MESSAGES_OF_REQUEST: usize = 10;

/// What a call consumed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bill {
    /// Write units, including indexes and failed conditions.
    pub writes: f64,
    /// Read units.
    pub reads: f64,
    pub sends: u64,
}

impl Bill {
    /// Whether it stays within the units from which prices are calculated.
    pub fn within(&self, units: Units) -> bool {
        let sends = u32::try_from(self.sends).map_or(f64::INFINITY, f64::from);
        self.writes <= units.writes && self.reads <= units.reads && sends <= units.sends
    }
}

pub struct Meter {
    pub scene: Scene,
    pub store: Arc<DynamoStore>,
    queue: Arc<CountingQueue>,
}

impl Meter {
    /// A service over an empty database in memory.
    pub async fn new() -> Result<Self> {
        Self::listing(Listed::default()).await
    }

    /// The same with a list of these executions of all workflows.
    pub async fn listing(listed: Listed) -> Result<Self> {
        let database = LocalDynamo::memory()?;
        Table::new("tickover").create(&database.client()).await?;
        let store = Arc::new(DynamoStore::new(database.client(), "tickover").listing(listed));
        let clock = Arc::new(LeapClock::default());
        let inner = Arc::new(MemoryQueue::new(clock.clone() as Arc<dyn Clock>, Queues::OnOpen));
        let queue = Arc::new(CountingQueue {
            inner: inner.clone(),
            sent: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        });
        let ports = Ports {
            store: store.clone(),
            queue: queue.clone(),
            clock: clock.clone(),
            ids: Arc::new(SystemIds),
        };
        let service = Service::new(ports, Limits::default());
        Ok(Self { scene: Scene { service, clock, queue: inner }, store, queue })
    }

    /// Another process over the same table and queue. It knows nothing of what the first one has read.
    pub fn another(&self) -> Service {
        let ports = Ports {
            store: self.store.clone(),
            queue: self.queue.clone(),
            clock: self.scene.clock.clone(),
            ids: Arc::new(SystemIds),
        };
        Service::new(ports, Limits::default())
    }

    /// How many requests have sent messages so far.
    pub fn send_requests(&self) -> u64 {
        self.queue.requests.load(Ordering::SeqCst)
    }

    /// Runs a call; returns its result and what it consumed.
    pub async fn bill<T>(&self, call: impl Future<Output = T>) -> (T, Bill) {
        let (before, sent) = (self.store.usage(), self.queue.sent.load(Ordering::SeqCst));
        let answer = call.await;
        let used = self.store.usage().since(before);
        let bill = Bill {
            writes: used.write_units + used.failed_condition_units,
            reads: used.read_units,
            sends: self.queue.sent.load(Ordering::SeqCst) - sent,
        };
        (answer, bill)
    }
}

/// Counts the messages that are sent.
struct CountingQueue {
    inner: Arc<MemoryQueue>,
    sent: AtomicU64,
    /// Requests of up to ten messages each, as SQS takes them.
    requests: AtomicU64,
}

#[async_trait]
impl Queue for CountingQueue {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        self.sent.fetch_add(u64::try_from(messages.len()).unwrap_or(u64::MAX), Ordering::SeqCst);
        let requests = messages.len().div_ceil(MESSAGES_OF_REQUEST);
        self.requests.fetch_add(u64::try_from(requests).unwrap_or(u64::MAX), Ordering::SeqCst);
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
