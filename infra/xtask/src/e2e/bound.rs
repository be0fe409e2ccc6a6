//! What an acceptance on an account may cost at most, in US dollars, by the prices of `tickover cost`.
//!
//! It is the bill of a whole month for all that is deployed, with more work than the tests have. So it also holds if the
//! clean-up fails and nobody looks for a month.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cargo::{output, target_dir, without_cargos_own};
use crate::test;

/// The tests' own system, and the one that a test deploys, updates and deletes.
pub(super) const SYSTEMS: u32 = 2;
/// The orders worker, and two queues for workers elsewhere, which count as workers here: their alarms cost the same.
const WORKERS: u32 = 3;
/// Work: the tests start fewer than ten executions and twenty tasks, with at most 40 remote steps.
const EXECUTIONS: u32 = 20;
const REMOTE_STEPS: u32 = 40;
const TASKS: u32 = 100;
/// Tests that wait at the same time, and the requests of each in a second.
const WAITING_TESTS: u64 = 20;
const LOOKS_A_SECOND: u64 = 2;
/// Metrics that are read if the dashboard is looked at once a minute, and the price of reading a thousand
/// (aws.amazon.com/cloudwatch/pricing, June 2026).
const METRICS_A_MINUTE: f64 = 500.0;
const THOUSAND_METRICS_PRICE: f64 = 0.01;
/// The secret of callbacks for a month (aws.amazon.com/secrets-manager/pricing, 2026).
const SECRET_PRICE: f64 = 0.40;

/// The bound for a run of at most this time.
pub(super) fn usd(limit: Duration) -> Result<f64> {
    test::build()?;
    let mut tool = Command::new(target_dir()?.join("debug/tickover"));
    let bill = output(without_cargos_own(&mut tool).args(arguments(limit)))?;
    sum(&bill, limit)
}

/// The arguments of `tickover`: one system with all the work.
fn arguments(limit: Duration) -> Vec<String> {
    let requests = WAITING_TESTS * LOOKS_A_SECOND * limit.as_secs();
    let numbers: [(&str, u64); 8] = [
        ("--workers", WORKERS.into()),
        ("--executions", EXECUTIONS.into()),
        ("--remote-steps", REMOTE_STEPS.into()),
        ("--fan-outs", REMOTE_STEPS.into()),
        ("--sleeps", 1),
        ("--events", 1),
        ("--tasks", TASKS.into()),
        ("--http-requests", requests),
    ];
    let numbers = numbers.iter().flat_map(|(name, value)| [(*name).to_owned(), value.to_string()]);
    let flags = ["cost", "--json", "--paid-dashboard", "--deadlines", "--attempt-timeouts"];
    flags.map(str::to_owned).into_iter().chain(numbers).collect()
}

/// The bound by the bill of one system.
fn sum(bill: &str, limit: Duration) -> Result<f64> {
    let bill: Value = serde_json::from_str(bill).context("`tickover cost` printed no JSON")?;
    let system = bill["usd"].as_f64().context("`tickover cost` printed no sum")?;
    let looks = limit.as_secs_f64() / 60.0;
    Ok(f64::from(SYSTEMS) * (system + SECRET_PRICE)
        + looks * METRICS_A_MINUTE / 1000.0 * THOUSAND_METRICS_PRICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_two_systems_for_a_month_and_the_reading_of_metrics() {
        let hour = Duration::from_hours(1);
        let bound = sum(r#"{"lines": [], "usd": 5.0}"#, hour).unwrap();
        assert!((bound - 11.1).abs() < 1e-9, "{bound}");
        sum(r#"{"lines": []}"#, hour).unwrap_err();
        sum("5.0 dollars", hour).unwrap_err();
    }

    #[test]
    fn the_requests_of_the_bound_grow_with_the_time_limit() {
        let requests = |limit| {
            let arguments = arguments(limit);
            let at = arguments.iter().position(|word| word == "--http-requests").unwrap();
            arguments[at + 1].parse::<u64>().unwrap()
        };
        assert_eq!(requests(Duration::from_hours(1)), 144_000);
        assert_eq!(requests(Duration::from_hours(2)), 288_000);
    }
}
