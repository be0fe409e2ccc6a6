//! Claims that gather tasks, in virtual time.

use std::sync::Arc;

use futures::future::join;
use tickover_core::flow::FlowRequest;
use tickover_core::id::{Capability, FlowKey, TaskKind};
use tickover_core::limits::Limits;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::time::Timestamp;
use tickover_core::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};

use super::*;
use crate::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
use crate::ports::{Clock as _, Queue as _};
use crate::service::Ports;
use crate::system::SystemIds;
use crate::tasks::schedule::{Asked, ScheduleRequest};

const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

struct Scene {
    service: Service,
    clock: Arc<ManualClock>,
    queue: Arc<MemoryQueue>,
}

fn work() -> QueueName {
    QueueName::parse("work").unwrap()
}

/// A task of a kind and a fairness key; an empty key is none.
fn asked(kind: &str, key: &str) -> ScheduleRequest {
    let fairness = (!key.is_empty()).then(|| FlowKey::parse(key).unwrap());
    ScheduleRequest {
        id: None,
        idempotency_key: None,
        queue: work(),
        kind: TaskKind::parse(kind).unwrap(),
        input: None,
        labels: None,
        retry: RetryPolicy::none(),
        flow: FlowRequest { fairness, ..FlowRequest::default() },
        timeouts: Timeouts::default(),
        start: Start::After(Millis::ZERO),
        trace: None,
        asked: Asked::default(),
    }
}

impl Scene {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
        let ports = Ports {
            store: Arc::new(MemoryStore::default()),
            queue: queue.clone(),
            clock: clock.clone(),
            ids: Arc::new(SystemIds),
        };
        queue.open(&work()).await.unwrap();
        Self { service: Service::new(ports, Limits::default()), clock, queue }
    }

    async fn schedule(&self, asked: ScheduleRequest) {
        self.service.schedule(asked).await.unwrap();
    }

    /// Claims tasks of one key in virtual time.
    async fn claim(&self, max: usize, fill_ms: u64) -> Vec<ClaimedTask> {
        let together = Together { same_key: true, fill: Millis::new(fill_ms) };
        self.clock.drive(self.gathered(max, together)).await
    }

    async fn gathered(&self, max: usize, together: Together) -> Vec<ClaimedTask> {
        self.service.claim_together(&work(), &request(max), together).await.unwrap()
    }

    fn passed(&self) -> u64 {
        self.clock.now().since(START).as_u64()
    }
}

fn request(max: usize) -> ClaimRequest {
    ClaimRequest { worker: None, max, lease: Millis::from_secs(60), wait: Millis::ZERO, provides: vec![] }
}

fn kinds(claimed: &[ClaimedTask]) -> Vec<&str> {
    claimed.iter().map(|claimed| claimed.task.kind.as_str()).collect()
}

#[tokio::test]
async fn a_full_batch_is_returned_at_once() {
    let scene = Scene::new().await;
    for _ in 0..5 {
        scene.schedule(asked("mail", "")).await;
    }
    assert_eq!(scene.claim(3, 20_000).await.len(), 3);
    assert_eq!(scene.passed(), 0);
}

#[tokio::test]
async fn a_batch_that_is_not_full_waits_for_more_and_its_leases_begin_afterwards() {
    let scene = Scene::new().await;
    scene.schedule(asked("mail", "")).await;
    let later = async {
        scene.clock.sleep_until(START.plus(Millis::new(1_500))).await;
        scene.schedule(asked("mail", "")).await;
        scene.schedule(asked("mail", "a")).await;
    };
    let together = Together { same_key: true, fill: Millis::from_secs(2) };
    let (claimed, ()) = scene.clock.drive(Box::pin(join(scene.gathered(10, together), later))).await;
    assert_eq!((claimed.len(), scene.passed()), (2, 2_000));
    for task in claimed {
        assert_eq!(task.lease_expires_at, START.plus(Millis::from_secs(62)));
        scene.service.complete(&task.task.id, &task.token, None).await.unwrap();
    }
    // The one of another key is there for whoever comes next.
    assert!(scene.claim(10, 0).await[0].task.flow.as_deref().unwrap().fairness.is_some());
}

#[tokio::test]
async fn tasks_of_other_kinds_and_keys_are_given_back_at_once_without_an_attempt() {
    let scene = Scene::new().await;
    for (kind, key) in [("mail", "a"), ("mail", "b"), ("text", "a"), ("mail", ""), ("mail", "a")] {
        scene.schedule(asked(kind, key)).await;
    }
    let first = scene.claim(10, 0).await;
    let depth = scene.queue.depth(&work()).await.unwrap();
    assert_eq!((first.len(), scene.passed()), (2, 0));
    assert_eq!((depth.visible, depth.in_flight), (3, 2));
    let mut counts = vec![];
    for _ in 0..3 {
        let claimed = scene.claim(10, 0).await;
        assert!(claimed.iter().all(|claimed| claimed.task.attempt == 1 && claimed.task.version == 2));
        counts.push(claimed.len());
    }
    assert_eq!((counts, scene.passed()), (vec![1, 1, 1], 0));
}

#[tokio::test]
async fn a_claim_without_same_key_waits_for_tasks_of_any_kind() {
    let scene = Scene::new().await;
    for kind in ["mail", "text"] {
        scene.schedule(asked(kind, "")).await;
    }
    let together = Together { same_key: false, fill: Millis::from_secs(1) };
    let claimed = scene.clock.drive(scene.gathered(10, together)).await;
    let mut found = kinds(&claimed);
    found.sort_unstable();
    assert_eq!((found, scene.passed()), (vec!["mail", "text"], 1_000));
}

#[tokio::test]
async fn the_deadline_and_the_start_timeout_of_a_task_count_while_its_batch_fills() {
    let scene = Scene::new().await;
    let life = LifeTimeout { after: Millis::from_secs(1), is_error: true };
    let start = AttemptTimeout { after: Millis::from_secs(1), on_timeout: OnTimeout::Terminal };
    let close = AttemptTimeout { after: Millis::from_secs(5), on_timeout: OnTimeout::Retry };
    for timeouts in [
        Timeouts { schedule_to_close: Some(life), ..Timeouts::default() },
        Timeouts { schedule_to_start: Some(start), ..Timeouts::default() },
        Timeouts { start_to_close: Some(close), ..Timeouts::default() },
    ] {
        scene.schedule(ScheduleRequest { timeouts, ..asked("mail", "") }).await;
    }
    let claimed = scene.claim(10, 2_000).await;
    // The time limit of an attempt begins after the wait.
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].deadline_at, Some(START.plus(Millis::from_secs(7))));
}

#[tokio::test]
async fn a_queue_that_is_paused_while_a_batch_fills_hands_nothing_out_and_has_the_tasks_again_later() {
    let scene = Scene::new().await;
    scene.schedule(asked("mail", "")).await;
    let pause = async {
        scene.clock.sleep_until(START.plus(Millis::from_secs(1))).await;
        scene.service.pause_queue(&work(), true).await.unwrap();
    };
    let together = Together { same_key: true, fill: Millis::from_secs(8) };
    let gathered = Box::pin(scene.gathered(10, together));
    let (claimed, ()) = scene.clock.drive(join(gathered, pause)).await;
    assert!(claimed.is_empty());
    assert_eq!(scene.queue.depth(&work()).await.unwrap().visible, 1);
    scene.service.pause_queue(&work(), false).await.unwrap();
    scene.clock.advance(Millis::from_secs(6));
    assert_eq!(scene.claim(10, 0).await.len(), 1);
}

#[tokio::test]
async fn a_task_that_the_worker_cannot_do_determines_no_key() {
    let scene = Scene::new().await;
    let requires = vec![Capability::parse("gpu").unwrap()];
    let flow = FlowRequest { requires, ..FlowRequest::default() };
    scene.schedule(ScheduleRequest { flow, ..asked("render", "") }).await;
    scene.schedule(asked("mail", "")).await;
    assert_eq!(kinds(&scene.claim(10, 1_000).await), ["mail"]);
    assert_eq!(scene.passed(), 1_000);
}

#[tokio::test]
async fn messages_that_are_given_back_often_are_replaced_before_they_become_dead_letters() {
    let scene = Scene::new().await;
    scene.schedule(asked("mail", "a")).await;
    scene.schedule(asked("mail", "b")).await;
    for _ in 0..60 {
        let claimed = scene.claim(10, 0).await;
        let depth = scene.queue.depth(&work()).await.unwrap();
        assert_eq!((claimed.len(), depth.visible, depth.in_flight), (1, 1, 1));
        for task in claimed {
            scene.service.release(&task.task.id, &task.token).await.unwrap();
        }
    }
    let messages = scene.queue.receive(&work(), 10, Millis::from_secs(1), Millis::ZERO).await.unwrap();
    assert_eq!(messages.len(), 2);
    assert!(messages.iter().all(|message| message.receive_count <= RECEIVES_MAX + 2), "{messages:?}");
}
