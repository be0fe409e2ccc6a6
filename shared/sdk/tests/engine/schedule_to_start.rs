//! Remote steps whose queue has no worker: `schedule_to_start`, and what follows it.

use tickover::prelude::*;
use tickover::{Failure, Registry};

use crate::scene::{Scene, shown};

#[tickover::step(queue = "elsewhere", schedule_to_start = "30s")]
async fn nobody_comes() -> Result<u32, Failure> {
    Ok(step_info().map_or(0, |info| info.attempt))
}

#[tickover::workflow("nobody")]
async fn nobody(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    let mut seen = Vec::new();
    let mut begin = ctx.now("t").await?;
    let steps = [
        nobody_comes().named("once"),
        nobody_comes().named("retried").retry("fixed(2, 5s)"),
        nobody_comes().named("terminal").retry("fixed(2, 5s)").on_timeout(OnTimeout::Terminal),
        nobody_comes().named("cancel").retry("fixed(2, 5s)").on_timeout(OnTimeout::Cancel),
        nobody_comes().named("shorter").schedule_to_start("10s"),
        nobody_comes().named("all").retry("fixed(2, 5s)").timeout("50s"),
    ];
    for (index, step) in steps.into_iter().enumerate() {
        let outcome = ctx.step(step).await;
        let end = ctx.now(format!("t[{index}]")).await?;
        seen.push(format!("{} {}", end.since(begin).as_u64() / 1_000, shown(outcome)));
        begin = end;
    }
    Ok(seen)
}

#[tokio::test]
async fn a_remote_step_that_no_worker_claims_times_out_and_follows_its_policy() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(nobody), "workflows");
    scene.start(&nobody, "nobody", &()).await;
    let ended = scene.inside(scene.finish(&worker, "nobody")).await;
    let expected = [
        "30 once timed out: schedule_to_start",
        "100 retried timed out: schedule_to_start",
        "30 terminal timed out: schedule_to_start",
        "30 cancel was cancelled: schedule_to_start",
        "10 shorter timed out: schedule_to_start",
        "50 all timed out: schedule_to_close",
    ];
    assert_eq!(ended.output::<Vec<String>>(), expected);
}

#[tokio::test]
async fn a_remote_step_that_is_claimed_in_time_is_not_limited() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(nobody), "workflows");
    let elsewhere = scene.worker_of(Registry::new().with_step::<nobody_comes>(), "elsewhere");
    scene.start(&nobody, "claimed", &()).await;
    let ended = scene.inside(scene.with(&elsewhere, scene.finish(&worker, "claimed"))).await;
    assert_eq!(ended.output::<Vec<String>>(), ["0 Ok(1)"; 6]);
}

#[tickover::workflow("in-place-wait")]
async fn in_place(ctx: Ctx, (): ()) -> Result<String> {
    let inline = step("inline", || async { Ok::<_, Failure>(1) }).schedule_to_start("10s");
    let Err(error) = ctx.step(inline).await else { return Ok(String::new()) };
    Ok(error.to_string())
}

#[tokio::test]
async fn an_inline_step_with_schedule_to_start_fails_with_advice() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(in_place));
    scene.start(&in_place, "in-place-wait", &()).await;
    let said = scene.inside(scene.finish(&worker, "in-place-wait")).await.output::<String>();
    for part in ["`inline` can't be run", "schedule_to_start", "`.remote()`"] {
        assert!(said.contains(part), "{part} in {said}");
    }
}
