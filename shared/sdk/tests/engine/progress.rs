//! The progress that a step reports: kept across attempts, and visible from outside.

use tickover::prelude::*;
use tickover::{Registry, StepInfo, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::Happened;
use tickover_core::id::StepName;
use tickover_service::executions::remote_id;
use tickover_service::ports::Clock as _;

use crate::scene::{Count, Scene, clock, execution_id};

fn info() -> Result<StepInfo, Failure> {
    step_info().ok_or_else(|| Failure::new("no_step", ""))
}

/// Each attempt advances the progress by a quarter. All attempts but the last fail. Returns the progress at which the
/// last one began.
#[tickover::step(retry = "fixed(3, 1m)")]
async fn import(seconds: u64) -> Result<f64, Failure> {
    let info = info()?;
    let begun = info.progress.unwrap_or(0.0);
    info.heartbeat(begun + 0.125);
    clock().after(Millis::from_secs(seconds)).await;
    info.heartbeat(begun + 0.25);
    if begun < 0.75 {
        return Err(Failure::new("cut", "the connection was cut"));
    }
    Ok(begun)
}

#[tickover::workflow("imports")]
async fn imports(ctx: Ctx, remote: bool) -> Result<f64> {
    let import = import(25);
    Ok(ctx.step(if remote { import.remote() } else { import }).await?)
}

#[tokio::test]
async fn an_inline_attempt_continues_at_the_progress_of_the_one_before() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(imports));
    scene.start(&imports, "here", &false).await;
    let ended = scene.inside(scene.finish(&worker, "here")).await;
    assert_eq!(ended.output::<serde_json::Value>(), 0.75);
    // The wait of one minute ends the turn, so the next attempt reads the progress from the journal.
    let told = ended.journal.iter().filter_map(|entry| match &entry.what {
        Happened::Attempt { error: Some(_), progress, .. } => *progress,
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [0.25, 0.5, 0.75]);
}

#[tokio::test]
async fn a_remote_attempts_progress_is_visible_and_the_next_one_continues_at_it() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(imports).with_step::<import>());
    scene.start(&imports, "there", &true).await;
    let seen = async {
        scene.clock.sleep_until(scene.clock.now().plus(Millis::from_secs(15))).await;
        let execution = scene.service.execution(&execution_id("there")).await.unwrap().unwrap().execution;
        let task = remote_id(&execution, &StepName::parse("import").unwrap());
        let underway = scene.service.describe(&task).await.unwrap().task.progress;
        // By then the attempt has failed with progress that no heartbeat had sent yet, and the next attempt waits.
        scene.clock.sleep_until(scene.clock.now().plus(Millis::from_secs(30))).await;
        (underway, scene.service.describe(&task).await.unwrap().task.progress)
    };
    assert_eq!(scene.inside(scene.until(&worker, seen)).await, (Some(0.125), Some(0.25)));
    let ended = scene.inside(scene.finish(&worker, "there")).await;
    assert_eq!(ended.output::<serde_json::Value>(), 0.75);
}

#[tokio::test]
async fn progress_extends_no_lease_that_ends_with_the_worker() {
    let scene = Scene::new();
    let settings = WorkerSettings {
        heartbeat: Some(Millis::ZERO),
        lease: Millis::from_secs(60),
        ..WorkerSettings::default()
    };
    let registry = Registry::new().with(imports).with_step::<import>();
    let worker = Worker::new(scene.service.clone(), registry, settings).unwrap();
    scene.start(&imports, "fixed", &true).await;
    let seen = async {
        let mut seen = vec![];
        for seconds in [5, 10] {
            scene.clock.sleep_until(scene.clock.now().plus(Millis::from_secs(seconds))).await;
            let execution = scene.service.execution(&execution_id("fixed")).await.unwrap().unwrap().execution;
            let task = remote_id(&execution, &StepName::parse("import").unwrap());
            let task = scene.service.describe(&task).await.unwrap().task;
            seen.push((task.progress, task.running().unwrap().lease_expires_at));
        }
        seen
    };
    let seen = scene.inside(scene.until(&worker, seen)).await;
    assert_eq!([seen[0].0, seen[1].0], [None, Some(0.125)]);
    assert_eq!(seen[0].1, seen[1].1);
}

#[tokio::test]
async fn progress_of_an_inline_attempt_outlives_its_worker() {
    let scene = Scene::new();
    let registry = Registry::new().with(imports);
    scene.start(&imports, "here", &false).await;
    // The lease is a minute, so it is extended after 20 s. That write has the progress from before.
    scene.inside(scene.pass(&scene.worker(registry.clone()), Millis::from_secs(22))).await;
    let told = scene.service.execution(&execution_id("here")).await.unwrap().unwrap().execution.journal;
    let progress = told.iter().map(|entry| match &entry.what {
        Happened::Attempt { error: None, is_ongoing: true, progress, .. } => *progress,
        other => panic!("{other:?}"),
    });
    assert_eq!(progress.collect::<Vec<_>>(), [Some(0.125)]);
    let ended = scene.inside(scene.finish(&scene.worker(registry), "here")).await;
    // The lost attempt doesn't count. The next one began at 0.125.
    assert_eq!(ended.output::<serde_json::Value>(), 0.875);
}

static LIVES: Count = Count::new();

#[tickover::step(retry = "fixed(1, 1s)")]
async fn long() -> Result<Vec<f64>, Failure> {
    let info = info()?;
    let found = info.progress;
    if LIVES.add() == 0 {
        info.heartbeat(0.5);
        clock().after(Millis::from_secs(12)).await;
        info.heartbeat(0.9);
        clock().after(Millis::from_days(1)).await;
    }
    Ok(found.into_iter().collect())
}

#[tickover::workflow("long-one")]
async fn long_one(ctx: Ctx) -> Result<Vec<f64>> {
    Ok(ctx.step(long().remote()).await?)
}

#[tokio::test]
async fn reported_progress_outlives_the_worker() {
    let scene = Scene::new();
    let registry = Registry::new().with(long_one).with_step::<long>();
    scene.start(&long_one, "lost", &()).await;
    // The worker would send the second progress ten seconds after the first one; it is lost before that.
    scene.inside(scene.pass(&scene.worker(registry.clone()), Millis::from_secs(18))).await;
    let ended = scene.inside(scene.finish(&scene.worker(registry), "lost")).await;
    assert_eq!(ended.output::<Vec<f64>>(), [0.5]);
}
