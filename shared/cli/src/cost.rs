//! `cost`: what a workload costs, from the figures that the tests hold the code to and the prices of AWS.

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use tickover_service::cost::{
    ATTEMPT_TIMEOUT, CLAIM, CLOSE, COMPLETE, END_BADLY, HEARTBEAT, IDLE_SHARD, INLINE_STEP, REMOTE_STEP,
    RETRY, SCHEDULE, SLEEP, START, TIMER, TURN, Units,
};

use crate::show::{print, print_json};

/// Ticks of a month of 30 days.
const TICKS: f64 = 43_200.0;
const MILLION: f64 = 1_000_000.0;

/// The workload of a month, and the prices to reckon it at.
#[derive(Args, Debug)]
pub(crate) struct CostArgs {
    /// Tasks a month
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    tasks: u64,
    /// Attempts that fail and are tried again, for each task
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    retries: f64,
    /// Part of the tasks that end without a result, from 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "PART")]
    failing: f64,
    /// Heartbeats of each task
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    heartbeats: f64,
    /// Whether tasks have a deadline that comes within minutes, so that it gets a timer
    #[arg(long)]
    deadlines: bool,
    /// Whether attempts have timeouts of their own
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
    /// Requests to SQS for each message beside the one that sends it: receiving and deleting, less in batches
    #[arg(long, default_value_t = 2.0, value_name = "COUNT")]
    requests_per_message: f64,
    /// US dollars for a million write units; this and the other prices are those of us-east-1, on demand
    #[arg(long, default_value_t = 0.625, value_name = "USD")]
    write_price: f64,
    /// US dollars for a million read units
    #[arg(long, default_value_t = 0.125, value_name = "USD")]
    read_price: f64,
    /// US dollars for a million requests to SQS
    #[arg(long, default_value_t = 0.40, value_name = "USD")]
    message_price: f64,
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
    usd: f64,
}

pub(crate) fn run(args: &CostArgs) -> anyhow::Result<()> {
    anyhow::ensure!((0.0..=1.0).contains(&args.failing), "--failing: must be a number from 0 to 1");
    let lines = bill(args);
    let usd = lines.iter().map(|line| line.usd).sum::<f64>();
    if args.json {
        return print_json(&serde_json::to_string(&serde_json::json!({ "lines": lines, "usd": usd }))?);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["", "write units", "read units", "SQS requests", "USD a month"]);
    for line in &lines {
        table.add_row([
            line.what.to_owned(),
            format!("{:.0}", line.write_units),
            format!("{:.0}", line.read_units),
            format!("{:.0}", line.sqs_requests),
            format!("{:.2}", line.usd),
        ]);
    }
    table.add_row([
        String::from("together"),
        String::new(),
        String::new(),
        String::new(),
        format!("{usd:.2}"),
    ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let note =
        "Payloads over 1 KB cost their size once in and once out on top; Lambda's time is your work's own.\n";
    print(&format!("{table}\n{note}"))
}

fn bill(args: &CostArgs) -> Vec<Line> {
    let tasks = count(args.tasks);
    let executions = count(args.executions);
    let line = |what, units: Units| {
        let sqs_requests = units.sends * (1.0 + args.requests_per_message);
        let usd = (units.writes * args.write_price
            + units.reads * args.read_price
            + sqs_requests * args.message_price)
            / MILLION;
        Line { what, write_units: units.writes, read_units: units.reads, sqs_requests, usd }
    };
    let mut lines = Vec::new();
    if args.tasks > 0 {
        lines.push(line("tasks", of_task(args).times(tasks)));
    }
    if args.executions > 0 {
        lines.push(line("executions", of_execution(args).times(executions)));
    }
    lines.push(line("ticks", IDLE_SHARD.times(f64::from(args.shards) * TICKS)));
    lines
}

/// The whole life of one task.
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

/// The whole life of one execution. The last inline step's result rides in the close.
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
        let ticks = 16.0 * 0.5 * 43_200.0 * 0.125 / 1e6;
        is_about(usd(&[]), ticks);
        // 5 write units, a read and a message of three requests each.
        is_about(usd(&["--tasks", "1000000"]) - ticks, 5.0 * 0.625 + 0.125 + 3.0 * 0.40);
        // Ten write units, a read and a message.
        is_about(usd(&["--executions", "1000000"]) - ticks, 10.0 * 0.625 + 0.125 + 3.0 * 0.40);
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
        ] {
            let arguments: Vec<&str> = ["--tasks", "1000"].into_iter().chain(more).collect();
            assert!(usd(&arguments) > plain, "{arguments:?}");
        }
    }
}
