//! Remote steps and children of an execution that ended before it had recorded them.

use tickover::prelude::*;
use tickover::{Failure, ParentClosePolicy, Registry};
use tickover_core::duration::Millis;
use tickover_core::execution::command::{Cleanup, Close, Ending};
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{Execution, Parent};
use tickover_core::id::{QueueName, StepName, TaskKind, WorkflowName};
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::Timeouts;
use tickover_service::Service;
use tickover_service::executions::{RemoteStep, StartRequest, Work};

use crate::scene::{Count, Scene, clock, execution_id};

fn charge() -> RemoteStep {
    RemoteStep {
        name: StepName::parse("charge").unwrap(),
        kind: TaskKind::parse("charge").unwrap(),
        queue: QueueName::parse("payments").unwrap(),
        input: None,
        retry: RetryPolicy::fixed(100, Millis::from_secs(1)),
        flow: tickover_core::flow::FlowRequest::default(),
        timeouts: Timeouts::default(),
        given: vec![],
        slot: None,
        any_queue: false,
        at_most: None,
    }
}

#[tickover::workflow("buys")]
async fn buys(_ctx: Ctx, (): ()) -> Result<()> {
    Ok(())
}

/// The execution of a turn that has started a remote step and hasn't recorded that yet.
async fn begun(scene: &Scene) -> Execution {
    scene.start(&buys, "buys", &()).await;
    let taken = scene.work("workflows", Millis::from_secs(60)).await.pop();
    let Some(Work::Turn(turn)) = taken else { unreachable!("{taken:?}") };
    scene.service.start_remote(&turn.execution, vec![charge()]).await.all().unwrap();
    turn.execution
}

#[tokio::test]
async fn a_remote_step_of_an_execution_that_was_terminated_meanwhile_is_not_started() {
    let scene = Scene::new();
    let execution = begun(&scene).await;
    scene.service.terminate(&execution.id).await.unwrap();
    assert_eq!(scene.remote_status(&execution, "charge").await, "pending");
    assert!(scene.work("payments", Millis::from_secs(60)).await.is_empty());
    assert_eq!(scene.remote_status(&execution, "charge").await, "cancelled");
}

#[tokio::test]
async fn a_remote_step_of_an_earlier_run_is_not_started_by_its_id_either() {
    let scene = Scene::new();
    let execution = begun(&scene).await;
    scene.service.terminate(&execution.id).await.unwrap();
    scene.service.restart(&execution.id).await.unwrap();
    let id = tickover_service::executions::remote_id(&execution, &charge().name);
    let request = tickover_service::claim::ClaimRequest {
        worker: None,
        max: 1,
        lease: Millis::from_secs(60),
        wait: Millis::ZERO,
        provides: vec![],
    };
    assert!(scene.service.claim_by_id(&id, &request).await.is_err());
    assert_eq!(scene.remote_status(&execution, "charge").await, "cancelled");
}

#[tokio::test]
async fn the_retry_of_a_step_whose_execution_has_ended_is_not_started() {
    let scene = Scene::new();
    let execution = begun(&scene).await;
    let taken = scene.work("payments", Millis::from_secs(60)).await.pop();
    let Some(Work::Task(task)) = taken else { unreachable!("{taken:?}") };
    scene.service.terminate(&execution.id).await.unwrap();
    let error = tickover_core::task::Failure::new("net", "down");
    scene.service.fail(&task.task.id, &task.token, error, true).await.unwrap();
    scene.clock.advance(Millis::from_secs(10));
    assert!(scene.work("payments", Millis::from_secs(60)).await.is_empty());
    assert_eq!(scene.remote_status(&execution, "charge").await, "cancelled");
}

#[tokio::test]
async fn a_remote_step_of_a_live_execution_is_started() {
    let scene = Scene::new();
    let execution = begun(&scene).await;
    let taken = scene.work("payments", Millis::from_secs(60)).await;
    assert_eq!(taken.len(), 1);
    assert_eq!(scene.remote_status(&execution, "charge").await, "running");
}

#[tokio::test]
async fn steps_of_a_lost_turn_are_cancelled_only_if_its_run_is_over() {
    let scene = Scene::new();
    let execution = begun(&scene).await;
    let what = Happened::Remote { name: charge().name };
    let entries = [tickover_core::execution::journal::Entry { at: crate::scene::START, what }];
    scene.service.end_started(&execution, &entries).await.unwrap();
    assert_eq!(scene.remote_status(&execution, "charge").await, "pending");
    scene.service.terminate(&execution.id).await.unwrap();
    scene.service.end_started(&execution, &entries).await.unwrap();
    assert_eq!(scene.remote_status(&execution, "charge").await, "cancelled");
}

tokio::task_local! {
    static SERVICE: Service;
}

/// Cancels its own execution.
#[tickover::step]
async fn end_it_all() -> Result<(), Failure> {
    let service = SERVICE.with(Service::clone);
    service.terminate(&execution_id("ends")).await.map_err(|error| Failure::new("no", error.to_string()))?;
    Ok(())
}

#[tickover::step(queue = "payments")]
async fn pay() -> Result<(), Failure> {
    Ok(())
}

#[tickover::workflow("ends")]
async fn ends(ctx: Ctx, (): ()) -> Result<()> {
    let (one, two) = futures::join!(ctx.step(end_it_all()), ctx.step(pay()));
    one?;
    two?;
    Ok(())
}

#[tokio::test]
async fn a_lost_turn_cancels_the_steps_that_it_has_just_started() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(ends), "workflows");
    scene.start(&ends, "ends", &()).await;
    let ended = SERVICE.scope(scene.service.clone(), Box::pin(scene.finish(&worker, "ends"))).await;
    assert_eq!(ended.outcome().status().as_str(), "cancelled");
    assert_eq!(ended.count(|what| matches!(what, Happened::Remote { .. })), 0);
    // The turn itself cancelled the remote step, before any worker tried to claim it.
    assert_eq!(scene.remote_status(&ended.described.execution, "pay").await, "cancelled");
}

static STOPPED: Count = Count::new();

struct Stops;

impl Drop for Stops {
    fn drop(&mut self) {
        STOPPED.add();
    }
}

#[tickover::step(queue = "payments")]
async fn pay_slowly() -> Result<(), Failure> {
    let _stops = Stops;
    clock().after(Millis::from_secs(3_600)).await;
    Ok(())
}

#[tickover::workflow("slow-payer")]
async fn slow_payer(ctx: Ctx, (): ()) -> Result<()> {
    Ok(ctx.step(pay_slowly()).await?)
}

#[tokio::test]
async fn an_attempt_that_runs_is_stopped_at_its_next_heartbeat_when_its_execution_has_ended() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(slow_payer), "workflows");
    let payer = scene.worker(Registry::new().with_step::<pay_slowly>());
    scene.start(&slow_payer, "slow", &()).await;
    let stopped = scene.with(&payer, async {
        scene
            .until(&worker, async {
                scene.after(Millis::from_secs(5)).await;
                scene.service.terminate(&execution_id("slow")).await.unwrap();
                assert_eq!(STOPPED.get(), 0);
                // A third of the payer's lease of one minute is 20 s: its heartbeat comes before 21 s.
                scene.after(Millis::from_secs(16)).await;
                STOPPED.get()
            })
            .await
    });
    assert_eq!(scene.inside(stopped).await, 1);
}

#[tokio::test]
async fn an_attempt_that_is_not_in_the_journal_is_asked_to_stop_by_its_next_heartbeat() {
    let scene = Scene::new();
    let execution = begun(&scene).await;
    let taken = scene.work("payments", Millis::from_secs(60)).await.pop();
    let Some(Work::Task(task)) = taken else { unreachable!("{taken:?}") };
    let beat = async || scene.service.heartbeat(&task.task.id, &task.token, None).await.unwrap();
    assert!(!beat().await.cancel_requested);
    scene.service.terminate(&execution.id).await.unwrap();
    assert!(beat().await.cancel_requested);
    assert!(
        beat().await.cancel_requested,
        "the first request is enough, and each heartbeat gets this answer"
    );
    let stopped = tickover_core::task::Failure::new("stopped", "as asked");
    scene.service.fail(&task.task.id, &task.token, stopped, true).await.unwrap();
    assert_eq!(scene.remote_status(&execution, "charge").await, "cancelled");
}

#[tickover::workflow("minor", queue = "minors")]
async fn minor(_ctx: Ctx, (): ()) -> Result<()> {
    Ok(())
}

#[tokio::test]
async fn a_child_started_after_its_parents_end_runs_only_if_its_policy_allows_it() {
    for (policy, expected) in [
        (ParentClosePolicy::Abandon, "completed"),
        (ParentClosePolicy::RequestCancel, "cancelled"),
        (ParentClosePolicy::Terminate, "cancelled"),
    ] {
        let scene = Scene::new();
        scene.start(&buys, "buys", &()).await;
        let parent = scene.service.execution(&execution_id("buys")).await.unwrap().unwrap().execution;
        scene.service.terminate(&parent.id).await.unwrap();
        let mut request =
            StartRequest::new(WorkflowName::parse("minor").unwrap(), QueueName::parse("minors").unwrap());
        request.id = Some(execution_id("minor"));
        request.input = Json::parse("null");
        request.parent = Some(Parent { on_close: policy, ..Parent::of(&parent) });
        scene.service.start(request).await.unwrap();
        let worker = scene.worker_of(Registry::new().with(minor), "minors");
        scene.finish(&worker, "minor").await;
        assert_eq!(scene.status("minor").await.as_str(), expected);
    }
}

/// A child that ends with its parent, and the parent's turn that has started it and hasn't recorded that yet.
async fn begun_child(scene: &Scene) -> (Execution, Vec<Entry>) {
    scene.start(&buys, "buys", &()).await;
    let taken = scene.work("workflows", Millis::from_secs(60)).await.pop();
    let Some(Work::Turn(turn)) = taken else { unreachable!("{taken:?}") };
    let (child, policy) = (execution_id("minor"), ParentClosePolicy::Terminate);
    let mut request =
        StartRequest::new(WorkflowName::parse("minor").unwrap(), QueueName::parse("minors").unwrap());
    request.id = Some(child.clone());
    request.parent = Some(Parent { on_close: policy, ..Parent::of(&turn.execution) });
    scene.service.start(request).await.unwrap();
    let what = Happened::Child {
        name: StepName::parse("minor").unwrap(),
        execution: child,
        policy,
        left: false,
        was_left: false,
    };
    (turn.execution, vec![Entry { at: crate::scene::START, what }])
}

#[tokio::test]
async fn a_child_of_a_lost_turn_is_ended_with_its_run_and_stays_if_the_run_continued_as_new() {
    let scene = Scene::new();
    let (lost, entries) = begun_child(&scene).await;
    scene.service.terminate(&lost.id).await.unwrap();
    scene.service.restart(&lost.id).await.unwrap();
    scene.service.end_started(&lost, &entries).await.unwrap();
    assert_eq!(scene.status("minor").await.as_str(), "cancelled");

    let scene = Scene::new();
    let (lost, entries) = begun_child(&scene).await;
    scene.clock.advance(Millis::from_secs(61));
    let taken = scene.work("workflows", Millis::from_secs(60)).await.pop();
    let Some(Work::Turn(turn)) = taken else { unreachable!("{taken:?}") };
    let ending = Ending::ContinueAsNew { input: None, carried: vec![] };
    let close = Close {
        lease: turn.lease,
        entries: entries.clone(),
        ending,
        cleanup: Cleanup::default(),
        values: None,
    };
    scene.service.close_turn(&turn.execution, close).await.unwrap();
    scene.service.end_started(&lost, &entries).await.unwrap();
    assert_eq!(scene.status("minor").await.as_str(), "pending");
}
