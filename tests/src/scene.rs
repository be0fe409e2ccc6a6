//! A service in memory, in virtual time: the time advances only when a future waits for an instant.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::id::{QueueName, TaskId, TaskKind, WorkerName};
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::time::Timestamp;
use tickover_core::timeout::Timeouts;
use tickover_service::claim::{ClaimRequest, ClaimedTask};
use tickover_service::memory::{MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{Clock, Queue as _, Store};
use tickover_service::system::SystemIds;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_service::{Ports, Service, ServiceError};

/// 2026-01-01T00:00:00Z.
pub const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// A clock that advances at once to the instant that a future waits for.
#[derive(Debug)]
pub struct LeapClock(Mutex<Timestamp>);

impl Default for LeapClock {
    fn default() -> Self {
        Self(Mutex::new(START))
    }
}

impl LeapClock {
    /// Moves the time forward.
    pub fn advance(&self, span: Millis) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.plus(span);
    }

    /// Moves the time back, as on a machine whose clock was ahead and is corrected.
    pub fn set_back(&self, span: Millis) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.minus(span);
    }
}

#[async_trait]
impl Clock for LeapClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sleep_until(&self, instant: Timestamp) {
        {
            let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *now = instant.max(*now);
        }
        tokio::task::yield_now().await;
    }
}

/// A service with the handles that a test needs.
pub struct Scene {
    pub service: Service,
    pub clock: Arc<LeapClock>,
    pub queue: Arc<MemoryQueue>,
}

impl Scene {
    /// A service over a store of the caller's.
    pub fn over(store: Arc<dyn Store>) -> Self {
        let clock = Arc::new(LeapClock::default());
        let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
        let ports = Ports { store, queue: queue.clone(), clock: clock.clone(), ids: Arc::new(SystemIds) };
        Self { service: Service::new(ports, Limits::default()), clock, queue }
    }

    /// A service with a store in memory.
    pub fn in_memory() -> Self {
        Self::over(Arc::new(MemoryStore::default()))
    }

    /// Runs one tick.
    pub async fn tick(&self) -> Result<tickover_service::tick::TickReport, ServiceError> {
        let now = self.clock.now();
        self.service.tick(now, now.plus(Millis::from_secs(50))).await
    }

    /// Processes every timer that has arrived by now, and all further timers that they send and that have arrived as
    /// well. Returns how many there were.
    ///
    /// # Panics
    ///
    /// If one can't be processed.
    #[expect(clippy::expect_used, reason = "test code, outside of a test function")]
    pub async fn fire(&self) -> usize {
        let (timers, mut fired) = (QueueName::timers(), 0);
        loop {
            let messages = self.queue.receive(&timers, 10, Millis::from_secs(60), Millis::ZERO).await;
            let messages = messages.expect("a queue of timers");
            if messages.is_empty() {
                return fired;
            }
            for message in messages {
                let stop_at = self.clock.now().plus(Millis::from_secs(50));
                self.service.fire(&message, stop_at).await.expect("a timer");
                self.queue.delete(&timers, &message.receipt).await.expect("a queue of timers");
                fired += 1;
            }
        }
    }

    /// How many timers are in the queue, delayed or visible.
    ///
    /// # Panics
    ///
    /// If there is no queue of timers.
    #[expect(clippy::expect_used, reason = "test code, outside of a test function")]
    pub async fn timers(&self) -> u64 {
        let depth = self.queue.depth(&QueueName::timers()).await.expect("a queue of timers");
        depth.visible + depth.delayed
    }

    /// Deletes every message that is visible in a queue, as if it had never been sent.
    ///
    /// # Panics
    ///
    /// If the queue doesn't exist.
    #[expect(clippy::expect_used, reason = "test code, outside of a test function")]
    pub async fn lose_messages(&self, queue: &QueueName) {
        loop {
            let messages = self.queue.receive(queue, 10, Millis::from_secs(1), Millis::ZERO).await;
            let messages = messages.expect("a queue");
            if messages.is_empty() {
                return;
            }
            for message in messages {
                self.queue.delete(queue, &message.receipt).await.expect("a queue");
            }
        }
    }

    /// Claims at most one task from the queue, for a minute, without waiting.
    pub async fn claim(&self, queue: &str) -> Result<Option<ClaimedTask>, ServiceError> {
        Ok(self.service.claim(&queue_name(queue), &claim_request(1)).await?.pop())
    }
}

/// A queue's name in tests.
///
/// # Panics
///
/// If it isn't one.
#[expect(clippy::expect_used, reason = "a test's own constant")]
pub fn queue_name(name: &str) -> QueueName {
    QueueName::parse(name).expect("a queue's name")
}

/// A task's id in tests.
///
/// # Panics
///
/// If it isn't one.
#[expect(clippy::expect_used, reason = "a test's own constant")]
pub fn task_id(id: &str) -> TaskId {
    TaskId::parse(id).expect("a task's id")
}

/// A request for up to `max` tasks, for a minute, without waiting.
pub fn claim_request(max: usize) -> ClaimRequest {
    let worker = WorkerName::parse("tester").ok();
    ClaimRequest { worker, max, lease: Millis::from_secs(60), wait: Millis::ZERO, provides: vec![] }
}

/// A request for a task of kind `work`, without further options.
///
/// # Panics
///
/// If the input isn't JSON.
#[expect(clippy::expect_used, reason = "a test's own constants")]
pub fn request(queue: &str, id: Option<&str>, input: Option<&str>) -> ScheduleRequest {
    ScheduleRequest {
        id: id.map(task_id),
        idempotency_key: None,
        queue: queue_name(queue),
        kind: TaskKind::parse("work").expect("a kind"),
        input: input.map(|text| Json::parse(text).expect("JSON")),
        labels: None,
        retry: RetryPolicy::none(),
        flow: tickover_core::flow::FlowRequest::default(),
        timeouts: Timeouts::default(),
        start: Start::After(Millis::ZERO),
        trace: None,
        asked: tickover_service::tasks::schedule::Asked::default(),
    }
}
