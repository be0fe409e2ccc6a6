//! What the timeout of an inline step costs, by the `ConsumedCapacity` of the database in this process, with the SDK's own worker.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![expect(clippy::float_cmp, reason = "whole units are exact")]

use tickover::Registry;
use tickover::prelude::*;
use tickover_core::duration::Millis;
use tickover_core::limits::Limits;
use tickover_tests::execution_bill::execution_bill;

#[tickover::step(retry = "fixed(2, 0s)")]
async fn work(number: u32, fails: u32) -> Result<u32> {
    let attempt = step_info().map_or(0, |info| info.attempt);
    if attempt <= fails { Err(Error::new("net", "down")) } else { Ok(number) }
}

/// A step with this option.
fn one(option: &str, number: u32, fails: u32) -> Step<u32, Error> {
    let step = work(number, fails).named(format!("work[{number}]"));
    match option {
        "timeout" => step.timeout("5m"),
        "short" => step.timeout("20s"),
        "both" => step.timeout("5m").attempt_timeout("1m").heartbeat("30s"),
        "heartbeat" => step.heartbeat("30s"),
        "attempt" => step.attempt_timeout("1m"),
        "each" => step.timeout("1m").scope(Scope::PerAttempt),
        _ => step,
    }
}

/// Five steps, one after the other or side by side, each of which fails so often.
#[tickover::workflow("five")]
async fn five(ctx: Ctx, (option, beside, fails): (String, bool, u32)) -> Result<u32> {
    let steps = (0..5).map(|number| one(&option, number, fails));
    let mut sum = 0;
    if beside {
        return Ok(futures::future::try_join_all(steps.map(|step| ctx.step(step))).await?.into_iter().sum());
    }
    for step in steps {
        sum += ctx.step(step).await?;
    }
    Ok(sum)
}

/// The write units of an execution, as a function on AWS has them.
async fn writes(option: &str, beside: bool, fails: u32) -> f64 {
    let limits = Limits { short_lease: Millis::from_secs(60), ..Limits::default() };
    let input = format!("[{option:?},{beside},{fails}]");
    let bill = execution_bill(Registry::new().with(five), "five", &input, limits).await.unwrap();
    assert_eq!(bill.output, "10");
    bill.writes
}

#[tokio::test]
async fn a_timeout_over_all_attempts_costs_a_turn_one_write_unit_and_other_timeouts_cost_nothing() {
    for beside in [false, true] {
        let plain = writes("none", beside, 0).await;
        for option in ["timeout", "short", "both", "heartbeat"] {
            let more = writes(option, beside, 0).await - plain;
            assert_eq!(more, 1.0, "{option}, beside each other: {beside}");
        }
        for option in ["attempt", "each"] {
            assert_eq!(writes(option, beside, 0).await, plain, "{option}");
        }
    }
}

/// Attempts after the first one are recorded by no write of their own. Entries of begun attempts fill the record a little
/// sooner, so one more segment may be written.
#[tokio::test]
async fn retries_under_a_timeout_cost_no_write_each() {
    for beside in [false, true] {
        let plain = writes("none", beside, 2).await;
        for option in ["timeout", "short", "both", "heartbeat"] {
            let more = writes(option, beside, 2).await - plain;
            assert!((1.0..=3.0).contains(&more), "{option}, beside each other: {beside}: {more}");
        }
    }
}
