//! Events: buffered, typed, first in, first out.

use tickover::prelude::*;
use tickover::{EventError, Registry, forever, remote, within};
use tickover_core::duration::Millis;
use tickover_core::payload::Json;
use tickover_service::executions::Work;

use crate::scene::{Count, Scene};

#[tickover::workflow("in-order")]
async fn in_order(ctx: Ctx, (): ()) -> Result<Vec<u32>> {
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(ctx.wait_for_event("number", forever()).await?);
    }
    Ok(seen)
}

#[tokio::test]
async fn events_are_buffered_and_taken_in_the_order_in_which_they_were_sent() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(in_order));
    scene.start(&in_order, "in-order", &()).await;
    scene.send_event("in-order", "number", 1).await;
    scene.pass(&worker, Millis::from_secs(60)).await;
    scene.send_event("in-order", "other", 9).await;
    scene.send_event("in-order", "number", 2).await;
    scene.send_event("in-order", "number", 3).await;
    let ended = scene.finish(&worker, "in-order").await;
    assert_eq!(ended.output::<Vec<u32>>(), [1, 2, 3]);
}

#[tickover::workflow("waits")]
async fn waits(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(match ctx.wait_for_event::<u32>("e", within("1h")).await {
            Ok(number) => number.to_string(),
            Err(error @ EventError::Timeout { .. }) => error.to_string(),
            Err(EventError::Unreadable { problem, .. } | EventError::Invalid { problem, .. }) => problem,
        });
    }
    ctx.sleep("s", "1h").await?;
    Ok(seen)
}

#[tokio::test]
async fn a_wait_ends_with_an_event_in_time_or_without() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(waits));
    scene.start(&waits, "waits", &()).await;
    scene.pass(&worker, Millis::from_secs(5_000)).await;
    scene.send_event("waits", "e", "not a number").await;
    scene.send_event("waits", "e", 5).await;
    let ended = scene.finish(&worker, "waits").await;
    let seen = ended.output::<Vec<String>>();
    assert_eq!(seen[0], "no event `e` came within 1h");
    assert!(seen[1].contains("invalid type"), "{}", seen[1]);
    assert_eq!(seen[2], "5");
    assert!((8_600_000..8_603_000).contains(&ended.took()), "{}", ended.took());
}

#[tickover::workflow("looks")]
async fn looks(ctx: Ctx, (): ()) -> Result<(Option<u32>, Option<u32>, usize, usize, usize)> {
    let none: Option<u32> = ctx.peek_event("e").await?;
    ctx.wait_for_event::<()>("go", forever()).await?;
    let first: Option<u32> = ctx.peek_event("e").await?;
    let before = ctx.count_events("e").await?;
    let drained = ctx.clear_events("e").await?;
    let after = ctx.count_events("e").await?;
    ctx.wait_for_event::<()>("go", forever()).await?;
    Ok((none, first, before, drained, after))
}

#[tokio::test]
async fn answers_about_events_stay_the_same_in_replays_although_more_events_come() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(looks));
    scene.start(&looks, "looks", &()).await;
    scene.pass(&worker, Millis::from_secs(60)).await;
    for number in 1..=3 {
        scene.send_event("looks", "e", number).await;
    }
    scene.send_event("looks", "go", ()).await;
    scene.pass(&worker, Millis::from_secs(60)).await;
    scene.send_event("looks", "e", 4).await;
    scene.send_event("looks", "go", ()).await;
    let ended = scene.finish(&worker, "looks").await;
    let expected = (None, Some(1), 3, 3, 0);
    assert_eq!(ended.output::<(Option<u32>, Option<u32>, usize, usize, usize)>(), expected);
    assert_eq!(ended.described.execution.pending_events, 1);
}

#[tickover::workflow("large-events")]
async fn large_events(ctx: Ctx, (): ()) -> Result<usize> {
    let (a, b): (String, String) =
        (ctx.wait_for_event("text", forever()).await?, ctx.wait_for_event("text", within("1d")).await?);
    ctx.sleep("s", "1m").await?;
    Ok(a.len() + b.len())
}

#[tokio::test]
async fn large_events_are_read_from_their_own_items() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(large_events));
    scene.start(&large_events, "large", &()).await;
    scene.send_event("large", "text", "x".repeat(100_000)).await;
    scene.send_event("large", "text", "y".repeat(3_000)).await;
    assert_eq!(scene.finish(&worker, "large").await.output::<usize>(), 103_000);
}

#[tickover::workflow("runs")]
async fn runs(ctx: Ctx, sum: u32) -> Result<(u32, u32)> {
    if ctx.run() == 3 {
        return Ok((sum, ctx.run()));
    }
    let number: u32 = ctx.wait_for_event("number", forever()).await?;
    ctx.continue_as_new(sum + number).await
}

#[tokio::test]
async fn events_wait_for_the_next_run() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(runs));
    scene.start(&runs, "runs", &100).await;
    scene.send_event("runs", "number", 10).await;
    scene.send_event("runs", "number", 1).await;
    assert_eq!(scene.finish(&worker, "runs").await.output::<(u32, u32)>(), (111, 3));
}

#[tickover::step]
async fn slow(seconds: u64) -> Result<u64, tickover::Failure> {
    crate::scene::clock().after(Millis::from_secs(seconds)).await;
    Ok(seconds)
}

#[tickover::workflow("busy-runs")]
async fn busy_runs(ctx: Ctx, sum: u32) -> Result<u32> {
    if ctx.run() == 2 {
        let number: u32 = ctx.wait_for_event("number", within("1h")).await?;
        return Ok(sum + number);
    }
    ctx.wait_for_event::<u32>("number", forever()).await?;
    ctx.step(slow(10)).await?;
    ctx.continue_as_new(sum).await
}

#[tokio::test]
async fn an_event_that_comes_just_before_the_next_run_is_not_lost() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(busy_runs));
    scene.start(&busy_runs, "busy", &100).await;
    scene.send_event("busy", "number", 1).await;
    let offer = async {
        // The event arrives during the step: the turn's next write is the one that starts the next run.
        scene.after(Millis::from_secs(5)).await;
        scene.send_event("busy", "number", 7).await;
        scene.after(Millis::from_secs(60)).await;
    };
    scene.inside(scene.until(&worker, offer)).await;
    assert_eq!(scene.inside(scene.finish(&worker, "busy")).await.output::<u32>(), 107);
}

static RUNS: Count = Count::new();

#[tickover::step]
async fn counted(seconds: u64) -> Result<u64, tickover::Failure> {
    RUNS.add();
    crate::scene::clock().after(Millis::from_secs(seconds)).await;
    Ok(seconds)
}

/// Waits while a step runs: what arrives meanwhile doesn't tell its turn.
#[tickover::workflow("beside-a-step")]
async fn beside_a_step(ctx: Ctx, (): ()) -> Result<(u64, Option<u32>, Option<u32>, Option<u32>)> {
    let own = ctx.wait_for_event::<u32>("own", within("10s"));
    let limited = ctx.timeout("limit", "10s", ctx.wait_for_event::<u32>("limited", forever()));
    let far = ctx.timeout("far-limit", "10s", ctx.step(remote::<u32>("far", ()).on_queue("printers")));
    let (slow, own, limited, far) = futures::join!(ctx.step(counted(15)), own, limited, far);
    Ok((slow?, own.ok(), limited.ok().transpose()?, far.ok().transpose()?))
}

#[tokio::test]
async fn what_arrives_in_time_while_a_turn_runs_counts_before_the_time_that_passes_in_it() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(beside_a_step));
    scene.start(&beside_a_step, "busy", &()).await;
    let arrives = async {
        scene.after(Millis::from_secs(5)).await;
        scene.send_event("busy", "own", 1).await;
        scene.send_event("busy", "limited", 2).await;
        let Some(Work::Task(task)) = scene.work("printers", Millis::from_secs(60)).await.pop() else {
            unreachable!("the remote step waits for a worker")
        };
        scene.service.complete(&task.task.id, &task.token, Json::parse("3")).await.unwrap();
    };
    let (ended, ()) = scene.inside(futures::future::join(scene.finish(&worker, "busy"), arrives)).await;
    assert_eq!(
        ended.output::<(u64, Option<u32>, Option<u32>, Option<u32>)>(),
        (15, Some(1), Some(2), Some(3))
    );
    assert_eq!(RUNS.get(), 1);
}
