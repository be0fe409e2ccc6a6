//! What goes wrong in workflows themselves, and code that changes under running executions.

use std::sync::atomic::{AtomicBool, Ordering};

use tickover::prelude::*;
use tickover::{Failure, Registry, Workflow};
use tickover_core::duration::Millis;
use tickover_core::execution::Stuck;

use crate::scene::{Count, Scene, clock, execution_id};

#[tickover::step]
async fn echo(number: u32) -> Result<u32, Failure> {
    Ok(number)
}

#[tickover::workflow("foreign")]
async fn foreign(ctx: Ctx, seconds: u64) -> Result<u64> {
    ctx.step(echo(1)).await?;
    clock().after(Millis::from_secs(seconds)).await;
    Ok(seconds)
}

#[tokio::test]
async fn what_is_not_durable_is_waited_for_but_not_for_ever() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(foreign));
    scene.start(&foreign, "short", &20).await;
    let ended = scene.inside(scene.finish(&worker, "short")).await;
    assert_eq!((ended.output::<u64>(), ended.took()), (20, 20_000));
    scene.start(&foreign, "long", &1_000_000).await;
    let ended = scene.inside(scene.finish(&worker, "long")).await;
    assert_eq!(ended.code(), "poisoned");
}

static PANICS: Count = Count::new();

#[tickover::workflow("panicking")]
async fn panicking(ctx: Ctx, times: u32) -> Result<u32> {
    let number = ctx.step(echo(5)).await?;
    assert!(PANICS.add() >= times, "not yet");
    Ok(number)
}

#[tokio::test]
async fn a_panic_fails_the_turn_and_too_many_of_them_the_execution() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(panicking));
    scene.start(&panicking, "thrice", &3).await;
    assert_eq!(scene.finish(&worker, "thrice").await.output::<u32>(), 5);
    scene.start(&panicking, "always", &u32::MAX).await;
    assert_eq!(scene.finish(&worker, "always").await.code(), "poisoned");
}

#[tokio::test]
async fn an_unknown_workflow_waits_visibly_for_a_worker_that_knows_it() {
    let scene = Scene::new();
    let ignorant = scene.worker(Registry::new().with(foreign));
    scene.start(&panicking, "unknown", &0).await;
    scene.pass(&ignorant, Millis::from_secs(3_600)).await;
    let described = scene.service.execution(&execution_id("unknown")).await.unwrap().unwrap();
    let Some(Stuck::UnknownWorkflow { tries }) = described.execution.stuck else {
        unreachable!("{:?}", described.execution)
    };
    assert!((8..20).contains(&tries), "{tries}");
    let knowing = scene.worker(Registry::new().with(panicking));
    let ended = scene.finish(&knowing, "unknown").await;
    assert_eq!(ended.output::<u32>(), 5);
    assert_eq!(ended.described.execution.stuck, None);
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    boxes: Vec<u32>,
}

#[tickover::workflow("typed")]
async fn typed(_ctx: Ctx, order: Order) -> Result<usize> {
    Ok(order.boxes.len())
}

#[tokio::test]
async fn an_input_that_does_not_fit_fails_the_execution_with_the_path_of_the_field() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(typed));
    let untyped = Workflow::<serde_json::Value, usize>::new("typed", |_, _| unreachable!());
    scene.start(&untyped, "typed", &serde_json::json!({"boxes": [1, "two"]})).await;
    let ended = scene.finish(&worker, "typed").await;
    assert_eq!(ended.code(), "invalid_input");
    assert!(ended.message().contains("boxes[1]"), "{}", ended.message());
}

#[tickover::workflow("changing")]
async fn changing_before(ctx: Ctx, (): ()) -> Result<u32> {
    let number = ctx.step(echo(5)).await?;
    ctx.sleep("s", "1h").await?;
    Ok(number)
}

#[tickover::workflow("changing")]
async fn changing_after(ctx: Ctx, (): ()) -> Result<String> {
    let text: String = ctx.step(step("echo", || async { Ok::<_, Failure>("five".to_owned()) })).await?;
    ctx.sleep("s", "1h").await?;
    Ok(text)
}

#[tokio::test]
async fn a_stored_result_that_no_longer_fits_parks_the_execution_for_an_operator() {
    let scene = Scene::new();
    scene.start(&changing_before, "changing", &()).await;
    let before = scene.worker(Registry::new().with(changing_before));
    scene.pass(&before, Millis::from_secs(60)).await;
    let after = scene.worker(Registry::new().with(changing_after));
    scene.pass(&after, Millis::from_secs(7_200)).await;
    let described = scene.service.execution(&execution_id("changing")).await.unwrap().unwrap();
    let Some(Stuck::Unreadable(failure)) = &described.execution.stuck else {
        unreachable!("{:?}", described.execution)
    };
    assert!(failure.message.contains("echo") && failure.message.contains("String"), "{}", failure.message);
    assert!(described.execution.closed().is_none());
    // The code is mended, and an operator says so.
    scene.service.resume(&execution_id("changing")).await.unwrap();
    assert_eq!(scene.finish(&before, "changing").await.output::<u32>(), 5);
}

static NEW_CODE: AtomicBool = AtomicBool::new(false);

#[tickover::workflow("patchy")]
async fn patchy_before(ctx: Ctx, (): ()) -> Result<String> {
    ctx.step(echo(1)).await?;
    ctx.sleep("s", "1h").await?;
    Ok("old".to_owned())
}

#[tickover::workflow("patchy", patches("new-tax"))]
async fn patchy_after(ctx: Ctx, (): ()) -> Result<String> {
    assert!(NEW_CODE.load(Ordering::SeqCst), "the new code runs only later");
    if ctx.patched("new-tax") {
        ctx.step(echo(2).named("tax")).await?;
    }
    ctx.step(echo(1)).await?;
    ctx.sleep("s", "1h").await?;
    Ok(if ctx.patched("new-tax") { "new" } else { "old" }.to_owned())
}

#[tickover::workflow("undeclared")]
async fn undeclared(ctx: Ctx, (): ()) -> Result<bool> {
    Ok(ctx.patched("new-tax"))
}

#[tokio::test]
async fn a_run_keeps_to_the_patches_that_it_began_with() {
    let scene = Scene::new();
    scene.start(&patchy_before, "old-run", &()).await;
    let before = scene.worker(Registry::new().with(patchy_before));
    scene.pass(&before, Millis::from_secs(60)).await;
    NEW_CODE.store(true, Ordering::SeqCst);
    let after = scene.worker(Registry::new().with((patchy_after, undeclared)));
    scene.start(&patchy_after, "new-run", &()).await;
    assert_eq!(scene.finish(&after, "old-run").await.output::<String>(), "old");
    assert_eq!(scene.finish(&after, "new-run").await.output::<String>(), "new");
    scene.start(&undeclared, "undeclared", &()).await;
    let ended = scene.finish(&after, "undeclared").await;
    assert_eq!(ended.code(), "unknown_patch");
    assert!(ended.message().contains("new-tax"));
}

#[tickover::workflow("reordered")]
async fn reordered_before(ctx: Ctx, (): ()) -> Result<u32> {
    let a = ctx.step(echo(1).named("a")).await?;
    let b = ctx.step(echo(2).named("b")).await?;
    ctx.sleep("s", "1h").await?;
    Ok(a * 10 + b)
}

#[tickover::workflow("reordered")]
async fn reordered_after(ctx: Ctx, (): ()) -> Result<u32> {
    let b = ctx.step(echo(9).named("b")).await?;
    let c = ctx.step(echo(3).named("c")).await?;
    let a = ctx.step(echo(9).named("a")).await?;
    ctx.sleep("s", "1h").await?;
    Ok(a * 100 + b * 10 + c)
}

#[tokio::test]
async fn steps_may_change_their_order_between_deployments() {
    let scene = Scene::new();
    scene.start(&reordered_before, "reordered", &()).await;
    let before = scene.worker(Registry::new().with(reordered_before));
    scene.pass(&before, Millis::from_secs(60)).await;
    let after = scene.worker(Registry::new().with(reordered_after));
    assert_eq!(scene.finish(&after, "reordered").await.output::<u32>(), 123);
}
