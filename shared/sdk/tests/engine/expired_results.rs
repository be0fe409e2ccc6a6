//! Results that were stored for a long time before the workflow read them.

use tickover::prelude::*;
use tickover::{Failure, Registry};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_core::id::StepName;

use crate::scene::{Count, Ended, Scene, execution_id};

static GREETED: Count = Count::new();

#[tickover::step(queue = "greeters")]
async fn greet(text: String) -> Result<String, Failure> {
    GREETED.add();
    Ok(text)
}

#[tickover::workflow("neglected")]
async fn neglected(ctx: Ctx, text: String) -> Result<String> {
    Ok(ctx.step(greet(text)).await?)
}

#[tickover::workflow("forgiving")]
async fn forgiving(ctx: Ctx, text: String) -> Result<String> {
    match ctx.step(greet(text)).await {
        Err(StepError::ResultExpired { step }) => Ok(format!("{step} is gone")),
        outcome => Ok(format!("{outcome:?}")),
    }
}

/// Pauses an execution for this many days. Its step has ended before, and no turn has read that.
async fn pause_for(
    scene: &Scene,
    (workflow, other): (&tickover::Worker, &tickover::Worker),
    what: &impl AsWorkflow<Input = String>,
    days: u64,
) -> Ended {
    scene.start(what, "neglected", &"x".repeat(2_000)).await;
    workflow.run_once().await.unwrap();
    // Its step runs before the pause: during a pause none starts.
    scene.pass(other, Millis::from_secs(60)).await;
    scene.service.pause(&execution_id("neglected")).await.unwrap();
    scene.clock.advance(Millis::from_days(days));
    scene.service.resume(&execution_id("neglected")).await.unwrap();
    scene.with(other, scene.finish(workflow, "neglected")).await
}

fn expired(ended: &Ended) -> usize {
    ended.count(|what| matches!(what, Happened::Step { outcome: StepOutcome::ResultExpired, .. }))
}

#[tokio::test]
async fn a_result_that_expired_before_it_was_read_is_a_separate_error_and_its_step_can_run_again() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with((neglected, forgiving)), "workflows");
    let greeter = scene.worker(Registry::new().with_step::<greet>());
    // A pause of up to twice the retention loses nothing.
    let kept = pause_for(&scene, (&worker, &greeter), &neglected, 59).await;
    assert_eq!(kept.output::<String>().len(), 2_000);

    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with((neglected, forgiving)), "workflows");
    let greeter = scene.worker(Registry::new().with_step::<greet>());
    let told = pause_for(&scene, (&worker, &greeter), &forgiving, 61).await;
    assert_eq!(told.output::<String>(), "greet is gone");

    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with((neglected, forgiving)), "workflows");
    let greeter = scene.worker(Registry::new().with_step::<greet>());
    let failed = pause_for(&scene, (&worker, &greeter), &neglected, 61).await;
    assert_eq!((failed.code(), expired(&failed)), ("result_expired", 1));

    let before = GREETED.get();
    let step = StepName::parse("greet").unwrap();
    scene.service.retry_step(&execution_id("neglected"), step).await.unwrap();
    let ended = scene.with(&greeter, scene.finish(&worker, "neglected")).await;
    assert_eq!(ended.output::<String>().len(), 2_000);
    assert_eq!(GREETED.get() - before, 1);
}

#[tickover::workflow("short-lived", queue = "greeters")]
async fn short_lived(_ctx: Ctx, text: String) -> Result<String> {
    Ok(text)
}

#[tickover::workflow("patriarch")]
async fn patriarch(ctx: Ctx, text: String) -> Result<String> {
    match ctx.child(&short_lived, &text).id("child").await {
        Err(StepError::ResultExpired { step }) => Ok(format!("{step} is gone")),
        outcome => Ok(format!("{} bytes", outcome?.len())),
    }
}

#[tokio::test]
async fn a_childs_result_expires_likewise_even_if_its_id_is_in_use_again() {
    for (days, is_reused, expected) in
        [(59, false, "2000 bytes"), (61, false, "child:child is gone"), (61, true, "child:child is gone")]
    {
        let scene = Scene::new();
        let worker = scene.worker_of(Registry::new().with(patriarch), "workflows");
        let other = scene.worker_of(Registry::new().with(short_lived), "greeters");
        scene.start(&patriarch, "patriarch", &"x".repeat(2_000)).await;
        worker.run_once().await.unwrap();
        scene.service.pause(&execution_id("patriarch")).await.unwrap();
        scene.pass(&other, Millis::from_secs(60)).await;
        scene.clock.advance(Millis::from_days(days));
        if is_reused {
            scene.start(&short_lived, "child", &"other".to_owned()).await;
            scene.pass(&other, Millis::from_secs(60)).await;
        }
        scene.service.resume(&execution_id("patriarch")).await.unwrap();
        let ended = scene.finish(&worker, "patriarch").await;
        assert_eq!(ended.output::<String>(), expected, "after {days} days");
    }
}
