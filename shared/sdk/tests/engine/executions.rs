//! Other executions: children, and executions that another caller started.

use tickover::prelude::*;
use tickover::{Failure, ParentClosePolicy, Registry};
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::{FlowKey, QueueName, WorkflowName};
use tickover_core::payload::Json;
use tickover_service::executions::StartRequest;

use crate::scene::{Scene, clock, execution_id};

#[tickover::step]
async fn slow(seconds: u64) -> Result<u64, Failure> {
    clock().after(Millis::from_secs(seconds)).await;
    Ok(seconds)
}

#[tickover::workflow("nap")]
async fn nap(ctx: Ctx, seconds: u64) -> Result<u64> {
    if seconds == 13 {
        return Err(Error::new("unlucky", "13"));
    }
    ctx.sleep("nap", tickover::Millis::from_secs(seconds)).await?;
    Ok(seconds)
}

#[tickover::workflow("family")]
async fn family(ctx: Ctx, (): ()) -> Result<(u64, u64, String)> {
    let (one, two) = futures::join!(ctx.child(&nap, 3_600).id("nap-1"), ctx.child(&nap, 60).id("nap-2"));
    let unlucky = ctx.child(&nap, 13).id("nap-3").await.unwrap_err();
    Ok((one?, two?, unlucky.failure().code))
}

#[tokio::test]
async fn children_run_independently_and_notify_their_parent() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((family, nap)));
    scene.start(&family, "family", &()).await;
    let ended = scene.finish(&worker, "family").await;
    assert_eq!(ended.output::<(u64, u64, String)>(), (3_600, 60, "unlucky".to_owned()));
    // The child's end notified the parent; no probe found it.
    assert!((3_600_000..3_605_000).contains(&ended.took()), "{}", ended.took());
}

#[tokio::test]
async fn children_stand_in_their_queue_as_their_parent_does() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((family, nap)));
    let lane = tickover_service::flow::lane(Priority::High, FlowKey::parse("customer-7").ok().as_ref());
    let request = StartRequest::new(
        WorkflowName::parse("family").unwrap(),
        QueueName::parse(family().options().queue).unwrap(),
    );
    let request = StartRequest { id: Some(execution_id("family")), lane, ..request };
    scene.service.start(StartRequest { input: Json::parse("null"), ..request }).await.unwrap();
    scene.finish(&worker, "family").await;
    for id in ["family", "nap-1", "nap-2", "nap-3"] {
        let found = scene.service.execution(&execution_id(id)).await.unwrap().unwrap();
        assert_eq!(found.execution.lane, lane, "{id}");
    }
}

#[tickover::workflow("starter")]
async fn starter(ctx: Ctx, (): ()) -> Result<(u64, String)> {
    let forgotten = ctx.child(&nap, 7_200).id("forgotten").start().await?;
    let waited_for = ctx.child(&nap, 60).id("waited-for").start().await?;
    let refused = ctx.child(&nap, 1).id("taken").start().await.unwrap_err();
    ctx.sleep("s", "1h").await?;
    assert_eq!(forgotten.id(), "forgotten");
    Ok((waited_for.result().await?, refused.failure().code))
}

#[tokio::test]
async fn a_child_is_started_without_being_waited_for() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((starter, nap)));
    scene.start(&nap, "taken", &9).await;
    scene.start(&starter, "starter", &()).await;
    let ended = scene.finish(&worker, "starter").await;
    assert_eq!(ended.output::<(u64, String)>(), (60, "id_conflict".to_owned()));
    assert!((3_600_000..3_605_000).contains(&ended.took()), "{}", ended.took());
    assert_eq!(scene.finish(&worker, "forgotten").await.output::<u64>(), 7_200);
}

#[tickover::workflow("conflict")]
async fn conflict(ctx: Ctx, (): ()) -> Result<String> {
    Ok(ctx.child(&nap, 1).id("taken").await.unwrap_err().failure().code)
}

#[tokio::test]
async fn a_child_whose_id_belongs_to_another_execution_is_a_conflict() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((conflict, nap)));
    scene.start(&nap, "taken", &9).await;
    scene.start(&conflict, "conflict", &()).await;
    assert_eq!(scene.finish(&worker, "conflict").await.output::<String>(), "id_conflict");
}

#[tickover::workflow("parent", run_timeout = "10m")]
async fn parent(ctx: Ctx, (): ()) -> Result<()> {
    let (one, _, _) = futures::join!(
        ctx.child(&nap, 7_200).id("stays"),
        ctx.child(&nap, 7_200).id("asked").policy(ParentClosePolicy::RequestCancel),
        ctx.child(&nap, 7_200).id("ended").policy(ParentClosePolicy::Terminate),
    );
    one?;
    Ok(())
}

#[tokio::test]
async fn children_are_treated_by_their_close_policy_when_the_parent_closes() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((parent, nap)));
    scene.start(&parent, "parent", &()).await;
    assert_eq!(scene.finish(&worker, "parent").await.outcome().status().as_str(), "timed_out");
    scene.pass(&worker, Millis::from_secs(60)).await;
    assert_eq!(scene.status("stays").await.as_str(), "waiting");
    assert_eq!(scene.status("asked").await.as_str(), "cancelled");
    assert_eq!(scene.status("ended").await.as_str(), "cancelled");
    assert_eq!(scene.finish(&worker, "stays").await.output::<u64>(), 7_200);
}

#[tickover::workflow("onlooker")]
async fn onlooker(ctx: Ctx, (): ()) -> Result<u64> {
    let beside = ctx.step(slow(30));
    let (seen, beside) = futures::join!(ctx.wait_for_execution::<u64>("somebody"), beside);
    Ok(seen? + beside?)
}

#[tokio::test]
async fn another_executions_result_can_be_waited_for() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((onlooker, nap)));
    scene.start(&nap, "somebody", &1_000).await;
    scene.start(&onlooker, "onlooker", &()).await;
    let ended = scene.inside(scene.finish(&worker, "onlooker")).await;
    assert_eq!(ended.output::<u64>(), 1_030);
    assert!(ended.took() < 1_300_000, "{}", ended.took());
    let somebody = scene.service.execution(&execution_id("somebody")).await.unwrap().unwrap();
    assert!(somebody.execution.closed().is_some());
}

/// Starts a child in its first run.
#[tickover::workflow("renewed")]
async fn renewed(ctx: Ctx, run: u32) -> Result<u32> {
    if run == 1 {
        ctx.child(&nap, 7_200).id("outlives").policy(ParentClosePolicy::Terminate).start().await?;
        return ctx.continue_as_new(2).await;
    }
    ctx.sleep("s", "3h").await?;
    Ok(run)
}

#[tokio::test]
async fn a_child_goes_on_though_its_parent_continues_as_new() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((renewed, nap)));
    scene.start(&renewed, "renewed", &1).await;
    scene.pass(&worker, Millis::from_secs(600)).await;
    let second = scene.service.execution(&execution_id("renewed")).await.unwrap().unwrap().execution;
    assert_eq!((second.run, second.status().as_str()), (2, "waiting"));
    assert_eq!(scene.status("outlives").await.as_str(), "waiting");
    assert_eq!(scene.finish(&worker, "outlives").await.output::<u64>(), 7_200);
    assert_eq!(scene.finish(&worker, "renewed").await.output::<u32>(), 2);
}
