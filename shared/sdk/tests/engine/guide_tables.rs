//! What the guide's tables say of timeouts, deadlines and errors of steps, where no other test has shown it.

use tickover::prelude::*;
use tickover::{Failure, Registry};
use tickover_core::duration::Millis;
use tickover_core::id::StepName;
use tickover_service::executions::remote_id;

use crate::scene::{Scene, clock, execution_id, shown};

/// Takes 20 s in its first attempt, which fails, and 40 s in all others.
#[tickover::step("work", timeout = "30s", scope = "per_attempt", retry = "fixed(5, 1s)")]
async fn work() -> Result<u32, Failure> {
    let attempt = step_info().map_or(0, |info| info.attempt);
    clock().after(Millis::from_secs(if attempt == 1 { 20 } else { 40 })).await;
    if attempt == 1 { Err(Failure::new("busy", "")) } else { Ok(attempt) }
}

#[tickover::workflow("each")]
async fn each(ctx: Ctx, is_remote: bool) -> Result<String> {
    Ok(shown(ctx.step(if is_remote { work().on_queue("works") } else { work() }).await))
}

#[tokio::test]
async fn a_timeout_of_each_attempt_counts_from_its_start_or_claim_and_the_first_that_passes_ends_the_step() {
    for is_remote in [false, true] {
        let scene = Scene::new();
        let worker = scene.worker_of(Registry::new().with(each), "workflows");
        let other = scene.worker_of(Registry::new().with_step::<work>(), "works");
        scene.start(&each, "e", &is_remote).await;
        let story = async {
            // The remote step waits longer for its claim than its timeout is.
            if is_remote {
                scene.pass(&worker, Millis::from_secs(60)).await;
            }
            scene.with(&other, scene.finish(&worker, "e")).await
        };
        let ended = scene.inside(story).await;
        assert_eq!(ended.output::<String>(), "work timed out: start_to_close");
        let began = if is_remote { 60_000 } else { 0 };
        let took = began + 20_000 + 1_000 + 30_000;
        assert!((took..took + 2_000).contains(&ended.took()), "{is_remote}: {}", ended.took());
    }
}

#[tickover::step(retry = "fixed(1, 2m)")]
async fn fails() -> Result<(), Failure> {
    Err(Failure::new("busy", ""))
}

#[tickover::workflow("by-execution", timeout = "1m")]
async fn by_execution(ctx: Ctx, (): ()) -> Result<String> {
    Ok(ctx.step(fails()).await.unwrap_err().failure().code)
}

#[tickover::workflow("by-run", run_timeout = "1m")]
async fn by_run(ctx: Ctx, (): ()) -> Result<String> {
    Ok(ctx.step(fails()).await.unwrap_err().failure().code)
}

#[tokio::test]
async fn a_step_whose_retry_has_no_time_before_the_deadline_of_its_run_or_execution_has_a_code_of_its_own() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(by_execution).with(by_run));
    scene.start(&by_execution, "execution", &()).await;
    scene.start(&by_run, "run", &()).await;
    for id in ["execution", "run"] {
        assert_eq!(scene.finish(&worker, id).await.output::<String>(), "deadline_exceeded", "{id}");
    }
}

#[tickover::workflow("cancelled")]
async fn cancelled(ctx: Ctx, (): ()) -> Result<String> {
    let error = ctx.step(remote::<u32>("foreign", 1).on_queue("works")).await.unwrap_err();
    Ok(format!("{} {}", matches!(error, StepError::Cancelled { .. }), error.failure().code))
}

#[tokio::test]
async fn a_step_that_an_operator_cancels_ends_as_cancelled() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(cancelled), "workflows");
    scene.start(&cancelled, "e", &()).await;
    scene.pass(&worker, Millis::from_secs(1)).await;
    let described = scene.service.execution(&execution_id("e")).await.unwrap().unwrap();
    let id = remote_id(&described.execution, &StepName::parse("foreign").unwrap());
    scene.service.cancel(&id, false).await.unwrap();
    assert_eq!(scene.finish(&worker, "e").await.output::<String>(), "true cancelled");
}
