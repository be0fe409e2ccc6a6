//! What a tick that dies at the hint of a later start, or of a retry after a timeout, leaves behind.

use tickover_core::duration::Millis;
use tickover_core::execution;
use tickover_core::id::{TaskId, TaskKind, WorkflowName};
use tickover_core::queue::QueueView;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::task::{Command, Status};
use tickover_core::timeout::{AttemptTimeout, OnTimeout, Timeouts};

use crate::claim::ClaimRequest;
use crate::drive::Known;
use crate::executions::StartRequest;
use crate::executions::tests::mortal::NEVER;
use crate::executions::tests::scene::{Scene, id, queue};
use crate::tasks::schedule::{Asked, ScheduleRequest};

/// The tick looks at it so many seconds after it was asked for, and its start is after an hour.
const LOOKED_AT: u64 = 3_500;

fn task() -> TaskId {
    TaskId::parse("t").unwrap()
}

/// A task that starts after an hour.
fn request() -> ScheduleRequest {
    ScheduleRequest {
        asked: Asked::default(),
        id: Some(task()),
        idempotency_key: None,
        queue: queue(),
        kind: TaskKind::parse("mail").unwrap(),
        input: None,
        labels: None,
        retry: RetryPolicy::none(),
        flow: tickover_core::flow::FlowRequest::default(),
        timeouts: Timeouts::default(),
        start: Start::After(Millis::from_secs(3_600)),
        trace: None,
    }
}

/// A task that starts later, at which a tick has looked that died after so many writes.
async fn later_task(writes: u64) -> Scene {
    let scene = Scene::new();
    scene.service.schedule(request()).await.unwrap();
    scene.advance(LOOKED_AT);
    let known = Known::Record(Box::new(scene.store.task(&task()).await.unwrap().unwrap()));
    scene.crash_after(writes);
    scene.service.drive(&task(), known, &Command::Due(QueueView::default())).await.unwrap_err();
    scene.crash_after(NEVER);
    scene
}

#[tokio::test]
async fn a_retry_whose_tick_dies_before_or_after_its_write_starts_at_its_time() {
    for writes in [0, 1] {
        let scene = Scene::new();
        let timeout = AttemptTimeout { after: Millis::from_secs(30), on_timeout: OnTimeout::Retry };
        let request = ScheduleRequest {
            retry: RetryPolicy::fixed(1, Millis::ZERO),
            timeouts: Timeouts { heartbeat: Some(timeout), ..Timeouts::default() },
            start: Start::After(Millis::ZERO),
            ..request()
        };
        scene.service.schedule(request).await.unwrap();
        assert_eq!(claims(&scene).await, 1);
        scene.advance(31);
        // Its message is hidden until the lease ends.
        let known = Known::Record(Box::new(scene.store.task(&task()).await.unwrap().unwrap()));
        scene.crash_after(writes);
        scene.service.drive(&task(), known, &Command::Due(QueueView::default())).await.unwrap_err();
        scene.crash_after(NEVER);
        assert_eq!((writes, claims(&scene).await), (writes, 1));
    }
}

async fn claims(scene: &Scene) -> usize {
    let request = ClaimRequest {
        worker: None,
        max: 1,
        lease: Millis::from_secs(60),
        wait: Millis::ZERO,
        provides: vec![],
    };
    scene.service.claim(&queue(), &request).await.unwrap().len()
}

#[tokio::test]
async fn a_task_whose_tick_dies_before_or_after_its_write_starts_at_its_time() {
    for writes in [0, 1] {
        let scene = later_task(writes).await;
        scene.advance(3_600 - LOOKED_AT);
        assert_eq!((writes, claims(&scene).await), (writes, 1));
    }
}

#[tokio::test]
async fn a_hint_of_a_version_that_was_never_written_starts_nothing_of_another() {
    let scene = later_task(0).await;
    // Its own queue would forget the hint at a cancel.
    let found = scene.store.task(&task()).await.unwrap().unwrap();
    let cancelled = scene.service.decide(Some(&found), &Command::Cancel { force: false }, scene.now());
    scene.store.commit(&cancelled.writes).await.unwrap();
    scene.advance(3_600 - LOOKED_AT);
    assert_eq!(claims(&scene).await, 0);
    assert_eq!(scene.service.describe(&task()).await.unwrap().task.status(), Status::Cancelled);
}

#[tokio::test]
async fn an_execution_whose_tick_dies_after_its_write_starts_at_its_time() {
    let scene = Scene::new();
    let workflow = WorkflowName::parse("orders").unwrap();
    let delay = Millis::from_secs(3_600);
    let request = StartRequest { id: Some(id("e")), delay, ..StartRequest::new(workflow, queue()) };
    scene.service.start(request).await.unwrap();
    scene.advance(LOOKED_AT);
    let known = Known::Record(Box::new(scene.execution("e").await));
    scene.crash_after(1);
    let command = execution::Command::Due(QueueView::default());
    scene.service.drive(&id("e"), known, &command).await.unwrap_err();
    scene.crash_after(NEVER);
    scene.advance(3_600 - LOOKED_AT);
    assert!(scene.turn().await.is_some());
}
