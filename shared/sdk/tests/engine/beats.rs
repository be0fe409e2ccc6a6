//! Two clocks of a remote attempt: its worker extends the lease, and only its code restarts the heartbeat timeout.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tickover::prelude::*;
use tickover::{Registry, StepInfo};
use tickover_core::duration::Millis;
use tickover_core::id::StepName;
use tickover_core::task::Task;
use tickover_service::executions::remote_id;

use crate::scene::{Count, Scene, clock, execution_id};

fn info() -> Result<StepInfo, Failure> {
    step_info().ok_or_else(|| Failure::new("no_step", ""))
}

async fn task_of(scene: &Scene, execution: &str, step: &str) -> Task {
    let execution = scene.service.execution(&execution_id(execution)).await.unwrap().unwrap().execution;
    let id = remote_id(&execution, &StepName::parse(step).unwrap());
    scene.service.describe(&id).await.unwrap().task
}

/// What happened to the attempts of [`hangs_at_first`], with the seconds since the start.
static STORY: Mutex<Vec<(&str, u64)>> = Mutex::new(Vec::new());

fn note(what: &'static str) {
    STORY.lock().unwrap().push((what, clock().passed() / 1_000));
}

struct Stopped;

impl Drop for Stopped {
    fn drop(&mut self) {
        note("stopped");
    }
}

#[tickover::step(remote, heartbeat = "9s", retry = "fixed(1, 1s)")]
async fn hangs_at_first() -> Result<u32, Failure> {
    let attempt = info()?.attempt;
    note("started");
    if attempt == 1 {
        let _stopped = Stopped;
        std::future::pending::<()>().await;
    }
    Ok(attempt)
}

#[tickover::workflow("hangs")]
async fn hangs(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(hangs_at_first()).await?)
}

#[tokio::test]
async fn an_attempt_that_hangs_is_stopped_and_tried_again_by_the_same_live_worker() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(hangs).with_step::<hangs_at_first>());
    scene.start(&hangs, "hangs", &()).await;
    let ended = scene.inside(scene.finish(&worker, "hangs")).await;
    assert_eq!(ended.output::<u32>(), 2);
    let story = STORY.lock().unwrap().clone();
    assert_eq!(story.iter().map(|(what, _)| *what).collect::<Vec<_>>(), ["started", "stopped", "started"]);
    assert_eq!(story[1].1, story[0].1 + 9);
    assert!(story[2].1 < story[1].1 + 5, "{story:?}");
}

/// Reports ten times a second for 30 s.
#[tickover::step(remote, heartbeat = "9s")]
async fn talks_much() -> Result<u32, Failure> {
    let info = info()?;
    for tenth in 0_u32..300 {
        clock().after(Millis::new(100)).await;
        info.heartbeat(f64::from(tenth) / 300.0);
    }
    Ok(info.attempt)
}

#[tickover::workflow("talks")]
async fn talks(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(talks_much()).await?)
}

#[tokio::test]
async fn many_reports_cost_one_write_in_each_third_of_the_heartbeat_timeout() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(talks).with_step::<talks_much>());
    scene.start(&talks, "talks", &()).await;
    let ended = scene.inside(scene.finish(&worker, "talks")).await;
    assert_eq!(ended.output::<u32>(), 1);
    // It was scheduled, claimed and completed; the others are heartbeats.
    let heartbeats = task_of(&scene, "talks", "talks_much").await.version - 3;
    assert!((8..=10).contains(&heartbeats), "{heartbeats}");
}

/// Only says that it is alive, and has no heartbeat timeout.
#[tickover::step(remote)]
async fn says_nothing_new() -> Result<u32, Failure> {
    let info = info()?;
    for _ in 0..15 {
        clock().after(Millis::from_secs(1)).await;
        info.beat();
    }
    Ok(info.attempt)
}

#[tickover::workflow("says-nothing")]
async fn says_nothing(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(says_nothing_new()).await?)
}

#[tokio::test]
async fn a_report_without_values_costs_nothing_where_no_heartbeat_timeout_waits_for_it() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(says_nothing).with_step::<says_nothing_new>());
    scene.start(&says_nothing, "nothing", &()).await;
    scene.inside(scene.finish(&worker, "nothing")).await;
    assert_eq!(task_of(&scene, "nothing", "says_nothing_new").await.version, 3);
}

static COPIES: Count = Count::new();

/// The first attempt fails, and the second one's worker is lost. Returns the details that each attempt found.
#[tickover::step(remote, retry = "fixed(2, 1s)")]
async fn copies(padding: usize) -> Result<(Option<f64>, BTreeMap<String, u32>), Failure> {
    let info = info()?;
    let found: BTreeMap<String, u32> = info.details().map_err(Failure::from)?.unwrap_or_default();
    let mut details = found.clone();
    let run = COPIES.add();
    details.insert(format!("{run}{}", "x".repeat(padding)), run);
    info.heartbeat_with(&details).map_err(Failure::from)?;
    match run % 3 {
        0 => Err(Failure::new("cut", "the connection was cut")),
        1 => {
            info.heartbeat(0.25);
            clock().after(Millis::from_days(1)).await;
            Ok((None, found))
        }
        _ => Ok((info.progress, found)),
    }
}

#[tickover::workflow("copying")]
async fn copying(ctx: Ctx, padding: usize) -> Result<(Option<f64>, BTreeMap<String, u32>)> {
    Ok(ctx.step(copies(padding)).await?)
}

#[tokio::test]
async fn the_next_attempt_gets_details_and_progress_also_of_a_lost_worker() {
    for (id, padding) in [("short", 0), ("long", 155)] {
        let scene = Scene::new();
        let registry = Registry::new().with(copying).with_step::<copies>();
        scene.start(&copying, id, &padding).await;
        scene.inside(scene.pass(&scene.worker(registry.clone()), Millis::from_secs(30))).await;
        assert!(task_of(&scene, id, "copies").await.details.is_some());
        let ended = scene.inside(scene.finish(&scene.worker(registry), id)).await;
        let (progress, found) = ended.output::<(Option<f64>, BTreeMap<String, u32>)>();
        assert_eq!((progress, found.len()), (Some(0.25), 2), "{found:?}");
    }
}
