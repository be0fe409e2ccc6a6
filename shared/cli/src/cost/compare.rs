//! What other services charge for the same executions: their own operations and storage, without the functions or
//! machines that run the steps, and without requests for starts and events. List prices, without free tiers; those of
//! AWS for us-east-1.

use serde::Serialize;

use super::CostArgs;
use super::bill::{GB, MILLION, MONTH_DAYS, count};

/// A million durable operations; a GB written; a GB retained for a month.
const DURABLE_OPERATIONS: f64 = 8.0;
const DURABLE_WRITTEN_GB: f64 = 0.25;
const DURABLE_RETAINED_GB: f64 = 0.15;
/// A million state transitions of a standard workflow.
const TRANSITIONS: f64 = 25.0;
/// A million express workflows; a GB-second of them, in steps of 64 MB and 100 ms.
const EXPRESS_STARTS: f64 = 1.0;
const EXPRESS_GB_SECOND: f64 = 0.000_016_67;
const EXPRESS_STEP_MS: f64 = 100.0;
const EXPRESS_MEMORY_GB: f64 = 64.0 / 1_024.0;
/// A million actions; a GB of history for an hour, of open and of closed executions; the part of them that the plan
/// without a base fee adds.
const ACTIONS: f64 = 50.0;
const ACTIVE_GB_HOUR: f64 = 0.042;
const RETAINED_GB_HOUR: f64 = 0.001_05;
const PLAN_PART: f64 = 0.10;
/// The plan of a month that Cloudflare's Workflows need; a million of their instances; a GB kept for a month.
const PAID_PLAN: f64 = 5.0;
const INSTANCES: f64 = 0.30;
const KEPT_GB: f64 = 0.20;
/// A million steps of Vercel's Workflows; a GB kept for an hour.
const VERCEL_STEPS: f64 = 25.0;
const VERCEL_GB_HOUR: f64 = 0.000_69;

/// The price of one service.
#[derive(Serialize)]
pub(super) struct Other {
    pub(super) service: &'static str,
    pub(super) usd: f64,
    /// The same for a million of the operations that durable functions and Temporal count: starts, steps, sleeps, events.
    pub(super) usd_a_million: f64,
    /// What is billed, with the number for each execution.
    pub(super) billed: String,
    /// Where the prices are published, and when they were read.
    pub(super) page: &'static str,
}

pub(super) fn others(args: &CostArgs) -> Vec<Other> {
    vec![durable(args), standard(args), express(args), temporal(args), cloudflare(args), vercel(args)]
}

/// What a million operations cost, if all of them cost this.
pub(super) fn a_million(args: &CostArgs, usd: f64) -> f64 {
    usd / (count(args.executions) * operations(args)) * MILLION
}

/// The price of so many dollars for all executions.
fn priced(args: &CostArgs, service: &'static str, usd: f64, billed: String, page: &'static str) -> Other {
    let usd_a_million = a_million(args, usd);
    Other { service, usd, usd_a_million, billed, page }
}

/// The start, the steps, the sleeps, and the waits for events.
fn operations(args: &CostArgs) -> f64 {
    1.0 + steps(args) + args.sleeps + args.events
}

fn steps(args: &CostArgs) -> f64 {
    args.inline_steps + args.remote_steps
}

/// What all executions of the month write.
fn written_gb(args: &CostArgs) -> f64 {
    count(args.executions) * operations(args) * args.stored_bytes / GB
}

fn durable(args: &CostArgs) -> Other {
    let operations = operations(args);
    let written = written_gb(args);
    let retained = written * f64::from(args.retention_days) / MONTH_DAYS;
    let usd = count(args.executions) * operations * DURABLE_OPERATIONS / MILLION
        + written * DURABLE_WRITTEN_GB
        + retained * DURABLE_RETAINED_GB;
    let billed =
        format!("$8 a million operations, {operations} an execution; $0.25 a GB written, $0.15 a GB-month");
    priced(
        args,
        "Lambda durable functions",
        usd,
        billed,
        "aws.amazon.com/lambda/pricing, September 2026; stored bytes December 2025",
    )
}

fn standard(args: &CostArgs) -> Other {
    // Remote steps that start together are branches of a state of their own.
    let transitions = operations(args) + args.joins();
    let usd = count(args.executions) * transitions * TRANSITIONS / MILLION;
    let billed = format!("$25 a million state transitions, {transitions} an execution");
    priced(
        args,
        "Step Functions, standard",
        usd,
        billed,
        "aws.amazon.com/step-functions/pricing, September 2026",
    )
}

/// Only the time of the steps: an express workflow lasts at most five minutes, and can't wait for events.
fn express(args: &CostArgs) -> Other {
    let ms = (steps(args) * args.invocation_ms / EXPRESS_STEP_MS).ceil() * EXPRESS_STEP_MS;
    let usd = count(args.executions)
        * (EXPRESS_STARTS / MILLION + ms / 1_000.0 * EXPRESS_MEMORY_GB * EXPRESS_GB_SECOND);
    let limit = if args.sleeps + args.events > 0.0 {
        "; at most 5 minutes, so without the sleeps and events"
    } else {
        ""
    };
    let billed = format!("$1 a million starts, $0.00001667 a GB-second{limit}");
    priced(args, "Step Functions, express", usd, billed, "aws.amazon.com/step-functions/pricing, March 2026")
}

fn temporal(args: &CostArgs) -> Other {
    let actions = operations(args);
    let written = written_gb(args);
    let before_plan = count(args.executions) * actions * ACTIONS / MILLION
        + written * args.open_hours * ACTIVE_GB_HOUR
        + written * f64::from(args.retention_days) * 24.0 * RETAINED_GB_HOUR;
    let usd = before_plan * (1.0 + PLAN_PART);
    let billed = format!(
        "$50 a million actions, {actions} an execution; $0.042 an active and $0.00105 a retained GB-hour; 10% for the plan"
    );
    priced(args, "Temporal Cloud", usd, billed, "docs.temporal.io/cloud/pricing, 2026")
}

/// Without the processor's time, which the steps' code uses there. Steps, sleeps and events aren't billed.
fn cloudflare(args: &CostArgs) -> Other {
    let kept = written_gb(args) * f64::from(args.retention_days) / MONTH_DAYS;
    let usd = PAID_PLAN + count(args.executions) * INSTANCES / MILLION + kept * KEPT_GB;
    let billed =
        "$5 for the plan, $0.30 a million instances, $0.20 a GB-month; the steps' processor time is extra"
            .to_owned();
    priced(
        args,
        "Cloudflare Workflows",
        usd,
        billed,
        "developers.cloudflare.com/workflows/reference/pricing, a copy of 2025",
    )
}

/// Without the requests to its queues, whose number for a run isn't published, nor the price of bytes that are written.
fn vercel(args: &CostArgs) -> Other {
    let hours = f64::from(args.retention_days) * 24.0;
    let steps = steps(args);
    let usd =
        count(args.executions) * steps * VERCEL_STEPS / MILLION + written_gb(args) * hours * VERCEL_GB_HOUR;
    let billed = format!(
        "$2.50 for 100,000 steps, {steps} an execution; $0.00069 a GB-hour; its queues are extra, not published for a run"
    );
    priced(args, "Vercel Workflows", usd, billed, "vercel.com/docs/workflows/pricing, 2026")
}
