//! `cost`: what a workload costs, computed from the measured units that tests check and from list prices.

mod bill;
mod compare;
mod prices;

use clap::{Args, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};

use crate::show::{answer, print};
use bill::{Line, bill};
use compare::{Other, a_million, others};
use prices::Prices;

/// The workload of a month, and the prices. Without arguments: a deployed system without work.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
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
    /// How often each execution waits for remote steps: once, if it starts all of them together [default: 1, if there
    /// are any]
    #[arg(long, value_name = "COUNT")]
    fan_outs: Option<f64>,
    /// Sleeps of each execution, of more than 15 minutes
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    sleeps: f64,
    /// Sleeps of each execution, of up to ten minutes
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    short_sleeps: f64,
    /// Waits of each execution for an event or a child, without a deadline within minutes
    #[arg(long, default_value_t = 0.0, value_name = "COUNT")]
    events: f64,
    /// The parameter `Lists` is `all`: each execution costs a write more
    #[arg(long)]
    list_all: bool,
    /// Requests to the HTTP API a month
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    http_requests: u64,
    /// The parameter `ApiKind` is `FunctionUrl`: requests cost only their invocations, and there is no access log
    #[arg(long)]
    function_url: bool,
    /// Workers that always wait for work over HTTP: each holds a function
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    waiting_workers: u16,
    /// Stacks of `worker.yaml`: each has a queue, which Lambda polls even if it is empty, and alarms
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    workers: u16,
    /// The parameter `Priorities` of these stacks is `on`: each has two more queues, and their alarms
    #[arg(long)]
    priorities: bool,
    /// The parameter `Alarms` of all stacks
    #[arg(long, value_enum, default_value_t = WhichAlarms::Essential)]
    alarms: WhichAlarms,
    /// The account has three other dashboards; its first three are free
    #[arg(long)]
    paid_dashboard: bool,
    /// Days for which ended records are kept
    #[arg(long, default_value_t = 7, value_name = "DAYS")]
    retention_days: u16,
    /// Days for which logs are kept
    #[arg(long, default_value_t = 30, value_name = "DAYS")]
    log_retention_days: u16,
    /// Shards of the due index, each read by every tick
    #[arg(long, default_value_t = 16, value_name = "COUNT")]
    shards: u16,
    /// Requests to SQS for each message after it is sent: receiving and deleting it, fewer in batches
    #[arg(long, default_value_t = 2.0, value_name = "COUNT")]
    requests_per_message: f64,
    /// Invocations for each message: at most 1; 0.1 with full batches of ten
    #[arg(long, default_value_t = 1.0, value_name = "COUNT")]
    invocations_per_message: f64,
    /// How long an invocation takes, with your own code
    #[arg(long, default_value_t = 50.0, value_name = "MS")]
    invocation_ms: f64,
    /// The memory of a function
    #[arg(long, default_value_t = 256.0, value_name = "MB")]
    memory_mb: f64,
    /// What other services charge for the same executions
    #[arg(long)]
    compare: bool,
    /// Bytes that each operation stores with another service
    #[arg(long, default_value_t = 1024.0, value_name = "BYTES")]
    stored_bytes: f64,
    /// How long each execution is open, for services that bill it
    #[arg(long, default_value_t = 1.0, value_name = "HOURS")]
    open_hours: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    prices: Prices,
}

/// The parameter `Alarms` of the templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WhichAlarms {
    Essential,
    All,
    None,
}

impl CostArgs {
    /// How often each execution waits for remote steps.
    fn joins(&self) -> f64 {
        self.fan_outs.unwrap_or(if self.remote_steps > 0.0 { 1.0 } else { 0.0 })
    }
}

pub(crate) fn run(args: &CostArgs) -> anyhow::Result<()> {
    anyhow::ensure!((0.0..=1.0).contains(&args.failing), "--failing: must be a number from 0 to 1");
    anyhow::ensure!(!args.compare || args.executions > 0, "--compare: needs --executions");
    let lines = bill(args);
    let usd = total(&lines);
    let others = if args.compare { others(args) } else { vec![] };
    if args.json {
        return answer(&serde_json::json!({ "lines": lines, "usd": usd, "others": others }));
    }
    let bill = table_of_bill(&lines, usd);
    let note = "Payloads over 1 KB also cost one write and one read of their size. The number \
        and duration of invocations are those of the arguments. Prices are those of `tickover cost --help`.\n";
    let compared =
        if args.compare { format!("\n{}\n", table_of_others(args, usd, &others)) } else { String::new() };
    print(&format!("{bill}\n{note}{compared}"))
}

fn total(lines: &[Line]) -> f64 {
    lines.iter().map(|line| line.usd).sum()
}

fn table_of_bill(lines: &[Line], usd: f64) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "",
        "write units",
        "read units",
        "SQS requests",
        "invocations",
        "GB-seconds",
        "USD a month",
    ]);
    let of = |number: f64| if number > 0.0 { format!("{number:.0}") } else { String::new() };
    for line in lines {
        let numbers =
            [line.write_units, line.read_units, line.sqs_requests, line.invocations, line.gb_seconds];
        let cells =
            [line.what.clone()].into_iter().chain(numbers.map(of)).chain([format!("{:.2}", line.usd)]);
        table.add_row(cells);
    }
    let empty = std::iter::repeat_n(String::new(), 5);
    table.add_row([String::from("together")].into_iter().chain(empty).chain([format!("{usd:.2}")]));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn table_of_others(args: &CostArgs, usd: f64, others: &[Other]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "the same executions with",
        "USD a month",
        "USD a million operations",
        "billed",
        "page, read",
    ]);
    let each = a_million(args, usd);
    let all = ["Tickover, all of the above", &format!("{usd:.2}"), &format!("{each:.2}"), "", ""];
    table.add_row(all);
    for other in others {
        let [usd, each] = [other.usd, other.usd_a_million].map(|usd| format!("{usd:.2}"));
        table.add_row([other.service, &usd, &each, &other.billed, other.page]);
    }
    for column in table.column_iter_mut().skip(1).take(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests;
