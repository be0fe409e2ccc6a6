//! Errors in workflows' own code, and code that changes while executions run.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tickover::prelude::*;
use tickover::{Failure, Registry, Workflow};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::Happened;
use tickover_core::execution::{ExecutionStatus, Stuck};

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
async fn a_foreign_future_is_waited_for_but_not_for_ever() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(foreign));
    scene.start(&foreign, "short", &20).await;
    let ended = scene.inside(scene.finish(&worker, "short")).await;
    assert_eq!((ended.output::<u64>(), ended.took()), (20, 20_000));
}

#[tokio::test]
async fn an_endless_foreign_wait_is_shown_and_never_fails_the_execution() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(foreign));
    scene.start(&foreign, "long", &1_000_000).await;
    scene.inside(scene.pass(&worker, Millis::from_secs(70))).await;
    let (code, message, tries) = scene.stuck("long").await;
    assert_eq!((code.as_str(), tries), ("foreign_wait", 1));
    assert!(message.contains("after `echo`") && message.contains("put it into a step"), "{message}");
    // The retries of the turn become rarer, and no limit on them ends the execution.
    scene.inside(scene.pass(&worker, Millis::from_days(1))).await;
    let (_, _, tries) = scene.stuck("long").await;
    assert!((100..200).contains(&tries), "{tries}");
    assert!(scene.status("long").await.is_live());
}

/// How often the code has panicked at first.
static AT_FIRST: Count = Count::new();

#[tickover::workflow("panics_at_first")]
async fn panics_at_first(_: Ctx, times: u32) -> Result<u32> {
    assert!(AT_FIRST.add() >= times, "not yet");
    Ok(times)
}

#[tokio::test]
async fn a_panic_before_anything_is_recorded_fails_the_turn_and_too_many_of_them_the_execution() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(panics_at_first));
    scene.start(&panics_at_first, "thrice", &3).await;
    assert_eq!(scene.finish(&worker, "thrice").await.output::<u32>(), 3);
    scene.start(&panics_at_first, "always", &u32::MAX).await;
    let ended = scene.finish(&worker, "always").await;
    assert_eq!(ended.code(), "poisoned");
    assert!(ended.message().contains("panic: not yet, at "), "{}", ended.message());
}

static PANICS: Count = Count::new();

#[tickover::workflow("panicking")]
async fn panicking(ctx: Ctx, times: u32) -> Result<u32> {
    let number = ctx.step(echo(5)).await?;
    assert!(PANICS.add() >= times, "not yet");
    Ok(number)
}

#[tickover::workflow("panicking")]
async fn repaired(ctx: Ctx, _: u32) -> Result<u32> {
    Ok(ctx.step(echo(5)).await?)
}

#[tokio::test]
async fn a_run_that_has_begun_waits_for_code_that_does_not_panic() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(panicking));
    scene.start(&panicking, "thrice", &3).await;
    assert_eq!(scene.finish(&worker, "thrice").await.output::<u32>(), 5);
    scene.start(&panicking, "always", &u32::MAX).await;
    scene.pass(&worker, Millis::from_secs(3)).await;
    let (code, message, tries) = scene.stuck("always").await;
    assert_eq!(code, "panic");
    assert!(message.starts_with("not yet, at ") && message.contains("faulty_code.rs:"), "{message}");
    assert!((1..5).contains(&tries), "{tries}");
    scene.pass(&worker, Millis::from_secs(6 * 3_600)).await;
    assert!(scene.stuck("always").await.2 > 10, "it is tried again and again");
    let mended = scene.worker(Registry::new().with(repaired));
    assert_eq!(scene.finish(&mended, "always").await.output::<u32>(), 5);
}

#[tickover::workflow("spawning")]
async fn spawning(ctx: Ctx, (): ()) -> Result<u32> {
    let step = ctx.step(echo(1));
    let spawned = tokio::spawn(step).await;
    Ok(spawned.map_err(|error| Error::msg(error.to_string()))??)
}

#[tokio::test]
async fn a_spawned_context_future_fails_the_run_with_advice() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(spawning));
    scene.start(&spawning, "spawning", &()).await;
    let ended = scene.finish(&worker, "spawning").await;
    assert_eq!(ended.code(), "outside_turn");
    assert!(ended.message().contains("await it in the workflow"), "{}", ended.message());
}

#[tickover::workflow("lasting")]
async fn lasting(ctx: Ctx, (): ()) -> Result<usize> {
    let mut echoes: FuturesUnordered<_> = (0..2).map(|n| ctx.step(echo(n).named(format!("e{n}")))).collect();
    let mut heard = 0;
    while echoes.next().await.is_some() {
        heard += 1;
    }
    ctx.sleep("s", "1h").await?;
    Ok(heard + echoes.len())
}

#[tokio::test]
async fn an_empty_set_of_futures_is_no_foreign_wait() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(lasting));
    scene.start(&lasting, "lasting", &()).await;
    scene.pass(&worker, Millis::from_secs(1)).await;
    assert_eq!(scene.status("lasting").await, ExecutionStatus::Waiting);
    assert_eq!(scene.finish(&worker, "lasting").await.output::<usize>(), 2);
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

#[tickover::workflow("growing")]
async fn growing_before(ctx: Ctx, number: u32) -> Result<u32> {
    let number = ctx.step(echo(number)).await?;
    ctx.sleep("s", "1h").await?;
    Ok(number)
}

#[tickover::workflow("growing")]
async fn growing_after(_ctx: Ctx, order: Order) -> Result<usize> {
    Ok(order.boxes.len())
}

#[tokio::test]
async fn an_input_that_no_longer_fits_parks_an_execution_that_has_begun() {
    let scene = Scene::new();
    scene.start(&growing_before, "growing", &5_u32).await;
    let before = scene.worker(Registry::new().with(growing_before));
    scene.pass(&before, Millis::from_secs(60)).await;
    let after = scene.worker(Registry::new().with(growing_after));
    scene.pass(&after, Millis::from_secs(7_200)).await;
    let described = scene.service.execution(&execution_id("growing")).await.unwrap().unwrap();
    let Some(Stuck::Unreadable(failure)) = &described.execution.stuck else {
        unreachable!("{:?}", described.execution)
    };
    assert_eq!(failure.code, "invalid_input");
    // The code that fits is deployed again, and an operator resumes the execution.
    scene.service.resume(&execution_id("growing")).await.unwrap();
    assert_eq!(scene.finish(&before, "growing").await.output::<u32>(), 5);
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
    // An earlier version of the code is deployed, and an operator resumes the execution.
    scene.service.resume(&execution_id("changing")).await.unwrap();
    assert_eq!(scene.finish(&before, "changing").await.output::<u32>(), 5);
}

async fn charging(ctx: Ctx, charge: &'static str) -> Result<u32> {
    let number = ctx.step(echo(5).named(charge)).await?;
    ctx.sleep("s", "1h").await?;
    Ok(number)
}

#[tickover::workflow("charging")]
async fn charging_before(ctx: Ctx, (): ()) -> Result<u32> {
    charging(ctx, "charge").await
}

#[tickover::workflow("charging", on_drift = "go_on")]
async fn charging_renamed(ctx: Ctx, (): ()) -> Result<u32> {
    charging(ctx, "charge-card").await
}

#[tickover::workflow("charging")]
async fn charging_renamed_carefully(ctx: Ctx, (): ()) -> Result<u32> {
    charging(ctx, "charge-card").await
}

fn drifted(what: &Happened) -> Option<&str> {
    match what {
        Happened::Note { kind, name: Some(name), .. } if kind == "drift" => Some(name.as_str()),
        _ => None,
    }
}

#[tokio::test]
async fn a_result_that_changed_code_no_longer_uses_is_named_before_any_step_runs() {
    let scene = Scene::new();
    scene.start(&charging_before, "charging", &()).await;
    let before = scene.worker(Registry::new().with(charging_before));
    scene.pass(&before, Millis::from_secs(60)).await;
    let after = scene.worker(Registry::new().with(charging_renamed));
    let ended = scene.finish(&after, "charging").await;
    assert_eq!(ended.output::<u32>(), 5);
    let told: Vec<_> = ended.journal.iter().filter_map(|entry| drifted(&entry.what)).collect();
    assert_eq!(told, ["charge", "s"]);
    let at = |wanted: &dyn Fn(&Happened) -> bool| ended.journal.iter().position(|entry| wanted(&entry.what));
    let ran = at(&|what| matches!(what, Happened::Step { name, .. } if name.as_str() == "charge-card"));
    assert!(at(&|what| drifted(what).is_some()) < ran);
}

#[tokio::test]
async fn an_execution_whose_code_has_drifted_waits_for_an_operator() {
    let scene = Scene::new();
    scene.start(&charging_before, "careful", &()).await;
    let before = scene.worker(Registry::new().with(charging_before));
    scene.pass(&before, Millis::from_secs(60)).await;
    let after = scene.worker(Registry::new().with(charging_renamed_carefully));
    scene.pass(&after, Millis::from_secs(7_200)).await;
    let described = scene.service.execution(&execution_id("careful")).await.unwrap().unwrap();
    let Some(Stuck::Unreadable(failure)) = &described.execution.stuck else {
        unreachable!("{:?}", described.execution)
    };
    assert_eq!(failure.code, "drift");
    assert!(failure.message.contains("`charge`"), "{}", failure.message);
    let journal = scene.service.journal_of(&described.execution).await.unwrap();
    let is_again =
        |what: &Happened| matches!(what, Happened::Step { name, .. } if name.as_str() == "charge-card");
    assert!(!journal.iter().any(|entry| is_again(&entry.what)));
    // An earlier version of the code is deployed, and an operator resumes the execution.
    scene.service.resume(&execution_id("careful")).await.unwrap();
    assert_eq!(scene.finish(&before, "careful").await.output::<u32>(), 5);
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

#[tickover::workflow("forgets_a_patch")]
async fn knows_no_patch(ctx: Ctx, (): ()) -> Result<bool> {
    ctx.sleep("s", "1h").await?;
    Ok(true)
}

#[tickover::workflow("forgets_a_patch")]
async fn forgets_a_patch(ctx: Ctx, (): ()) -> Result<bool> {
    Ok(ctx.patched("new-tax"))
}

#[tokio::test]
async fn code_that_asks_for_an_undeclared_patch_does_not_end_a_run_that_has_begun() {
    let scene = Scene::new();
    scene.start(&knows_no_patch, "e", &()).await;
    let good = scene.worker(Registry::new().with(knows_no_patch));
    scene.pass(&good, Millis::from_secs(60)).await;
    let bad = scene.worker(Registry::new().with(forgets_a_patch));
    scene.pass(&bad, Millis::from_secs(2 * 3_600)).await;
    assert_eq!(scene.stuck("e").await.0, "unknown_patch");
    assert!(scene.finish(&good, "e").await.output::<bool>());
}

#[tickover::workflow("renames")]
async fn naps_and_echoes(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.sleep("pack", "1m").await?;
    let number = ctx.step(echo(1).named("label")).await?;
    ctx.sleep("s", "1h").await?;
    Ok(number)
}

#[tickover::workflow("renames")]
async fn echoes_where_it_napped(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(echo(1).named("pack")).await?)
}

#[tickover::workflow("renames")]
async fn naps_where_it_echoed(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.sleep("pack", "1m").await?;
    ctx.sleep("label", "1m").await?;
    Ok(0)
}

#[tickover::workflow("renames")]
async fn captures_where_it_napped(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.capture("pack", || 1).await
}

#[tickover::workflow("renames")]
async fn echoes_twice(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.sleep("pack", "1m").await?;
    ctx.step(echo(1).named("label")).await?;
    // What the code does with an error doesn't matter.
    Ok(ctx.step(echo(2).named("label")).await.unwrap_or(0))
}

#[tokio::test]
async fn code_that_uses_a_name_twice_or_for_another_kind_does_not_end_a_run_that_has_begun() {
    let scene = Scene::new();
    scene.start(&naps_and_echoes, "e", &()).await;
    let good = scene.worker(Registry::new().with(naps_and_echoes));
    scene.pass(&good, Millis::from_secs(120)).await;
    let wrong = [
        (Registry::new().with(echoes_where_it_napped), "the journal has "),
        (Registry::new().with(naps_where_it_echoed), "the journal has "),
        (Registry::new().with(captures_where_it_napped), "the journal has "),
        (Registry::new().with(echoes_twice), "is used twice"),
    ];
    for (wrong, said) in wrong {
        let bad = scene.worker(wrong);
        scene.pass(&bad, Millis::from_secs(2 * 3_600)).await;
        let (code, message, _) = scene.stuck("e").await;
        assert_eq!(code, "invalid_step");
        assert!(message.contains(said), "{message}");
    }
    assert_eq!(scene.finish(&good, "e").await.output::<u32>(), 1);
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
    let a = ctx.step(echo(9).named("a")).await?;
    ctx.sleep("s", "1h").await?;
    let c = ctx.step(echo(3).named("c")).await?;
    Ok(a * 100 + b * 10 + c)
}

/// The new step comes before one that has a result.
#[tickover::workflow("reordered", on_drift = "go_on")]
async fn inserted(ctx: Ctx, (): ()) -> Result<u32> {
    let c = ctx.step(echo(3).named("c")).await?;
    let a = ctx.step(echo(9).named("a")).await?;
    let b = ctx.step(echo(9).named("b")).await?;
    ctx.sleep("s", "1h").await?;
    Ok(a * 100 + b * 10 + c)
}

#[tokio::test]
async fn steps_may_change_their_order_between_deployments() {
    for after in [Registry::new().with(reordered_after), Registry::new().with(inserted)] {
        let scene = Scene::new();
        scene.start(&reordered_before, "reordered", &()).await;
        let before = scene.worker(Registry::new().with(reordered_before));
        scene.pass(&before, Millis::from_secs(60)).await;
        let after = scene.worker(after);
        assert_eq!(scene.finish(&after, "reordered").await.output::<u32>(), 123);
    }
}
