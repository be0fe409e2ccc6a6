//! A worker freezes during its work and thaws after another worker has taken over: it can write nothing.

use std::future::pending;
use std::pin::pin;

use futures::future::{Either, select};
use tickover::prelude::*;
use tickover::{Failure, Registry, Worker};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_service::ports::Clock as _;

use crate::scene::{Count, Scene, clock};

/// Runs a worker for this span and then freezes it: it continues only when it is given more time.
pub(crate) async fn run_for(scene: &Scene, worker: &mut (impl Future<Output = ()> + Unpin), span: Millis) {
    let until = scene.after(span);
    let both = async {
        match select(worker, pin!(until)).await {
            Either::Left(_) => unreachable!("a worker runs for ever"),
            Either::Right(_) => {}
        }
    };
    scene.inside(scene.clock.drive(both)).await;
}

/// The version of the record. Every write increases it.
pub(crate) async fn version(scene: &Scene, id: &str) -> u64 {
    let id = crate::scene::execution_id(id);
    scene.service.execution(&id).await.unwrap().unwrap().execution.version
}

static RUNS: Count = Count::new();

#[tickover::step]
async fn who() -> Result<String, Failure> {
    let mine = RUNS.add();
    clock().after(Millis::from_secs(10)).await;
    Ok(format!("run {mine}"))
}

#[tickover::workflow("frozen-step")]
async fn frozen_step(ctx: Ctx, (): ()) -> Result<String> {
    let who = ctx.step(who()).await?;
    ctx.sleep("s", "1h").await?;
    Ok(who)
}

#[tokio::test]
async fn an_inline_steps_result_is_refused_when_another_worker_has_taken_over() {
    let scene = Scene::new();
    let frozen = scene.worker(Registry::new().with(frozen_step));
    let other = scene.worker(Registry::new().with(frozen_step));
    scene.start(&frozen_step, "frozen", &()).await;
    let mut frozen = pin!(frozen.run(pending()));
    run_for(&scene, &mut frozen, Millis::from_secs(5)).await;
    // The worker is frozen during the step. Its lease expires, and another worker runs the step as well.
    scene.inside(scene.pass(&other, Millis::from_secs(600))).await;
    assert_eq!(RUNS.get(), 2);
    let before = version(&scene, "frozen").await;
    run_for(&scene, &mut frozen, Millis::from_secs(60)).await;
    assert_eq!(version(&scene, "frozen").await, before);
    let ended = scene.inside(scene.finish(&other, "frozen")).await;
    assert_eq!(ended.output::<String>(), "run 1");
}

static LARGE: Count = Count::new();

#[tickover::step]
async fn large(index: usize) -> Result<String, Failure> {
    let mine = LARGE.add();
    if index == 9 {
        clock().after(Millis::from_secs(10)).await;
    }
    Ok(format!("{mine}:{}", "x".repeat(150)))
}

#[tickover::workflow("frozen-segment")]
async fn frozen_segment(ctx: Ctx, (): ()) -> Result<String> {
    // Ten results of 150 bytes don't fit into the record, so they are sealed into segments.
    let mut last = String::new();
    for index in 0..10 {
        last = ctx.step(large(index).named(format!("large[{index}]"))).await?;
    }
    ctx.sleep("s", "1h").await?;
    Ok(last)
}

#[tokio::test]
async fn segments_of_a_frozen_worker_are_not_part_of_the_journal() {
    let scene = Scene::new();
    let frozen = scene.worker(Registry::new().with(frozen_segment));
    let other = scene.worker(Registry::new().with(frozen_segment));
    scene.start(&frozen_segment, "segment", &()).await;
    let mut frozen = pin!(frozen.run(pending()));
    run_for(&scene, &mut frozen, Millis::from_secs(5)).await;
    scene.inside(scene.pass(&other, Millis::from_secs(600))).await;
    let before = version(&scene, "segment").await;
    run_for(&scene, &mut frozen, Millis::from_secs(60)).await;
    assert_eq!(version(&scene, "segment").await, before);
    let ended = scene.inside(scene.finish(&other, "segment")).await;
    assert!(ended.described.execution.sealed.is_some());
    assert!(ended.output::<String>().starts_with("10:"));
    let results =
        |what: &Happened| matches!(what, Happened::Step { outcome: StepOutcome::Completed { .. }, .. });
    assert_eq!(ended.count(results), 10);
}

static CLOSES: Count = Count::new();

#[tickover::step]
async fn last() -> Result<u32, Failure> {
    let mine = CLOSES.add();
    clock().after(Millis::from_secs(10)).await;
    Ok(mine)
}

#[tickover::workflow("frozen-close")]
async fn frozen_close(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(last()).await?)
}

#[tokio::test]
async fn a_frozen_workers_close_is_refused() {
    let scene = Scene::new();
    let frozen = scene.worker(Registry::new().with(frozen_close));
    let other = scene.worker(Registry::new().with(frozen_close));
    scene.start(&frozen_close, "close", &()).await;
    let mut frozen = pin!(frozen.run(pending()));
    run_for(&scene, &mut frozen, Millis::from_secs(5)).await;
    // The other worker is running the step when the first one thaws.
    let mut other = pin!(Worker::run(&other, pending()));
    run_for(&scene, &mut other, Millis::from_secs(60)).await;
    assert_eq!(CLOSES.get(), 2);
    let before = version(&scene, "close").await;
    run_for(&scene, &mut frozen, Millis::new(1)).await;
    assert_eq!(version(&scene, "close").await, before);
    assert_eq!(scene.status("close").await.as_str(), "running");
    run_for(&scene, &mut other, Millis::from_secs(60)).await;
    let id = crate::scene::execution_id("close");
    let described = scene.service.execution(&id).await.unwrap().unwrap();
    assert_eq!(described.output.unwrap().as_str(), "1");
}

#[tickover::workflow("long-step")]
async fn long_step(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(long()).await?)
}

static LONG: Count = Count::new();

#[tickover::step]
async fn long() -> Result<u32, Failure> {
    clock().after(Millis::from_secs(1_000)).await;
    Ok(LONG.add())
}

#[tokio::test]
async fn heartbeats_extend_the_lease_for_as_long_as_the_turn_lasts() {
    let scene = Scene::new();
    let one = scene.worker(Registry::new().with(long_step));
    let two = scene.worker(Registry::new().with(long_step));
    scene.start(&long_step, "long", &()).await;
    let ended = scene.inside(scene.with(&two, scene.finish(&one, "long"))).await;
    assert_eq!(ended.output::<u32>(), 0);
    assert_eq!(ended.took(), 1_000_000);
}

static CUT: Count = Count::new();

#[tickover::step]
async fn cut_off() -> Result<u32, Failure> {
    let mine = CUT.add();
    clock().after(Millis::from_secs(100)).await;
    Ok(mine)
}

#[tickover::workflow("shutdown")]
async fn shutdown(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(cut_off()).await?)
}

#[tokio::test]
async fn a_worker_that_is_asked_to_stop_releases_work_that_it_cannot_finish() {
    let scene = Scene::new();
    let first = scene.worker(Registry::new().with(shutdown));
    scene.start(&shutdown, "shutdown", &()).await;
    // After 10 s the worker is asked to stop. It works for another 20 s.
    let stopped = scene.inside(scene.clock.drive(first.run(scene.after(Millis::from_secs(10)))));
    stopped.await;
    assert_eq!(scene.status("shutdown").await.as_str(), "pending");
    let second = scene.worker(Registry::new().with(shutdown));
    let ended = scene.inside(scene.finish(&second, "shutdown")).await;
    assert_eq!(ended.output::<u32>(), 1);
    // At once, not when the lease expires.
    assert_eq!(ended.took(), 130_000);
}

#[tickover::workflow("ten-seconds")]
async fn ten_seconds(ctx: Ctx, (): ()) -> Result<()> {
    let nap = || async {
        clock().after(Millis::from_secs(10)).await;
        Ok::<_, Failure>(())
    };
    Ok(ctx.step(step("nap", nap)).await?)
}

#[tokio::test]
async fn a_worker_that_is_asked_to_stop_finishes_the_work_that_it_can() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(ten_seconds));
    scene.start(&ten_seconds, "finished", &()).await;
    scene.inside(scene.clock.drive(worker.run(scene.after(Millis::from_secs(5))))).await;
    assert_eq!(scene.status("finished").await.as_str(), "completed");
    assert_eq!(scene.clock.now(), crate::scene::START.plus(Millis::from_secs(10)));
}
