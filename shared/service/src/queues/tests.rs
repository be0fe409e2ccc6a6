//! Queues that are found by their names.

use std::sync::Arc;

use async_trait::async_trait;
use tickover_core::flow::Priority;
use tickover_core::id::{TaskKind, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::timeout::Timeouts;

use super::*;
use crate::claim::ClaimRequest;
use crate::executions::StartRequest;
use crate::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
use crate::ports::{ClassDepth, Outgoing, Queue, QueueError, QueueTraits, Received};
use crate::service::Ports;
use crate::system::SystemIds;
use crate::tasks::schedule::ScheduleRequest;

/// Knows every name. Only those of the inner queue exist, and nobody answers which those are.
struct ByName(MemoryQueue);

#[async_trait]
impl Queue for ByName {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        self.0.send(queue, messages).await
    }

    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        self.0.receive(queue, max, visibility, wait).await
    }

    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError> {
        self.0.delete(queue, receipt).await
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError> {
        self.0.change_visibility(queue, receipt, visibility).await
    }

    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError> {
        self.0.depth(queue).await
    }

    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError> {
        self.0.open(queue).await
    }

    fn class_of(&self, _receipt: &str) -> Priority {
        Priority::Normal
    }

    fn traits(&self) -> QueueTraits {
        QueueTraits { finds_by_name: true, ..QueueTraits::default() }
    }

    fn knows(&self, queue: &QueueName) -> bool {
        !queue.is_reserved() || self.0.knows(queue)
    }

    fn names(&self) -> Vec<QueueName> {
        vec![QueueName::timers()]
    }

    async fn class_depth(&self, queue: &QueueName, class: Priority) -> Result<ClassDepth, QueueError> {
        self.0.class_depth(queue, class).await
    }

    async fn discover(&self) -> Result<Vec<QueueName>, QueueError> {
        Err(QueueError::Throttled)
    }
}

fn name(text: &str) -> QueueName {
    QueueName::parse(text).unwrap()
}

/// Two processes with one table and the queues `emails` and `reports`.
fn processes() -> [Service; 2] {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_767_225_600_000)));
    let queues = Queues::Fixed(vec![QueueName::timers(), name("emails"), name("reports")]);
    let queue = Arc::new(ByName(MemoryQueue::new(clock.clone(), queues)));
    let store = Arc::new(MemoryStore::default());
    [(), ()].map(|()| {
        let ids = Arc::new(SystemIds);
        let ports = Ports { store: store.clone(), queue: queue.clone(), clock: clock.clone(), ids };
        Service::new(ports, Limits::default())
    })
}

fn request(queue: &QueueName) -> ScheduleRequest {
    ScheduleRequest {
        id: None,
        idempotency_key: None,
        queue: queue.clone(),
        kind: TaskKind::parse("send").unwrap(),
        input: None,
        labels: None,
        retry: RetryPolicy::none(),
        flow: tickover_core::flow::FlowRequest::default(),
        timeouts: Timeouts::default(),
        start: Start::After(Millis::ZERO),
        trace: None,
        asked: crate::tasks::schedule::Asked::default(),
    }
}

fn is_unknown<T: std::fmt::Debug>(answer: &Result<T, ServiceError>) {
    let is_it =
        matches!(answer, Err(ServiceError::Rejected(Reject::UnknownQueue { queue })) if queue == "nowhere");
    assert!(is_it, "{answer:?}");
}

#[tokio::test]
async fn a_queue_that_does_not_exist_is_unknown_and_nothing_is_written_for_it() {
    let [service, _] = processes();
    let nowhere = name("nowhere");
    is_unknown(&service.schedule(request(&nowhere)).await);
    is_unknown(&service.pause_queue(&nowhere, true).await);
    is_unknown(&service.describe_queue(&nowhere).await);
    let claim = ClaimRequest {
        worker: None,
        max: 1,
        lease: Millis::from_secs(60),
        wait: Millis::ZERO,
        provides: vec![],
    };
    is_unknown(&service.claim(&nowhere, &claim).await);
    assert!(service.remembered_queues().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_list_of_queues_that_fails_does_not_say_that_there_is_none() {
    let [service, _] = processes();
    let workflow = WorkflowName::parse("order").unwrap();
    let start = StartRequest { any_queue: true, ..StartRequest::new(workflow, name("workflows")) };
    let failed = service.start(start).await;
    assert!(matches!(&failed, Err(ServiceError::Throttled)), "{failed:?}");
}

#[tokio::test]
async fn a_queue_is_listed_by_every_process_from_its_first_task_on() {
    let [one, other] = processes();
    one.schedule(request(&name("emails"))).await.unwrap();
    for service in [one, other] {
        let listed = service.list_queues().await.unwrap();
        assert_eq!(listed.into_iter().map(|info| info.name).collect::<Vec<_>>(), [name("emails")]);
    }
}
