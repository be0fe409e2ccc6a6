//! Sleeps, values that are captured once, and names.

use tickover::prelude::*;
use tickover::{Failure, Registry, Timestamp};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, StepOutcome};

use crate::scene::{START, Scene, clock};

#[tickover::step]
async fn echo(number: u32) -> Result<u32, Failure> {
    Ok(number)
}

#[tickover::workflow("instants")]
async fn instants(ctx: Ctx, (): ()) -> Result<u64> {
    ctx.sleep_until("past", START.minus(Millis::from_secs(5))).await?;
    ctx.sleep("nothing", 0.to_string()).await?;
    ctx.sleep_until("tomorrow", START.plus(Millis::from_days(1))).await?;
    ctx.sleep("week", "7d").await?;
    let now: Timestamp = ctx.now("now").await?;
    Ok(now.since(START).as_u64())
}

#[tokio::test]
async fn sleeps_end_at_their_instants_even_if_they_are_far_ahead() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(instants));
    scene.start(&instants, "instants", &()).await;
    let days = scene.finish(&worker, "instants").await.output::<u64>();
    let expected = Millis::from_days(8).as_u64();
    assert!((expected..expected + 1_000).contains(&days), "{days}");
}

#[tickover::workflow("values")]
async fn values(ctx: Ctx, (): ()) -> Result<(u64, String, String, usize, usize)> {
    let now = ctx.now("now").await?;
    let (one, two) = (ctx.uuid("one").await?, ctx.uuid("two").await?);
    let large = ctx.capture("large", || "z".repeat(10_000)).await?;
    ctx.sleep("s", "1h").await?;
    let again = ctx.capture("again", || 7_usize).await?;
    Ok((now.since(START).as_u64(), one, two, large.len(), again))
}

#[tokio::test]
async fn captured_values_are_stored_once() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(values));
    scene.start(&values, "values", &()).await;
    let (now, one, two, large, again) =
        scene.finish(&worker, "values").await.output::<(u64, String, String, usize, usize)>();
    assert_eq!((now, large, again), (0, 10_000, 7));
    assert_ne!(one, two);
    let parts: Vec<usize> = one.split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12]);
    assert_eq!(one.as_bytes()[14], b'8');
}

#[tickover::workflow("names")]
async fn names(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    ctx.step(echo(1)).await?;
    let odd = ctx.step(echo(3).named("no spaces")).await.unwrap_err();
    let never = ctx.step(echo(4).named("never").timeout("soon")).await.unwrap_err();
    let long = ctx.sleep("long", "a while").await.unwrap_err();
    Ok(vec![odd.to_string(), never.to_string(), long.to_string()])
}

#[tokio::test]
async fn an_invalid_name_is_an_error() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(names));
    scene.start(&names, "names", &()).await;
    let told = scene.finish(&worker, "names").await.output::<Vec<String>>();
    let expected = ["no spaces", "`soon`", "`a while`"];
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.contains(expected), "{told}");
    }
}

#[tickover::workflow("repeats")]
async fn repeats(ctx: Ctx, how: String) -> Result<()> {
    ctx.step(echo(1)).await?;
    // The code can't go on, whatever it does with the error.
    let _ =
        if how == "step" { ctx.step(echo(2)).await.is_ok() } else { ctx.sleep("echo", "1s").await.is_ok() };
    ctx.sleep("later", "1h").await?;
    Ok(())
}

#[tokio::test]
async fn a_name_that_is_used_twice_fails_the_run_with_the_name() {
    for how in ["step", "sleep"] {
        let scene = Scene::new();
        let worker = scene.worker(Registry::new().with(repeats));
        scene.start(&repeats, "repeats", &how.to_owned()).await;
        let ended = scene.finish(&worker, "repeats").await;
        assert_eq!(ended.code(), "invalid_step");
        assert!(ended.message().contains(r#""echo" is used twice"#), "{}", ended.message());
        assert_eq!(ended.took(), 0);
    }
}

#[tickover::workflow("budget", timeout = "1h", run_timeout = "10m")]
async fn budget(ctx: Ctx, (): ()) -> Result<(u64, u64)> {
    let now = ctx.clone();
    let before = ctx.capture("before", move || now.remaining().map_or(0, Millis::as_u64)).await?;
    ctx.sleep("s", "2m").await?;
    Ok((before, ctx.remaining().map_or(0, Millis::as_u64)))
}

#[tokio::test]
async fn the_remaining_time_ends_at_the_nearest_deadline() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(budget));
    scene.start(&budget, "budget", &()).await;
    let (before, after) = scene.finish(&worker, "budget").await.output::<(u64, u64)>();
    assert_eq!(before, 600_000);
    assert!((479_000..=480_000).contains(&after), "{after}");
}

#[tickover::step]
async fn scan(seconds: u64) -> Result<u64, Failure> {
    clock().after(Millis::from_secs(seconds)).await;
    Ok(seconds)
}

/// A retry policy can't express this: each attempt has twice as much time as the one before.
#[tickover::workflow("patience")]
async fn patience(ctx: Ctx, (seconds, elsewhere): (u64, bool)) -> Result<(u32, u64)> {
    let mut limit = Millis::from_secs(60);
    for time in 1..=3 {
        let step = scan(seconds).named(format!("scan[{time}]")).timeout(limit);
        match ctx.step(if elsewhere { step.remote() } else { step }).await {
            Err(StepError::TimedOut { .. }) => limit = limit.saturating_mul(2),
            ended => return Ok((time, ended?)),
        }
    }
    Err(Error::new("too_slow", "it isn't done in four minutes"))
}

#[tokio::test]
async fn the_workflows_code_retries_a_timed_out_step_with_more_time() {
    for elsewhere in [false, true] {
        let scene = Scene::new();
        let worker = scene.worker(Registry::new().with(patience).with_step::<scan>());
        scene.start(&patience, "enough", &(200, elsewhere)).await;
        let ended = scene.inside(scene.finish(&worker, "enough")).await;
        assert_eq!(ended.output::<(u32, u64)>(), (3, 200));
        let timed_out =
            |what: &Happened| matches!(what, Happened::Step { outcome: StepOutcome::TimedOut, .. });
        assert_eq!(ended.count(timed_out), 2);
        // One minute, two minutes, and the time that the step takes.
        let expected = (60 + 120 + 200) * 1_000;
        assert!((expected..expected + 5_000).contains(&ended.took()), "{}", ended.took());

        scene.start(&patience, "never", &(300, elsewhere)).await;
        let ended = scene.inside(scene.finish(&worker, "never")).await;
        assert_eq!(ended.code(), "too_slow");
    }
}
