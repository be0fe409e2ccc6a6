//! The workflows that are measured.

use tickover::prelude::*;
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemClock;

/// Returns twice the number.
#[tickover::step]
pub(crate) async fn double(number: u32) -> Result<u32, Failure> {
    Ok(number.wrapping_mul(2))
}

/// Never ends.
#[tickover::step(timeout = "3s")]
pub(crate) async fn never(number: u32) -> Result<u32, Failure> {
    std::future::pending::<()>().await;
    Ok(number)
}

/// One inline step.
#[tickover::workflow("bench-one")]
pub(crate) async fn one(ctx: Ctx, number: u32) -> Result<u32> {
    Ok(ctx.step(double(number)).await?)
}

/// Five inline steps, one after the other.
#[tickover::workflow("bench-five")]
pub(crate) async fn five(ctx: Ctx, number: u32) -> Result<u32> {
    let mut value = number;
    for step in 0..5 {
        value = ctx.step(double(value).named(format!("double[{step}]"))).await?;
    }
    Ok(value)
}

/// `count` remote steps at once.
#[tickover::workflow("bench-fan-out")]
pub(crate) async fn fan_out(ctx: Ctx, count: u32) -> Result<u32> {
    let doubled = ctx.join_all("double", (0..count).map(|number| double(number).remote())).await?;
    Ok(doubled.into_iter().sum())
}

/// Returns by how many milliseconds it woke late.
#[tickover::workflow("bench-sleep")]
pub(crate) async fn sleeper(ctx: Ctx, _nothing: u32) -> Result<i64> {
    let fell_asleep = ctx.now("asleep").await?;
    ctx.sleep("nap", "2s").await?;
    let late = SystemClock.now().as_millis() - fell_asleep.as_millis() - 2_000;
    Ok(late)
}

/// Returns by how many milliseconds its step's timeout was noticed late.
#[tickover::workflow("bench-step-timeout")]
pub(crate) async fn step_timeout(ctx: Ctx, nothing: u32) -> Result<i64> {
    let began = ctx.now("began").await?;
    let outcome = ctx.step(never(nothing)).await;
    let late = SystemClock.now().as_millis() - began.as_millis() - 3_000;
    if outcome.is_ok() {
        return Err(Error::new("no_timeout", "a step that never ends has ended"));
    }
    Ok(late)
}
