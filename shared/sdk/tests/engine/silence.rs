//! Heartbeat timeouts of inline steps: they ask whether the work goes on, not whether its worker lives.

use tickover::prelude::*;
use tickover::{Expired, ExpiredKind, Failure, Registry};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::Happened;

use crate::scene::{Count, START, Scene, clock};

/// Gives a sign of life every `every` seconds, `beats` times. Then it is silent for `silent` seconds.
#[tickover::step(heartbeat = "10s")]
async fn beating(every: u64, beats: u32, silent: u64) -> Result<(u32, Option<f64>), Failure> {
    let info = step_info().ok_or_else(|| Failure::new("no_step", ""))?;
    for beat in 0..beats {
        clock().after(Millis::from_secs(every)).await;
        info.heartbeat(f64::from(beat + 1) / 10.0);
    }
    // Only the first attempt hangs.
    if info.attempt == 1 {
        clock().after(Millis::from_secs(silent)).await;
    }
    Ok((info.attempt, info.progress))
}

#[tickover::workflow("beats")]
async fn beating_here(ctx: Ctx, (every, beats, silent): (u64, u32, u64)) -> Result<String> {
    let step = beating(every, beats, silent);
    Ok(match ctx.step(step).await {
        Err(StepError::TimedOut { expired: Some(Expired { kind, deadline_at }), .. }) => {
            format!("{} after {} s", kind.as_str(), deadline_at.since(START).as_u64() / 1_000)
        }
        outcome => format!("{outcome:?}"),
    })
}

#[tokio::test]
async fn an_inline_step_whose_code_is_silent_times_out_though_its_worker_lives() {
    for (what, said) in [
        ((9, 20, 9), "Ok((1, None))"),
        ((9, 0, 11), "heartbeat after 10 s"),
        ((9, 3, 1_000), "heartbeat after 37 s"),
    ] {
        let scene = Scene::new();
        let worker = scene.worker(Registry::new().with(beating_here));
        scene.start(&beating_here, "beats", &what).await;
        let ended = scene.inside(scene.finish(&worker, "beats")).await;
        assert_eq!(ended.output::<String>(), said);
    }
}

#[tickover::workflow("again")]
async fn again(ctx: Ctx, (): ()) -> Result<(u32, Option<f64>)> {
    Ok(ctx.step(beating(5, 3, 1_000).retry("fixed(1, 1s)")).await?)
}

#[tokio::test]
async fn after_a_silent_attempt_the_next_one_continues_at_its_progress() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(again));
    scene.start(&again, "again", &()).await;
    let ended = scene.inside(scene.finish(&worker, "again")).await;
    assert_eq!(ended.output::<(u32, Option<f64>)>(), (2, Some(0.3)));
    let errors = ended.journal.iter().find_map(|entry| match &entry.what {
        Happened::Step { errors, .. } => Some(errors.clone()),
        _ => None,
    });
    // The failed attempt has no entry of its own.
    let [failed] = &errors.unwrap()[..] else { panic!("one attempt failed") };
    assert_eq!((failed.attempt, failed.error.code.as_str()), (1, "timed_out"));
    assert_eq!(failed.at, START.plus(Millis::from_secs(25)));
    for part in ["no sign of life", ExpiredKind::Heartbeat.as_str()] {
        assert!(failed.error.message.contains(part), "{}", failed.error.message);
    }
}

/// Copies three files an attempt, and is then silent.
#[tickover::step(heartbeat = "10s", retry = "fixed(2, 1s)")]
async fn copy(files: u32) -> Result<Option<u32>, Failure> {
    let info = step_info().ok_or_else(|| Failure::new("no_step", ""))?;
    let copied: Option<u32> = info.details().map_err(|error| Failure::new("details", error.to_string()))?;
    let first = copied.map_or(0, |last| last + 1);
    for file in first..(first + 3).min(files) {
        clock().after(Millis::from_secs(8)).await;
        info.heartbeat_with(&file).map_err(|error| Failure::new("details", error.to_string()))?;
    }
    if first + 3 < files {
        clock().after(Millis::from_secs(1_000)).await;
    }
    Ok(copied)
}

#[tickover::workflow("copies")]
async fn copies(ctx: Ctx, (): ()) -> Result<Option<u32>> {
    Ok(ctx.step(copy(9)).await?)
}

#[tokio::test]
async fn an_inline_attempt_continues_at_the_details_of_the_one_before_also_if_its_worker_is_lost() {
    // The worker is lost after 30 s in the first attempt's last wait, after 50 s in the second attempt, or not at all.
    for seconds in [30, 50, 200] {
        let scene = Scene::new();
        let registry = || Registry::new().with(copies);
        scene.start(&copies, "copies", &()).await;
        scene.inside(scene.pass(&scene.worker(registry()), Millis::from_secs(seconds))).await;
        let ended = scene.inside(scene.finish(&scene.worker(registry()), "copies")).await;
        let last = ended.output::<Option<u32>>();
        assert!(matches!(last, Some(4..=8)), "after {seconds} s: {last:?}");
    }
}

static TRIES: Count = Count::new();

/// Fails three times.
#[tickover::step(retry = "fixed(3, 1s)")]
async fn flaky() -> Result<(), Failure> {
    match TRIES.add() {
        0 => Err(Failure::new("dns", "no such host")),
        1 => Err(Failure::new("tls", "x".repeat(1_000))),
        2 => Err(Failure::new("http", "503")),
        _ => Ok(()),
    }
}

#[tickover::workflow("texts")]
async fn texts(ctx: Ctx, (): ()) -> Result<()> {
    Ok(ctx.step(flaky()).await?)
}

#[tokio::test]
async fn the_errors_of_inline_attempts_are_in_the_entry_that_is_written_anyway() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(texts));
    scene.start(&texts, "texts", &()).await;
    let ended = scene.inside(scene.finish(&worker, "texts")).await;
    let [only] = &ended.journal[..] else { panic!("{:?}", ended.journal) };
    let Happened::Step { attempts: Some(4), errors, .. } = &only.what else { panic!("{only:?}") };
    let told: Vec<_> = errors.iter().map(|failed| (failed.attempt, failed.error.code.as_str())).collect();
    assert_eq!(told, [(1, "dns"), (2, "tls"), (3, "http")]);
    assert_eq!(errors[0].error.message, "no such host");
    // A long text is cut.
    assert!((50..200).contains(&errors[1].error.message.len()), "{}", errors[1].error.message);
}
