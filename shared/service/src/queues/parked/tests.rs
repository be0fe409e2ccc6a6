mod lost;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tickover_core::id::TaskKind;
use tickover_core::limits::Limits;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::timeout::Timeouts;

use super::*;
use crate::claim::{ClaimRequest, Delivered, Hinted, Isolation};
use crate::executions::tests::mortal::{CrashingStore, NEVER};
use crate::memory::{ManualClock, MemoryQueue, Queues};
use crate::ports::{Clock as _, Queue as _};
use crate::service::Ports;
use crate::system::SystemIds;
use crate::tasks::schedule::ScheduleRequest;

/// Two processes with one table and its queues.
struct Scene {
    operator: Service,
    worker: Service,
    clock: Arc<ManualClock>,
    queue: Arc<MemoryQueue>,
    store: Arc<CrashingStore>,
}

fn work() -> QueueName {
    QueueName::parse("work").unwrap()
}

impl Scene {
    fn new() -> Self {
        Self::of_shards(1)
    }

    fn of_shards(due_shards: u16) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_767_225_600_000)));
        let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::Fixed(vec![work()])));
        let says = StoreError::Unavailable { reason: "throttled for long".to_owned(), is_logged: false };
        let store = Arc::new(CrashingStore::new(clock.clone(), says));
        let ports = Ports {
            store: store.clone(),
            queue: queue.clone(),
            clock: clock.clone(),
            ids: Arc::new(SystemIds),
        };
        let limits = Limits { due_shards, ..Limits::default() };
        let operator = Service::new(ports.clone(), limits.clone());
        Self { operator, worker: Service::new(ports, limits), clock, queue, store }
    }

    async fn schedule(&self, id: &str) {
        let request = ScheduleRequest {
            id: Some(TaskId::parse(id).unwrap()),
            idempotency_key: None,
            queue: work(),
            kind: TaskKind::parse("work").unwrap(),
            input: None,
            labels: None,
            retry: RetryPolicy::none(),
            flow: tickover_core::flow::FlowRequest::default(),
            timeouts: Timeouts::default(),
            start: Start::After(Millis::ZERO),
            trace: None,
            asked: crate::tasks::schedule::Asked::default(),
        };
        self.operator.schedule(request).await.unwrap();
    }

    /// Delivers all messages to the worker. Returns how many tasks it took.
    async fn deliver(&self) -> usize {
        let mut taken = 0;
        while let Some(count) = self.deliver_batch().await {
            taken += count;
        }
        taken
    }

    async fn deliver_batch(&self) -> Option<usize> {
        let request = ClaimRequest {
            worker: None,
            max: 1,
            lease: Millis::from_secs(60),
            wait: Millis::ZERO,
            provides: vec![],
        };
        let messages = self.queue.receive(&work(), 10, Millis::from_secs(360), Millis::ZERO).await.unwrap();
        let (mut taken, is_end) = (0, messages.is_empty());
        for message in messages {
            let (body, receipt) = (message.body.as_str(), Some(message.receipt.as_str()));
            let delivered = Delivered { body, receipt, receives: message.receive_count };
            match self.worker.claim_hinted(delivered, &request, Isolation::Shared).await.unwrap() {
                Hinted::Taken(_) => taken += 1,
                Hinted::Spent => self.queue.delete(&work(), &message.receipt).await.unwrap(),
                Hinted::Suspect => {}
            }
        }
        (!is_end).then_some(taken)
    }

    /// The worker processes the timers that have arrived.
    async fn fire(&self) {
        let timers = QueueName::timers();
        for message in self.queue.receive(&timers, 10, Millis::from_secs(60), Millis::ZERO).await.unwrap() {
            let stop_at = self.clock.now().plus(Millis::from_secs(50));
            self.worker.fire(&message, stop_at).await.unwrap();
            self.queue.delete(&timers, &message.receipt).await.unwrap();
        }
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Millis::from_secs(seconds));
    }
}

#[tokio::test]
async fn a_message_received_just_after_a_short_pause_is_not_parked() {
    let scene = Scene::new();
    scene.operator.pause_queue(&work(), true).await.unwrap();
    // The worker reads that the queue is paused, and uses its copy of the record for a while.
    assert!(scene.worker.is_paused(&work()).await.unwrap());
    scene.pass(2);
    scene.operator.pause_queue(&work(), false).await.unwrap();
    scene.schedule("t").await;
    scene.pass(1);
    // Nothing was parked when the queue was resumed, so no walk will look for the task.
    assert_eq!(scene.deliver().await, 1);
}

#[tokio::test]
async fn a_walk_continues_though_its_process_still_reads_an_old_pause() {
    let scene = Scene::new();
    scene.schedule("t").await;
    scene.operator.pause_queue(&work(), true).await.unwrap();
    assert_eq!(scene.deliver().await, 0);
    scene.pass(6);
    scene.operator.pause_queue(&work(), false).await.unwrap();
    scene.pass(8);
    scene.operator.pause_queue(&work(), true).await.unwrap();
    assert!(scene.worker.is_paused(&work()).await.unwrap());
    scene.pass(1);
    // Nothing is recorded as parked now, so this resume sends no walk; the first walk is on its way.
    scene.operator.pause_queue(&work(), false).await.unwrap();
    scene.pass(1);
    scene.fire().await;
    scene.pass(60);
    scene.fire().await;
    assert_eq!(scene.deliver().await, 1);
}
