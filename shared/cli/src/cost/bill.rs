//! The lines of a month's bill.

use serde::Serialize;
use tickover_service::cost::{
    ATTEMPT_TIMEOUT, Alarms, CLAIM, CLASS_ALARMS, CLASS_QUEUES, CLOSE, COMPLETE, CORE_ALARMS, CORE_QUEUES,
    END_BADLY, HANDOVER, HEARTBEAT, HELD_MS, IDLE_SHARD, INLINE_STEP, JOIN, LISTED, QUEUE_MINUTE,
    REMOTE_STEP, REQUEST, RETRY, SCHEDULE, SHORT_SLEEP, SLEEP, START, TICK, TIMER, TURN, Units, WAIT,
    WAITED_OUT_MS, WORKER_ALARMS, metrics, started_together,
};

use super::{CostArgs, WhichAlarms};

/// Days of the month that is billed.
pub(super) const MONTH_DAYS: f64 = 30.0;
/// Ticks of the month: one a minute.
const TICKS: f64 = MONTH_DAYS * 24.0 * 60.0;
/// Requests to SQS a month for one idle queue: Lambda reads it with five long polls of 20 s at a time
/// (`cargo xtask bench idle`).
const POLLS: f64 = 648_000.0;
/// The longest that a claim over HTTP waits for work.
const CLAIM_WAIT_S: f64 = 20.0;
const MONTH_S: f64 = MONTH_DAYS * 86_400.0;
pub(super) const MILLION: f64 = 1_000_000.0;
/// Bytes of a GB, as storage and logs are billed.
pub(super) const GB: f64 = 1_073_741_824.0;
const MB_OF_GB: f64 = 1_024.0;
const MS_OF_S: f64 = 1_000.0;

/// A line of the bill.
#[derive(Serialize)]
pub(super) struct Line {
    pub(super) what: String,
    pub(super) write_units: f64,
    pub(super) read_units: f64,
    pub(super) sqs_requests: f64,
    pub(super) invocations: f64,
    pub(super) gb_seconds: f64,
    pub(super) usd: f64,
}

/// What the work of a line uses, in units of each service.
#[derive(Clone, Copy, Default)]
struct Used {
    units: Units,
    sqs_requests: f64,
    invocations: f64,
    /// Of functions.
    seconds: f64,
    /// For requests to a service with its own price.
    usd: f64,
}

pub(super) fn bill(args: &CostArgs) -> Vec<Line> {
    let work = work(args);
    let total = work.iter().fold(Units::default(), |sum, (_, used)| sum.and(used.units));
    let mut lines: Vec<Line> = work.into_iter().map(|(what, used)| line(args, what, used)).collect();
    let of_usd = |what: String, usd: f64| Line { usd, ..line(args, what, Used::default()) };

    let prices = &args.prices;
    let logs_gb = total.log_bytes / GB;
    // In a steady state, as many bytes are kept as are written within the retention.
    let kept_gb = logs_gb * f64::from(args.log_retention_days) / MONTH_DAYS;
    lines.push(of_usd(
        format!("logs: {logs_gb:.2} GB"),
        logs_gb * prices.log_price + kept_gb * prices.log_storage_price,
    ));
    let stored_gb = total.stored_bytes / GB * f64::from(args.retention_days) / MONTH_DAYS;
    lines.push(of_usd(
        format!("storage: {stored_gb:.2} GB"),
        stored_gb * (prices.storage_price + prices.recovery_price),
    ));
    let metrics = metrics_of(args);
    lines.push(of_usd(format!("metrics: {metrics}"), f64::from(metrics) * prices.metric_price));
    let alarms = alarms_of(args);
    lines.push(of_usd(format!("alarms: {alarms}"), f64::from(alarms) * prices.alarm_price));
    if args.paid_dashboard {
        lines.push(of_usd("dashboard".to_owned(), prices.dashboard_price));
    }
    lines
}

fn line(args: &CostArgs, what: String, used: Used) -> Line {
    let Used { units, sqs_requests, invocations, seconds, usd } = used;
    let prices = &args.prices;
    let gb_seconds = seconds * args.memory_mb / MB_OF_GB;
    let millions = units.writes * prices.write_price
        + units.reads * prices.read_price
        + sqs_requests * prices.message_price
        + invocations * prices.invocation_price
        + gb_seconds * prices.compute_price;
    Line {
        what,
        write_units: units.writes,
        read_units: units.reads,
        sqs_requests,
        invocations,
        gb_seconds,
        usd: usd + millions / MILLION,
    }
}

/// What is billed by its use, apart from logs and storage.
fn work(args: &CostArgs) -> Vec<(String, Used)> {
    let mut work = Vec::new();
    for (what, number, each) in
        [("tasks", args.tasks, of_task(args)), ("executions", args.executions, of_execution(args))]
    {
        if number > 0 {
            work.push((what.to_owned(), by_messages(args, each.times(count(number)))));
        }
    }
    if args.http_requests > 0 {
        work.push((
            "HTTP requests".to_owned(),
            by_http(args, count(args.http_requests), args.invocation_ms / MS_OF_S),
        ));
    }
    if args.waiting_workers > 0 {
        let workers = f64::from(args.waiting_workers);
        let claims = workers * MONTH_S / CLAIM_WAIT_S;
        work.push(("waiting claims over HTTP".to_owned(), by_http(args, claims, CLAIM_WAIT_S)));
    }
    let sleeps = args.executions > 0 && args.sleeps > 0.0;
    let held_ms = if sleeps { HELD_MS } else { 0.0 };
    let has_later = (args.tasks > 0 && args.deadlines) || sleeps;
    // At most one of each tick.
    let handover = if has_later { HANDOVER } else { Units::default() };
    let ticks = Used {
        units: IDLE_SHARD.times(f64::from(args.shards)).and(TICK).and(handover).times(TICKS),
        invocations: TICKS,
        seconds: TICKS * (args.invocation_ms + held_ms) / MS_OF_S,
        usd: TICKS * args.prices.scheduler_price / MILLION,
        ..Used::default()
    };
    work.push(("ticks".to_owned(), ticks));
    if args.tasks + args.executions > 0 {
        let minutes = f64::from(args.workers) * TICKS;
        let units = QUEUE_MINUTE.times(minutes);
        work.push(("queues' records".to_owned(), Used { units, ..Used::default() }));
    }
    let queues = CORE_QUEUES + args.workers + class_queues(args);
    let polling = Used { sqs_requests: f64::from(queues) * POLLS, ..Used::default() };
    work.push((format!("polling of {queues} queues"), polling));
    work
}

/// Work whose functions are invoked by the messages that it sends.
fn by_messages(args: &CostArgs, units: Units) -> Used {
    let invocations = units.sends * args.invocations_per_message;
    Used {
        units,
        sqs_requests: units.send_requests + units.sends * args.requests_per_message,
        invocations,
        // Messages of one batch wait side by side.
        seconds: (invocations * args.invocation_ms
            + units.timed * args.invocations_per_message * WAITED_OUT_MS)
            / MS_OF_S,
        usd: 0.0,
    }
}

/// Requests over HTTP, each of which holds a function for so many seconds.
fn by_http(args: &CostArgs, requests: f64, seconds: f64) -> Used {
    let of_function = Used { invocations: requests, seconds: requests * seconds, ..Used::default() };
    if args.function_url {
        return of_function;
    }
    Used { units: REQUEST.times(requests), usd: requests * args.prices.http_price / MILLION, ..of_function }
}

/// Metrics of the core and of all workers, whose queues have the same work.
fn metrics_of(args: &CostArgs) -> u16 {
    let has_tasks = args.tasks > 0 || (args.executions > 0 && args.remote_steps > 0.0);
    let of = |has: bool, count: u16| if has { count } else { 0 };
    let of_worker = of(has_tasks, metrics::TASKS)
        + of(args.executions > 0, metrics::EXECUTIONS)
        + of(args.tasks > 0 && args.failing > 0.0, metrics::FAILURES);
    metrics::CORE + of_worker * args.workers
}

fn alarms_of(args: &CostArgs) -> u16 {
    let of = |alarms: Alarms| match args.alarms {
        WhichAlarms::Essential => alarms.essential,
        WhichAlarms::All => alarms.all,
        WhichAlarms::None => 0,
    };
    of(CORE_ALARMS) + of(WORKER_ALARMS) * args.workers + of(CLASS_ALARMS) * class_queues(args)
}

/// The class queues of all workers.
fn class_queues(args: &CostArgs) -> u16 {
    if args.priorities { CLASS_QUEUES * args.workers } else { 0 }
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
        .and(of_joins(args))
        .and(SHORT_SLEEP.times(args.short_sleeps))
        .and(SLEEP.times(args.sleeps))
        .and(WAIT.times(args.events))
        .and(CLOSE)
        .and(if args.list_all { LISTED } else { Units::default() })
}

/// What an execution's waits for remote steps cost beside the steps.
fn of_joins(args: &CostArgs) -> Units {
    let joins = args.joins();
    if joins > 0.0 {
        JOIN.and(started_together(args.remote_steps / joins)).times(joins)
    } else {
        // Its hints are sent one by one, and nobody waits for the steps.
        Units { send_requests: args.remote_steps, ..Units::default() }
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
pub(super) fn count(count: u64) -> f64 {
    count as f64
}
