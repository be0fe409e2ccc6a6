//! The time that a step has for its work, from its first start to its timeout.

use tickover::prelude::*;
use tickover::{Failure, Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::id::StepName;

use crate::scene::{Count, START, Scene, clock, execution_id, settings, shown};

static STARTED: Count = Count::new();

/// Takes too long at its first two starts, and almost too long at the third one.
#[tickover::step(timeout = "30s")]
async fn slow_twice() -> Result<(), Failure> {
    let seconds = if STARTED.add() < 2 { 100 } else { 29 };
    clock().after(Millis::from_secs(seconds)).await;
    Ok(())
}

#[tickover::workflow("slow-twice")]
async fn one_step(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step(slow_twice()).await?;
    Ok(())
}

#[tokio::test]
async fn an_operators_retry_gives_a_timed_out_step_its_whole_timeout_again() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(one_step));
    scene.start(&one_step, "slow-twice", &()).await;
    let ended = scene.inside(scene.finish(&worker, "slow-twice")).await;
    assert_eq!((ended.code(), ended.took()), ("timed_out", 30_000));
    for (status, took) in [("failed", 30_000), ("completed", 29_000)] {
        // Long after the first window.
        scene.pass(&worker, Millis::from_secs(3_600)).await;
        let retried_at = scene.now().since(START).as_u64();
        let step = StepName::parse("slow_twice").unwrap();
        scene.service.retry_step(&execution_id("slow-twice"), step).await.unwrap();
        let ended = scene.inside(scene.finish(&worker, "slow-twice")).await;
        assert_eq!((ended.outcome().status().as_str(), ended.took() - retried_at), (status, took));
    }
    assert_eq!(STARTED.get(), 3);
}

#[tickover::workflow("bounded-child", timeout = "1h")]
async fn bounded_child(ctx: Ctx, (): ()) -> Result<()> {
    ctx.sleep("long", "2h").await?;
    Ok(())
}

#[tickover::workflow("parent-of-bounded")]
async fn parent(ctx: Ctx, (): ()) -> Result<String> {
    Ok(shown(ctx.child(&bounded_child, ()).id("bounded").await))
}

#[tokio::test]
async fn a_parent_gets_the_time_limit_that_ended_its_child() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(parent).with(bounded_child));
    scene.start(&parent, "parent", &()).await;
    let ended = scene.inside(scene.finish(&worker, "parent")).await;
    assert!(ended.output::<String>().ends_with("timed out: execution"), "{}", ended.output::<String>());
}

/// Runs for so many seconds.
#[tickover::step]
async fn runs(seconds: u64) -> Result<(), Failure> {
    clock().after(Millis::from_secs(seconds)).await;
    Ok(())
}

#[tickover::workflow("renews")]
async fn renews(ctx: Ctx, is_remote: bool) -> Result<()> {
    let step = runs(30);
    ctx.step(if is_remote { step.remote() } else { step }).await?;
    Ok(())
}

#[tokio::test]
async fn a_worker_extends_its_leases_at_the_interval_of_its_settings() {
    for (interval, extended_at) in [(None, 20), (Some(7), 21), (Some(0), 0)] {
        for is_remote in [false, true] {
            let scene = Scene::new();
            let heartbeat = interval.map(Millis::from_secs);
            let settings = WorkerSettings { lease: Millis::from_secs(60), heartbeat, ..settings() };
            let registry = Registry::new().with(renews).with_step::<runs>();
            let worker = Worker::new(scene.service.clone(), registry, settings).unwrap();
            scene.start(&renews, "renews", &is_remote).await;
            scene.inside(scene.pass(&worker, Millis::from_secs(25))).await;
            let execution =
                scene.service.execution(&execution_id("renews")).await.unwrap().unwrap().execution;
            let expires_at = if is_remote {
                let id =
                    tickover_service::executions::remote_id(&execution, &StepName::parse("runs").unwrap());
                scene.service.describe(&id).await.unwrap().task.running().unwrap().lease_expires_at
            } else {
                execution.turn().unwrap().lease_expires_at
            };
            assert_eq!(
                expires_at,
                START.plus(Millis::from_secs(extended_at + 60)),
                "{interval:?} {is_remote}"
            );
        }
    }
}
