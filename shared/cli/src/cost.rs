//! `cost`: what a workload costs, computed from the measured units that tests check and from AWS's prices.

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use tickover_service::cost::{
    ATTEMPT_TIMEOUT, CLAIM, CLOSE, COMPLETE, END_BADLY, HEARTBEAT, IDLE_SHARD, INLINE_STEP, REMOTE_STEP,
    RETRY, SCHEDULE, SLEEP, START, TIMER, TURN, Units,
};

use crate::show::{answer, print};

/// Ticks of a month of 30 days.
const TICKS: f64 = 43_200.0;
/// Requests to SQS a month for one idle queue: Lambda reads it with five long polls of 20 s at a time
/// (`cargo xtask bench idle`).
const POLLS: f64 = 648_000.0;
const MILLION: f64 = 1_000_000.0;
const MB_OF_GB: f64 = 1_024.0;
const MS_OF_S: f64 = 1_000.0;

/// The workload of a month, and the prices.
#[derive(Args, Debug)]
pub(crate) struct CostArgs {
    /// Tasks a month
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    tasks: u64,
    /// Attempts that fail and are retried, for each task
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    retries: f64,
    /// Fraction of the tasks that end without a result, from 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "PART")]
    failing: f64,
    /// Heartbeats of each task
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    heartbeats: f64,
    /// Tasks have a deadline within minutes, for which a timer is sent
    #[arg(long)]
    deadlines: bool,
    /// Attempts have their own timeouts
    #[arg(long)]
    attempt_timeouts: bool,
    /// Executions a month
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    executions: u64,
    /// Inline steps of each execution
    #[arg(long, default_value_t = 5.0, value_name = "COUNT")]
    inline_steps: f64,
    /// Remote steps of each execution
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    remote_steps: f64,
    /// Sleeps and waits of each execution
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    sleeps: f64,
    /// Shards of the due index, each read by every tick
    #[arg(long, default_value_t = 16, value_name = "COUNT")]
    shards: u16,
    /// Requests to SQS for each message after it is sent: receiving and deleting it, fewer in batches
    #[arg(long, default_value_t = 2.0, value_name = "COUNT")]
    requests_per_message: f64,
    /// Queues that Lambda polls, even if they are empty
    #[arg(long, default_value_t = 4, value_name = "COUNT")]
    queues: u16,
    /// Requests to the HTTP API a month
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    http_requests: u64,
    /// Invocations for each message: at most 1; 0.1 with full batches of ten
    #[arg(long, default_value_t = 1.0, value_name = "COUNT")]
    invocations_per_message: f64,
    /// How long an invocation takes, with your own code
    #[arg(long, default_value_t = 50.0, value_name = "MS")]
    invocation_ms: f64,
    /// The memory of a function
    #[arg(long, default_value_t = 256.0, value_name = "MB")]
    memory_mb: f64,
    /// US dollars for a million write units; this and the other prices are those of us-east-1, on demand
    #[arg(long, default_value_t = 0.625, value_name = "USD")]
    write_price: f64,
    /// US dollars for a million read units
    #[arg(long, default_value_t = 0.125, value_name = "USD")]
    read_price: f64,
    /// US dollars for a million requests to SQS
    #[arg(long, default_value_t = 0.40, value_name = "USD")]
    message_price: f64,
    /// US dollars for a million requests to an HTTP API
    #[arg(long, default_value_t = 1.0, value_name = "USD")]
    http_price: f64,
    /// US dollars for a million invocations
    #[arg(long, default_value_t = 0.20, value_name = "USD")]
    invocation_price: f64,
    /// US dollars for a million GB-seconds of functions on arm64
    #[arg(long, default_value_t = 13.3334, value_name = "USD")]
    compute_price: f64,
    /// US dollars for a million invocations of the tick by the scheduler
    #[arg(long, default_value_t = 1.0, value_name = "USD")]
    scheduler_price: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A line of the bill.
#[derive(Serialize)]
struct Line {
    what: &'static str,
    write_units: f64,
    read_units: f64,
    sqs_requests: f64,
    invocations: f64,
    usd: f64,
}

pub(crate) fn run(args: &CostArgs) -> anyhow::Result<()> {
    anyhow::ensure!((0.0..=1.0).contains(&args.failing), "--failing: must be a number from 0 to 1");
    let lines = bill(args);
    let usd = lines.iter().map(|line| line.usd).sum::<f64>();
    if args.json {
        return answer(&serde_json::json!({ "lines": lines, "usd": usd }));
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["", "write units", "read units", "SQS requests", "invocations", "USD a month"]);
    for line in &lines {
        table.add_row([
            line.what.to_owned(),
            format!("{:.0}", line.write_units),
            format!("{:.0}", line.read_units),
            format!("{:.0}", line.sqs_requests),
            format!("{:.0}", line.invocations),
            format!("{:.2}", line.usd),
        ]);
    }
    table.add_row([
        String::from("together"),
        String::new(),
        String::new(),
        String::new(),
        String::new(),
        format!("{usd:.2}"),
    ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let note = "Payloads over 1 KB also cost one write and one read of their size. The number \
        and duration of invocations are those of the arguments. Logs and storage cost extra.\n";
    print(&format!("{table}\n{note}"))
}

fn bill(args: &CostArgs) -> Vec<Line> {
    let line = |what, units: Units, invocations: f64| {
        let sqs_requests = units.sends * (1.0 + args.requests_per_message);
        let usd = units.writes * args.write_price
            + units.reads * args.read_price
            + sqs_requests * args.message_price
            + invocations * of_invocation(args);
        let usd = usd / MILLION;
        Line { what, write_units: units.writes, read_units: units.reads, sqs_requests, invocations, usd }
    };
    let mut lines = Vec::new();
    for (what, number, each) in
        [("tasks", args.tasks, of_task(args)), ("executions", args.executions, of_execution(args))]
    {
        if number > 0 {
            let units = each.times(count(number));
            lines.push(line(what, units, units.sends * args.invocations_per_message));
        }
    }
    if args.http_requests > 0 {
        let requests = count(args.http_requests);
        let http = line("HTTP requests", Units::default(), requests);
        lines.push(Line { usd: http.usd + requests * args.http_price / MILLION, ..http });
    }
    let ticks = line("ticks", IDLE_SHARD.times(f64::from(args.shards) * TICKS), TICKS);
    lines.push(Line { usd: ticks.usd + TICKS * args.scheduler_price / MILLION, ..ticks });
    let polls = f64::from(args.queues) * POLLS;
    let polling = line("polling", Units::default(), 0.0);
    lines.push(Line { sqs_requests: polls, usd: polls * args.message_price / MILLION, ..polling });
    lines
}

/// US dollars for a million invocations and their duration.
fn of_invocation(args: &CostArgs) -> f64 {
    let gb_seconds = args.memory_mb / MB_OF_GB * args.invocation_ms / MS_OF_S;
    args.invocation_price + gb_seconds * args.compute_price
}

/// The units of one task, from its schedule to its end.
fn of_task(args: &CostArgs) -> Units {
    let attempt = if args.attempt_timeouts { CLAIM.and(ATTEMPT_TIMEOUT) } else { CLAIM };
    let ends = COMPLETE.times(1.0 - args.failing).and(END_BADLY.times(args.failing));
    let timer = if args.deadlines { TIMER } else { Units::default() };
    SCHEDULE
        .and(attempt.times(1.0 + args.retries))
        .and(RETRY.times(args.retries))
        .and(HEARTBEAT.times(args.heartbeats))
        .and(timer)
        .and(ends)
}

/// The units of one execution, from its start to its end. The result of the last inline step is in the write that
/// closes the execution.
fn of_execution(args: &CostArgs) -> Units {
    START
        .and(TURN)
        .and(INLINE_STEP.times((args.inline_steps - 1.0).max(0.0)))
        .and(REMOTE_STEP.times(args.remote_steps))
        .and(SLEEP.times(args.sleeps))
        .and(CLOSE)
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
fn count(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CostArgs,
    }

    fn usd(arguments: &[&str]) -> f64 {
        let line = Line::parse_from(["cost"].iter().chain(arguments));
        bill(&line.args).iter().map(|line| line.usd).sum()
    }

    fn is_about(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn a_workload_costs_its_units_at_their_prices() {
        let invocation = 0.20 + 0.25 * 0.05 * 13.3334;
        let ticks = 43_200.0 * (16.0 * 0.5 * 0.125 + 1.0 + invocation) / 1e6;
        let idle = ticks + 4.0 * 648_000.0 * 0.40 / 1e6;
        is_about(usd(&[]), idle);
        // 5 write units, one read unit, and one message with three requests and one invocation.
        is_about(usd(&["--tasks", "1000000"]) - idle, 5.0 * 0.625 + 0.125 + 3.0 * 0.40 + invocation);
        // 10 write units, one read unit and one message.
        is_about(usd(&["--executions", "1000000"]) - idle, 10.0 * 0.625 + 0.125 + 3.0 * 0.40 + invocation);
        is_about(usd(&["--http-requests", "1000000"]) - idle, 1.0 + invocation);
        is_about(usd(&["--queues", "0"]), ticks);
    }

    #[test]
    fn retries_timeouts_and_failures_cost_more() {
        let plain = usd(&["--tasks", "1000"]);
        for more in [
            vec!["--retries", "1"],
            vec!["--failing", "0.5"],
            vec!["--heartbeats", "2"],
            vec!["--deadlines"],
            vec!["--attempt-timeouts"],
            vec!["--invocation-ms", "51"],
        ] {
            let arguments: Vec<&str> = ["--tasks", "1000"].into_iter().chain(more).collect();
            assert!(usd(&arguments) > plain, "{arguments:?}");
        }
    }
}
