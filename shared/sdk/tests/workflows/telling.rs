//! What a test says about code that can't go on, or that can't be right.

#![expect(clippy::unwrap_used, reason = "a test fails if it doesn't find what it expects")]

use std::time::Duration;

use tickover::prelude::*;
use tickover::test::{BEGINNING, TestEnv};

#[tickover::workflow("order")]
async fn asks_twice(ctx: Ctx) -> Result<u32> {
    ctx.sleep("pause", "1h").await?;
    ctx.sleep("pause", "1h").await?;
    Ok(1)
}

#[tickover::workflow("order")]
async fn renamed(ctx: Ctx) -> Result<u32> {
    ctx.sleep("break", "1h").await?;
    Ok(2)
}

#[tickover::workflow("order")]
async fn repaired(ctx: Ctx) -> Result<u32> {
    ctx.sleep("pause", "1h").await?;
    Ok(3)
}

#[tokio::test]
async fn a_stalled_test_says_why_its_execution_is_stuck_as_its_description_does() {
    let env = TestEnv::new().workflow(asks_twice);
    let run = env.start(&asks_twice, ()).await.unwrap();
    let stalled = async |reason: &str| {
        let error = run.result().await.unwrap_err().to_string();
        assert!(error.contains("stalled") && error.contains(reason), "{error}");
        let stuck = run.describe().await.unwrap().stuck.unwrap();
        assert!(error.contains(&format!("it is stuck, {}: {}", stuck.code, stuck.message)), "{error}");
    };
    stalled("the name \"pause\" is used twice in one run").await;
    env.deploy(renamed).await.unwrap();
    stalled("the code doesn't ask for the stored results of `pause`").await;
    // What was stuck for long is tried again by new code before it is given up.
    env.deploy(repaired).await.unwrap();
    run.resume().await.unwrap();
    assert_eq!(run.result().await, Ok(3));
}

#[tickover::workflow]
async fn waits_for_itself(ctx: Ctx) -> Result<String> {
    let ended = ctx.wait_for_execution::<u32>(ctx.execution_id()).await;
    Ok(ended.unwrap_err().to_string())
}

#[tokio::test]
async fn a_wait_for_ones_own_execution_is_an_error() {
    let env = TestEnv::new().workflow(waits_for_itself);
    let said = env.start(&waits_for_itself, ()).await.unwrap().result().await.unwrap();
    assert!(said.contains("it is this execution, which can't end while it waits"), "{said}");
    assert_eq!(env.now(), BEGINNING);
}

#[tickover::step]
async fn share(total: f64) -> Result<f64> {
    Ok(0.0 / total)
}

#[tickover::workflow]
async fn shares(ctx: Ctx, remotely: bool) -> Result<f64> {
    Ok(if remotely { ctx.step(share(0.0).remote()).await? } else { ctx.step(share(0.0)).await? })
}

#[tickover::workflow]
async fn captures(ctx: Ctx) -> Result<f64> {
    ctx.capture("share", || f64::NAN).await
}

#[tokio::test]
async fn a_value_that_can_not_be_read_back_is_told_when_it_is_written() {
    let env = TestEnv::new().workflow((shares, captures)).step::<share>();
    for run in [
        env.start(&shares, false).await.unwrap(),
        env.start(&shares, true).await.unwrap(),
        env.start(&captures, ()).await.unwrap(),
    ] {
        let error = run.result().await.unwrap_err().to_string();
        assert!(error.contains("serde writes it in a form that it can't read back"), "{error}");
    }
}

#[tickover::step(retry = "fixed(1, 2s)")]
async fn at_the_second_attempt() -> Result<u32> {
    let attempt = step_info().map_or(0, |info| info.attempt);
    if attempt > 1 { Ok(attempt) } else { Err(Error::new("offline", "")) }
}

#[tickover::workflow]
async fn retries(ctx: Ctx) -> Result<u32> {
    Ok(ctx.step(at_the_second_attempt()).await?)
}

#[tokio::test]
async fn a_real_timeout_costs_nothing_while_no_step_runs() {
    let (real_timeout, begun) = (Duration::from_mins(10), std::time::Instant::now());
    let env = TestEnv::new().workflow(retries).real_timeout(real_timeout);
    assert_eq!(env.start(&retries, ()).await.unwrap().result().await, Ok(2));
    assert!(begun.elapsed() < real_timeout, "the wait for the next attempt took real time");
}

/// Two attempts fail, and the third one hangs.
#[tickover::step(retry = "fixed(5, 1s)", timeout = "1m")]
async fn hangs_at_last() -> Result<()> {
    let attempt = step_info().map_or(0, |info| info.attempt);
    if attempt < 3 {
        return Err(Error::new("offline", format!("attempt {attempt}")));
    }
    tokio::time::sleep(Duration::from_hours(1)).await;
    Ok(())
}

/// There is no time for another attempt.
#[tickover::step(retry = "fixed(5, 1h)", timeout = "1m")]
async fn fails_too_late() -> Result<()> {
    Err(Error::new("offline", "the only attempt"))
}

/// Another turn makes the second attempt, which hangs.
#[tickover::step(retry = "fixed(5, 30s)", timeout = "1m")]
async fn hangs_in_another_turn() -> Result<()> {
    if step_info().is_some_and(|info| info.attempt == 1) {
        return Err(Error::new("offline", "in an earlier turn"));
    }
    tokio::time::sleep(Duration::from_hours(1)).await;
    Ok(())
}

#[tickover::step(timeout = "1m")]
async fn hangs_at_once() -> Result<()> {
    tokio::time::sleep(Duration::from_hours(1)).await;
    Ok(())
}

#[tickover::workflow]
async fn too_late(ctx: Ctx, remotely: bool) -> Result<Vec<String>> {
    let steps = [hangs_at_last(), fails_too_late(), hangs_in_another_turn(), hangs_at_once()];
    let mut last = vec![];
    for step in steps {
        let step = if remotely { step.remote() } else { step };
        last.push(match ctx.step(step).await {
            Err(StepError::TimedOut { last_error: Some(error), .. }) => error.to_string(),
            Err(StepError::TimedOut { last_error: None, .. }) => "nothing".to_owned(),
            other => format!("{other:?}"),
        });
        ctx.sleep(format!("replay[{}]", last.len()), "1h").await?;
    }
    Ok(last)
}

#[tokio::test]
async fn a_step_that_timed_out_has_the_last_error_of_its_attempts_wherever_it_was_recorded() {
    let env = TestEnv::new().workflow(too_late);
    let env = env.step::<hangs_at_last>().step::<fails_too_late>();
    let env = env.step::<hangs_in_another_turn>().step::<hangs_at_once>();
    for remotely in [false, true] {
        let last = env.start(&too_late, remotely).await.unwrap().result().await.unwrap();
        let errors =
            ["attempt 2", "the only attempt", "in an earlier turn"].map(|text| format!("offline: {text}"));
        assert_eq!(last, [&errors[..], &["nothing".to_owned()]].concat(), "remotely: {remotely}");
    }
}
