//! Steps of a paused execution: none starts, and their own time starts afresh at the resume.

use tickover::prelude::*;
use tickover::{Failure, Registry};
use tickover_core::duration::Millis;
use tickover_core::execution::{DeadlineKind, ExecutionOutcome, ExecutionStatus};

use crate::scene::{Count, Scene, execution_id};

static IN_PLACE: Count = Count::new();

#[tickover::step(timeout = "10m", retry = "fixed(1, 5m)")]
async fn flaky() -> Result<u32, Failure> {
    if IN_PLACE.add() == 0 { Err(Failure::new("busy", "")) } else { Ok(1) }
}

#[tickover::workflow("in-place")]
async fn in_place(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(flaky()).await?)
}

/// Pauses an execution after a minute, and resumes it after a day.
async fn pause_for_a_day(scene: &Scene, worker: &tickover::Worker, id: &str) {
    pause_for(scene, worker, id, Millis::from_days(1)).await;
}

async fn pause_for(scene: &Scene, worker: &tickover::Worker, id: &str, span: Millis) {
    let id = execution_id(id);
    scene.pass(worker, Millis::from_secs(60)).await;
    scene.service.pause(&id).await.unwrap();
    scene.pass(worker, span).await;
    scene.service.resume(&id).await.unwrap();
}

#[tokio::test]
async fn a_step_in_place_whose_retry_waited_during_a_pause_has_its_timeout_afresh() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(in_place));
    scene.start(&in_place, "e", &()).await;
    pause_for_a_day(&scene, &worker, "e").await;
    assert_eq!(scene.finish(&worker, "e").await.output::<u32>(), 1);
    assert_eq!(IN_PLACE.get(), 2);
}

static REMOTE: Count = Count::new();

#[tickover::step("work", queue = "works", timeout = "10m", retry = "fixed(1, 5m)")]
async fn work() -> Result<u32, Failure> {
    if REMOTE.add() == 0 { Err(Failure::new("busy", "")) } else { Ok(1) }
}

#[tickover::workflow("elsewhere")]
async fn elsewhere(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(work()).await?)
}

#[tokio::test]
async fn a_remote_steps_retry_waits_for_the_end_of_a_pause_and_has_its_deadline_afresh() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(elsewhere));
    let other = scene.worker_of(Registry::new().with_step::<work>(), "works");
    scene.start(&elsewhere, "e", &()).await;
    let story = async {
        pause_for_a_day(&scene, &worker, "e").await;
        assert_eq!(REMOTE.get(), 1, "it ran during the pause");
        let resumed_at = scene.now();
        let ended = scene.finish(&worker, "e").await;
        assert_eq!(ended.output::<u32>(), 1);
        // At once: its retry was due long ago.
        let took = ended.described.execution.closed().unwrap().ended_at.since(resumed_at);
        assert!(took < Millis::from_secs(5), "{took}");
    };
    scene.with(&other, story).await;
    assert_eq!(REMOTE.get(), 2);
}

#[tickover::workflow("limited", timeout = "1h")]
async fn limited(ctx: Ctx, (): ()) -> Result<()> {
    ctx.sleep("long", "2h").await?;
    Ok(())
}

#[tokio::test]
async fn the_executions_deadline_goes_on_during_a_pause() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(limited));
    scene.start(&limited, "e", &()).await;
    scene.pass(&worker, Millis::from_secs(60)).await;
    scene.service.pause(&execution_id("e")).await.unwrap();
    let ended = scene.finish(&worker, "e").await;
    assert_eq!(ended.outcome(), &ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution });
    assert!((3_600_000..3_601_000).contains(&ended.took()), "{}", ended.took());
}

/// Arguments: the option of the step that limits its wait for a worker.
#[tickover::workflow("nobody-comes")]
async fn nobody_comes(ctx: Ctx, has_start_timeout: bool) -> Result<u32> {
    let step = remote::<u32>("foreign", 1).on_queue("works");
    let step = if has_start_timeout { step.schedule_to_start("10m") } else { step.timeout("10m") };
    Ok(ctx.step(step).await?)
}

#[tokio::test]
async fn a_remote_step_whose_queue_has_no_worker_during_a_pause_has_its_time_afresh_at_the_resume() {
    // Its timeout passes in the pause, or afterwards.
    let (long, short) = (Millis::from_days(1), Millis::from_secs(300));
    for (pause, has_start_timeout) in [(long, false), (long, true), (short, false), (short, true)] {
        let scene = Scene::new();
        let worker = scene.worker_of(Registry::new().with(nobody_comes), "workflows");
        scene.start(&nobody_comes, "e", &has_start_timeout).await;
        pause_for(&scene, &worker, "e", pause).await;
        assert_eq!(scene.status("e").await, ExecutionStatus::Waiting, "{pause} {has_start_timeout}");
        // One of its start, and one of the resume.
        assert_eq!(scene.depth("works").await.visible, 2, "{pause} {has_start_timeout}");
        let resumed_at = scene.now();
        let ended = scene.finish(&worker, "e").await;
        assert_eq!(ended.code(), "timed_out");
        let took = ended.described.execution.closed().unwrap().ended_at.since(resumed_at);
        assert!((600_000..601_000).contains(&took.as_u64()), "{pause} {has_start_timeout}: {took}");
    }
}

static ASKED_LATE: Count = Count::new();

#[tickover::step("late", queue = "works", timeout = "10m")]
async fn late() -> Result<u32, Failure> {
    Ok(ASKED_LATE.add())
}

#[tickover::workflow("asked-late")]
async fn asked_late(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(late()).await?)
}

#[tokio::test]
async fn a_remote_step_with_two_messages_after_a_pause_runs_once() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(asked_late), "workflows");
    let other = scene.worker_of(Registry::new().with_step::<late>(), "works");
    scene.start(&asked_late, "e", &()).await;
    pause_for(&scene, &worker, "e", Millis::from_secs(300)).await;
    let ended = scene.with(&other, scene.finish(&worker, "e")).await;
    assert_eq!((ended.output::<u32>(), ASKED_LATE.get()), (0, 1));
}
