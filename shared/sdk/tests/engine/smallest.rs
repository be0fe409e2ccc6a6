//! The smallest complete workflow: inline steps, a sleep and a remote step, from start to result.

use tickover::prelude::*;
use tickover::{Failure, Registry};
use tickover_core::execution::journal::Happened;

use crate::scene::{Count, Scene};

static DOUBLED: Count = Count::new();

#[tickover::step]
async fn double(number: u32) -> Result<u32, Failure> {
    DOUBLED.add();
    Ok(number * 2)
}

#[tickover::step]
async fn print_label(number: u32) -> Result<String, Failure> {
    Ok(format!("label {number}"))
}

#[tickover::workflow("thin")]
async fn thin(ctx: Ctx, number: u32) -> Result<String> {
    let once = ctx.step(double(number)).await?;
    let twice = ctx.step(double(once).named("again")).await?;
    ctx.sleep("settle", "1h").await?;
    let label = ctx.step(print_label(twice).remote()).await?;
    Ok(label)
}

#[tokio::test]
async fn a_workflow_runs_to_its_end_and_each_step_once() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(thin).with_step::<print_label>());
    scene.start(&thin, "t-1", &7).await;
    let ended = scene.finish(&worker, "t-1").await;
    assert_eq!(ended.output::<String>(), "label 28");
    assert_eq!(DOUBLED.get(), 2);
    assert_eq!(ended.count(|what| matches!(what, Happened::Step { .. })), 3);
    let hour = 3_600_000;
    assert!((hour..hour + 1_000).contains(&ended.took()), "{}", ended.took());
}
