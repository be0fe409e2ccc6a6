//! Timeouts of attempts: what follows an attempt that takes too long, inline and remote, and when workers are lost.

use std::pin::pin;
use std::sync::OnceLock;

use tickover::prelude::*;
use tickover::{Failure, Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::task;

use crate::fencing::run_for;
use crate::scene::{Count, Ended, START, Scene, clock, settings, shown};

/// Takes too long in its first `times` attempts, and then returns the number of the attempt.
#[tickover::step]
async fn slow_at_first(times: u32) -> Result<u32, Failure> {
    let attempt = step_info().map_or(0, |info| info.attempt);
    if attempt <= times {
        clock().after(Millis::from_secs(1_000)).await;
    }
    Ok(attempt)
}

fn bounded(times: u32) -> Step<u32, Failure> {
    slow_at_first(times).attempt_timeout("30s").retry("fixed(2, 2s)")
}

#[tickover::workflow("in-place")]
async fn in_place(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    let mut seen = Vec::new();
    let mut begin = ctx.now("t").await?;
    let steps = [
        bounded(2).named("third"),
        bounded(3).named("never"),
        bounded(1).named("terminal").on_timeout(OnTimeout::Terminal),
        bounded(1).named("cancel").on_timeout(OnTimeout::Cancel),
        // 30 s, a wait of 2 s, and then only 8 s more.
        bounded(2).named("all").timeout("40s"),
        bounded(1).named("doomed").timeout("32s"),
        bounded(1).named("once").at_most_once(),
    ];
    for (index, step) in steps.into_iter().enumerate() {
        let outcome = ctx.step(step).await;
        let end = ctx.now(format!("t[{index}]")).await?;
        seen.push(format!("{} {}", end.since(begin).as_u64() / 1_000, shown(outcome)));
        begin = end;
    }
    Ok(seen)
}

fn attempts_of(ended: &Ended, step: &str) -> Option<u32> {
    let attempts = ended.journal.iter().find_map(|entry| match &entry.what {
        Happened::Step { name, attempts, .. } if name.as_str() == step => Some(*attempts),
        _ => None,
    });
    attempts.unwrap()
}

#[tokio::test]
async fn an_inline_attempt_that_times_out_follows_the_policy_of_its_step() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(in_place));
    scene.start(&in_place, "in-place", &()).await;
    let ended = scene.inside(scene.finish(&worker, "in-place")).await;
    let expected = [
        "64 Ok(3)",
        "94 never timed out: start_to_close",
        "30 terminal timed out: start_to_close",
        "30 cancel was cancelled: start_to_close",
        "40 all timed out: schedule_to_close",
        "30 doomed timed out: schedule_to_close",
        "30 once timed out: start_to_close",
    ];
    assert_eq!(ended.output::<Vec<String>>(), expected);
    for (step, attempts) in [("third", 3), ("never", 3), ("terminal", 1), ("all", 2), ("once", 1)] {
        assert_eq!(attempts_of(&ended, step), Some(attempts), "{step}");
    }
}

#[tickover::workflow("attempts-elsewhere")]
async fn elsewhere_too(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    let mut seen = Vec::new();
    let mut begin = ctx.now("t").await?;
    let steps = [
        bounded(2).named("third"),
        bounded(3).named("never"),
        bounded(1).named("terminal").on_timeout(OnTimeout::Terminal),
        bounded(1).named("cancel").on_timeout(OnTimeout::Cancel),
        bounded(2).named("all").timeout("40s"),
    ];
    for (index, step) in steps.into_iter().enumerate() {
        let outcome = ctx.step(step.on_queue("elsewhere")).await;
        let end = ctx.now(format!("t[{index}]")).await?;
        seen.push(format!("{} {}", end.since(begin).as_u64() / 1_000, shown(outcome)));
        begin = end;
    }
    Ok(seen)
}

#[tokio::test]
async fn a_remote_attempt_that_times_out_follows_the_policy_of_its_step() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(elsewhere_too), "workflows");
    let elsewhere = scene.worker_of(Registry::new().with_step::<slow_at_first>(), "elsewhere");
    scene.start(&elsewhere_too, "elsewhere", &()).await;
    let ended = scene.inside(scene.with(&elsewhere, scene.finish(&worker, "elsewhere"))).await;
    let expected = [
        "64 Ok(3)",
        "94 never timed out: start_to_close",
        "30 terminal timed out: start_to_close",
        "30 cancel was cancelled: start_to_close",
        "40 all timed out: schedule_to_close",
    ];
    assert_eq!(ended.output::<Vec<String>>(), expected);
}

#[tickover::workflow("long-wait")]
async fn long_wait(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(slow_at_first(1).attempt_timeout("30s").retry("fixed(1, 1h)")).await?)
}

#[tokio::test]
async fn a_timed_out_attempt_is_recorded_during_a_long_wait_with_the_same_code_as_in_tasks() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(long_wait));
    scene.start(&long_wait, "long", &()).await;
    let ended = scene.inside(scene.finish(&worker, "long")).await;
    assert_eq!(ended.output::<u32>(), 2);
    let timed_out: Vec<&Entry> = ended.journal.iter().filter(|entry| failed(&entry.what).is_some()).collect();
    assert_eq!(timed_out.len(), 1);
    assert_eq!(timed_out[0].at, START.plus(Millis::from_secs(30)));
    let error = failed(&timed_out[0].what).unwrap();
    assert_eq!(error.code, "timed_out");
    assert!(error.message.contains("2026-01-01T00:00:30.000Z"), "{}", error.message);
}

fn failed(what: &Happened) -> Option<&task::Failure> {
    match what {
        Happened::Attempt { error, .. } => error.as_ref(),
        _ => None,
    }
}

static TURNS: Count = Count::new();

#[tickover::workflow("watched")]
async fn watched(ctx: Ctx, (): ()) -> Result<u32> {
    TURNS.add();
    // The wait before the retry is longer than the time for which only the worker itself may record that the attempt
    // has timed out.
    let step = slow_at_first(2).attempt_timeout("30s").retry("fixed(2, 5s)").timeout("10m");
    Ok(ctx.step(step).await?)
}

#[tokio::test]
async fn a_worker_that_waits_for_a_retry_does_not_count_as_lost_under_a_timeout_over_all_attempts() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(watched));
    let other = scene.worker(Registry::new().with(watched));
    scene.start(&watched, "watched", &()).await;
    let ended = scene.inside(scene.with(&other, scene.finish(&worker, "watched"))).await;
    assert_eq!(ended.output::<u32>(), 3);
    assert_eq!(TURNS.get(), 1);
}

static RUNS: Count = Count::new();

/// Never ends.
#[tickover::step]
async fn endless() -> Result<(), Failure> {
    RUNS.add();
    clock().after(Millis::from_secs(100_000)).await;
    Ok(())
}

#[tickover::workflow("lost")]
async fn lost(ctx: Ctx, kind: String) -> Result<String> {
    let step = endless().attempt_timeout("30s").retry("fixed(2, 10s)");
    let step = match kind.as_str() {
        "window" => step.timeout("100s"),
        "once" => step.at_most_once(),
        _ => step,
    };
    Ok(ctx.step(step).await.unwrap_err().to_string())
}

/// Loses a worker in the first attempt, with a lease of one minute. Returns the ended execution and how often the step
/// was started.
async fn lose_a_worker_of(kind: &str) -> (Ended, u32) {
    let scene = Scene::new();
    let frozen = scene.worker(Registry::new().with(lost));
    let other = scene.worker(Registry::new().with(lost));
    scene.start(&lost, "lost", &kind.to_owned()).await;
    let before = RUNS.get();
    let mut frozen = pin!(frozen.run(std::future::pending()));
    run_for(&scene, &mut frozen, Millis::from_secs(5)).await;
    let ended = scene.inside(scene.finish(&other, "lost")).await;
    (ended, RUNS.get() - before)
}

#[tokio::test]
async fn the_time_of_a_lost_attempt_counts_under_a_timeout_over_all_attempts() {
    // All cases are in one test because they share the counter `RUNS`.
    let (ended, begun) = lose_a_worker_of("window").await;
    assert!(ended.output::<String>().contains("timed out (schedule_to_close)"));
    // The lost attempt doesn't count, but its time does: after the next one there is none left.
    assert_eq!((attempts_of(&ended, "endless"), begun), (Some(1), 2));
    assert!((90_000..101_000).contains(&ended.took()), "{}", ended.took());

    // The step is not started again.
    let (ended, begun) = lose_a_worker_of("once").await;
    assert!(ended.output::<String>().contains("timed out"));
    assert_eq!((attempts_of(&ended, "endless"), begun), (Some(1), 1));
    assert!((30_000..33_000).contains(&ended.took()), "{}", ended.took());

    // The start of the attempt was not recorded, so it doesn't count.
    let (ended, begun) = lose_a_worker_of("plain").await;
    assert!(ended.output::<String>().contains("timed out"));
    assert_eq!((attempts_of(&ended, "endless"), begun), (Some(3), 4));
}

/// Blocks its thread for this many seconds.
#[tickover::step]
async fn busy(seconds: u64) -> Result<u32, Failure> {
    clock().block(Millis::from_secs(seconds));
    Ok(1)
}

#[tickover::step]
async fn busy_and_bad(seconds: u64) -> Result<u32, Failure> {
    clock().block(Millis::from_secs(seconds));
    Err(Failure::new("bad", "in the end"))
}

#[tickover::workflow("blocking")]
async fn blocking(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    let steps = [
        busy(29).named("in-time").timeout("30s"),
        busy(30).named("at-once").timeout("30s"),
        busy(31).named("late").timeout("30s"),
        busy(31).named("late-attempt").attempt_timeout("30s").retry("fixed(1, 0s)"),
        busy(31).named("noted").timeout("30s").at_most_once(),
        busy_and_bad(31).named("bad").timeout("30s").retry("fixed(1, 0s)"),
        busy(31).named("free"),
    ];
    let mut seen = Vec::new();
    for step in steps {
        seen.push(shown(ctx.step(step).await));
    }
    Ok(seen)
}

#[tokio::test]
async fn a_result_after_the_timeout_is_discarded_even_if_the_step_could_not_be_stopped() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(blocking));
    scene.start(&blocking, "blocking", &()).await;
    let ended = scene.inside(scene.finish(&worker, "blocking")).await;
    let expected = [
        "Ok(1)",
        "at-once timed out: schedule_to_close",
        "late timed out: schedule_to_close",
        "late-attempt timed out: start_to_close",
        "noted timed out: schedule_to_close",
        "bad timed out: schedule_to_close",
        "Ok(1)",
    ];
    assert_eq!(ended.output::<Vec<String>>(), expected);
    assert_eq!(attempts_of(&ended, "late-attempt"), Some(2));
}

/// When the code below first asked for its sleep. A replay asks again.
static FELL_ASLEEP: OnceLock<u64> = OnceLock::new();

/// Its own code blocks its thread for 10 s before each of its waits.
#[tickover::workflow("slow-code")]
async fn slow_code(ctx: Ctx, (): ()) -> Result<(u32, u64)> {
    clock().block(Millis::from_secs(10));
    let step = ctx.step(busy(29).named("step").timeout("30s")).await?;
    clock().block(Millis::from_secs(10));
    let fell_asleep = *FELL_ASLEEP.get_or_init(|| clock().passed());
    ctx.sleep("nap", "30s").await?;
    Ok((step, clock().passed() - fell_asleep))
}

#[tokio::test]
async fn timeouts_and_sleeps_count_from_when_the_code_asks_for_them() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(slow_code));
    scene.start(&slow_code, "slow-code", &()).await;
    let ended = scene.inside(scene.finish(&worker, "slow-code")).await;
    let (step, slept) = ended.output::<(u32, u64)>();
    assert_eq!(step, 1);
    assert!(slept >= 30_000, "{slept}");
}

/// Takes 200 s, and reports every 5 s that it is alive.
#[tickover::step(queue = "elsewhere", heartbeat = "9s", retry = "fixed(1, 1s)")]
async fn long() -> Result<u32, Failure> {
    let attempt = step_info().map_or(0, |info| info.attempt);
    for _ in 0..40 {
        clock().after(Millis::from_secs(5)).await;
        step_info().iter().for_each(tickover::StepInfo::beat);
    }
    Ok(attempt)
}

#[tickover::workflow("heartbeats")]
async fn heartbeats(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(long()).await?)
}

#[tokio::test]
async fn code_that_reports_every_few_seconds_stays_within_its_heartbeat_timeout() {
    // The lease is far longer than the heartbeat timeout. On Lambda the worker sends no heartbeats of its own.
    for heartbeat in [None, Some(Millis::ZERO)] {
        let scene = Scene::new();
        let worker = scene.worker_of(Registry::new().with(heartbeats), "workflows");
        let settings = WorkerSettings {
            lease: Millis::from_secs(600),
            heartbeat,
            queues: vec![tickover::QueueName::parse("elsewhere").unwrap()],
            ..settings()
        };
        let registry = Registry::new().with_step::<long>();
        let elsewhere = Worker::new(scene.service.clone(), registry, settings).unwrap();
        scene.start(&heartbeats, "beats", &()).await;
        let ended = scene.inside(scene.with(&elsewhere, scene.finish(&worker, "beats"))).await;
        assert_eq!(ended.output::<u32>(), 1);
        assert!((200_000..211_000).contains(&ended.took()), "{}", ended.took());
    }
}

#[tokio::test]
async fn a_remote_step_whose_worker_sends_no_heartbeat_is_retried() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(heartbeats), "workflows");
    let registry = || Registry::new().with_step::<long>();
    let frozen = scene.worker_of(registry(), "elsewhere");
    let other = scene.worker_of(registry(), "elsewhere");
    scene.start(&heartbeats, "silence", &()).await;
    scene.pass(&worker, Millis::from_secs(1)).await;
    let mut frozen = pin!(frozen.run(std::future::pending()));
    run_for(&scene, &mut frozen, Millis::from_secs(1)).await;
    let ended = scene.inside(scene.with(&other, scene.finish(&worker, "silence"))).await;
    assert_eq!(ended.output::<u32>(), 2);
    // The first worker claimed it during the second second.
    assert!((211_000..223_000).contains(&ended.took()), "{}", ended.took());
}

static LATE: Count = Count::new();

#[tickover::step(queue = "elsewhere", attempt_timeout = "5s", retry = "fixed(1, 1s)")]
async fn late() -> Result<(), Failure> {
    clock().after(Millis::from_secs(10)).await;
    LATE.add();
    Ok(())
}

#[tickover::workflow("stopped")]
async fn stopped(ctx: Ctx, (): ()) -> Result<String> {
    Ok(shown(ctx.step(late()).await))
}

#[tokio::test]
async fn a_worker_stops_a_remote_step_when_its_attempt_times_out() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(stopped), "workflows");
    let elsewhere = scene.worker_of(Registry::new().with_step::<late>(), "elsewhere");
    scene.start(&stopped, "stopped", &()).await;
    let ended = scene.inside(scene.with(&elsewhere, scene.finish(&worker, "stopped"))).await;
    assert_eq!(ended.output::<String>(), "late timed out: start_to_close");
    scene.inside(scene.with(&elsewhere, scene.pass(&worker, Millis::from_secs(60)))).await;
    assert_eq!(LATE.get(), 0);
}
