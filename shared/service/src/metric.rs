//! The metrics and their names: every metric of this project is recorded here and nowhere else.
//!
//! Labels are bounded: queues, timeouts, outcomes. Values that users choose freely, such as ids and kinds of tasks, are
//! never labels, except for the keys of concurrency limits, of which a process records the first 50 that matter. Without a recorder in the process, recording does nothing.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Unit, describe_counter, describe_gauge, describe_histogram};
use tickover_core::duration::Millis;
use tickover_core::execution::event::{Change, ExecutionEvent};
use tickover_core::gate::Gate;
use tickover_core::id::QueueName;
use tickover_core::queue::Reachability;
use tickover_core::task::event::{EndedAttempt, Event, EventType, Expiry};
use tickover_core::task::{Status, Task};
use tickover_core::time::Timestamp;

use crate::error::ServiceError;
use crate::ports::Depth;
use crate::tick::TickReport;

/// The namespace in `CloudWatch`.
pub const NAMESPACE: &str = "Tickover";

const TASKS_SCHEDULED: &str = "tickover_tasks_scheduled_total";
pub const TASKS_ENDED: &str = "tickover_tasks_ended_total";
const TASK_TIMEOUTS: &str = "tickover_task_timeouts_total";
const ATTEMPTS_ENDED: &str = "tickover_attempts_ended_total";
const HEARTBEATS: &str = "tickover_heartbeats_total";
const HINTS_SENT: &str = "tickover_hints_sent_total";
const HINTS_REPEATED: &str = "tickover_hints_repeated_total";
const QUEUES_WITHOUT_ANSWER: &str = "tickover_queues_without_answer_total";
const TIMERS: &str = "tickover_timers_total";
const EVENTS: &str = "tickover_events_total";
const EXECUTIONS_STARTED: &str = "tickover_executions_started_total";
pub const EXECUTIONS_ENDED: &str = "tickover_executions_ended_total";
const EXECUTION_TIMEOUTS: &str = "tickover_execution_timeouts_total";
const TURNS: &str = "tickover_turns_total";
const STEPS_ENDED: &str = "tickover_steps_ended_total";
const OCCURRENCES: &str = "tickover_cron_occurrences_total";
const STORE_CONFLICTS: &str = "tickover_store_conflicts_total";
pub const TICKS: &str = "tickover_ticks_total";
const TICK_RECORDS: &str = "tickover_tick_records_total";

const TASK_DURATION: &str = "tickover_task_duration_seconds";
const ATTEMPT_DURATION: &str = "tickover_attempt_duration_seconds";
const DEADLINE_LATENESS: &str = "tickover_deadline_lateness_seconds";
const EXECUTION_DURATION: &str = "tickover_execution_duration_seconds";
pub const TURN_LATENESS: &str = "tickover_turn_lateness_seconds";
pub const START_LATENESS: &str = "tickover_start_lateness_seconds";
const TICK_DURATION: &str = "tickover_tick_duration_seconds";
const COMMIT_DURATION: &str = "tickover_commit_duration_seconds";
const COMMITS_TOGETHER: &str = "tickover_commits_together";

const QUEUE_DEPTH: &str = "tickover_queue_depth";
const ACTIVE_HEARTBEATS: &str = "tickover_active_heartbeats";
const CLOCK_OFFSET: &str = "tickover_clock_offset_seconds";
const COMMITS_WAITING: &str = "tickover_commits_waiting";
const DATA_BYTES: &str = "tickover_data_bytes";
const LIMIT_TAKEN: &str = "tickover_limit_taken";
const LIMIT_WAITING: &str = "tickover_limit_waiting";

/// The metrics that an alarm or the dashboard of a template in `infra` uses. A test fails if they use others, or not all of
/// these (`tests/tests/templates/metrics.rs`).
pub const ESSENTIAL: [&str; 8] = [
    TASKS_SCHEDULED,
    TASKS_ENDED,
    TASK_TIMEOUTS,
    DEADLINE_LATENESS,
    START_LATENESS,
    TURN_LATENESS,
    EXECUTIONS_ENDED,
    TICKS,
];

static IS_ONLY_ESSENTIAL: AtomicBool = AtomicBool::new(false);

/// From now on this process records only the [`ESSENTIAL`] metrics. `CloudWatch` bills each metric, with each value of its
/// labels, by the month, and each line with values by its bytes.
pub fn record_only_essential() {
    IS_ONLY_ESSENTIAL.store(true, Ordering::Relaxed);
}

fn is_recorded(name: &str) -> bool {
    !IS_ONLY_ESSENTIAL.load(Ordering::Relaxed) || ESSENTIAL.contains(&name)
}

/// The crate's macro, for the metrics that are recorded.
macro_rules! counter {
    ($name:expr $(, $($labels:tt)+)?) => {
        if is_recorded($name) { metrics::counter!($name $(, $($labels)+)?) } else { Counter::noop() }
    };
}

/// The crate's macro, for the metrics that are recorded.
macro_rules! gauge {
    ($name:expr $(, $($labels:tt)+)?) => {
        if is_recorded($name) { metrics::gauge!($name $(, $($labels)+)?) } else { Gauge::noop() }
    };
}

/// The crate's macro, for the metrics that are recorded.
macro_rules! histogram {
    ($name:expr $(, $($labels:tt)+)?) => {
        if is_recorded($name) { metrics::histogram!($name $(, $($labels)+)?) } else { Histogram::noop() }
    };
}

/// Metrics that only grow.
const COUNTERS: [(&str, &str); 19] = [
    (TASKS_SCHEDULED, "Tasks created."),
    (TASKS_ENDED, "Tasks that ended, by outcome."),
    (TASK_TIMEOUTS, "Deadlines and timeouts enforced, by kind."),
    (ATTEMPTS_ENDED, "Attempts that ended, by outcome."),
    (HEARTBEATS, "Heartbeats: renewed, or the code of the error."),
    (HINTS_SENT, "Hints sent to workers."),
    (HINTS_REPEATED, "Hints sent again because the first one seemed lost."),
    (
        QUEUES_WITHOUT_ANSWER,
        "Ticks that got no answer from a queue with waiting work: it was silent, or is missing from the configuration.",
    ),
    (TIMERS, "Messages of the timers queue, by result."),
    (EVENTS, "Lifecycle events for the events queue: sent or failed."),
    (EXECUTIONS_STARTED, "Executions created."),
    (EXECUTIONS_ENDED, "Executions that ended, by outcome."),
    (EXECUTION_TIMEOUTS, "Deadlines of executions and runs enforced, by kind."),
    (TURNS, "Turns of executions taken by workers."),
    (STEPS_ENDED, "Steps of executions that ended, by outcome."),
    (OCCURRENCES, "Occurrences of crons, by result: started, refused, or why skipped."),
    (STORE_CONFLICTS, "Decisions repeated because others changed the record meanwhile."),
    (TICKS, "Ticks: done or out_of_time."),
    (TICK_RECORDS, "Records that ticks processed, by result."),
];

const GAUGES: [(&str, &str); 7] = [
    (QUEUE_DEPTH, "Messages in a queue, about as many as its tasks that wait, run, or wait for their start."),
    (
        ACTIVE_HEARTBEATS,
        "Leases that a heartbeat to this process extended and that have not run out or ended.",
    ),
    (
        CLOCK_OFFSET,
        "Seconds added to this machine's clock so that it agrees with the dates of AWS's answers.",
    ),
    (COMMITS_WAITING, "Commits to the data file of a local system that wait for the thread that writes."),
    (LIMIT_TAKEN, "Places taken at a key at which this process has seen tasks wait: the first 50 keys."),
    (LIMIT_WAITING, "Tasks that wait at such a key, those with an item of their own counted as one."),
    (DATA_BYTES, "Bytes of a local system's data file, by part: the file, and the log beside it."),
];

/// From five milliseconds to ten minutes: how late an action is.
const LATENESS_SECONDS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
/// From half a millisecond to ten seconds: how long a disk takes.
const DISK_SECONDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// From one to the most commits of a group.
const GROUP_COUNTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
/// From ten milliseconds to a day: how long work takes.
const DURATION_SECONDS: &[f64] =
    &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0];

/// A histogram.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub name: &'static str,
    /// Upper bounds of its buckets, in its unit, for a recorder that counts in buckets.
    pub bounds: &'static [f64],
    unit: Unit,
    description: &'static str,
}

pub const HISTOGRAMS: [Spread; 9] = [
    Spread {
        name: TASK_DURATION,
        bounds: DURATION_SECONDS,
        unit: Unit::Seconds,
        description: "From scheduling, or an operator's retry, to the end of a task.",
    },
    Spread {
        name: ATTEMPT_DURATION,
        bounds: DURATION_SECONDS,
        unit: Unit::Seconds,
        description: "From the claim to the end of an attempt.",
    },
    Spread {
        name: DEADLINE_LATENESS,
        bounds: LATENESS_SECONDS,
        unit: Unit::Seconds,
        description: "From the instant of a deadline or timeout to its enforcement.",
    },
    Spread {
        name: START_LATENESS,
        bounds: LATENESS_SECONDS,
        unit: Unit::Seconds,
        description: "From when a task could be claimed to its claim.",
    },
    Spread {
        name: EXECUTION_DURATION,
        bounds: DURATION_SECONDS,
        unit: Unit::Seconds,
        description: "From the start of an execution to its outcome.",
    },
    Spread {
        name: TURN_LATENESS,
        bounds: LATENESS_SECONDS,
        unit: Unit::Seconds,
        description: "From when an execution could run to the start of its turn.",
    },
    Spread {
        name: TICK_DURATION,
        bounds: LATENESS_SECONDS,
        unit: Unit::Seconds,
        description: "How long a tick took.",
    },
    Spread {
        name: COMMIT_DURATION,
        bounds: DISK_SECONDS,
        unit: Unit::Seconds,
        description: "How long a local system's disk took to write and sync a group of commits.",
    },
    Spread {
        name: COMMITS_TOGETHER,
        bounds: GROUP_COUNTS,
        unit: Unit::Count,
        description: "How many commits to the data file of a local system were synced together.",
    },
];

/// Gives the process's recorder the description of each metric. Call it once, after the recorder is installed.
pub fn describe() {
    for (name, description) in COUNTERS {
        describe_counter!(name, Unit::Count, description);
    }
    for (name, description) in GAUGES {
        describe_gauge!(name, Unit::Count, description);
    }
    for Spread { name, description, unit, .. } in HISTOGRAMS {
        describe_histogram!(name, unit, description);
    }
}

/// Records an event of a task. `born_at` is when the task was created, or last revived by an operator.
pub(crate) fn event(event: &Event, born_at: Timestamp) {
    let queue = label(&event.queue);
    match &event.what {
        EventType::TaskScheduled { .. } => counter!(TASKS_SCHEDULED, "queue" => queue.clone()).increment(1),
        EventType::TaskStarted { waited, .. } => {
            histogram!(START_LATENESS, "queue" => queue.clone()).record(seconds(*waited));
        }
        EventType::TaskRetrying { .. }
        | EventType::TaskCompleted { .. }
        | EventType::TaskFailed { .. }
        | EventType::TaskTimedOut { .. }
        | EventType::TaskCancelled { .. } => {
            if let Some(attempt) = event.what.ended_attempt() {
                attempt_ended(attempt, &queue, event.at);
            }
        }
        // The next event closes an attempt that timed out.
        EventType::AttemptTimedOut { .. }
        | EventType::TaskCancelRequested
        | EventType::TaskSkipped
        | EventType::TaskRevived => {}
    }
    if let Some(expiry) = event.what.expiry() {
        enforced(expiry, &queue);
    }
    if let Some(status) = event.what.ended_as() {
        task_ended(status, queue, event.at.since(born_at));
    }
}

/// Records an event of an execution that was started at `born_at`.
pub(crate) fn execution(event: &ExecutionEvent, born_at: Timestamp) {
    let queue = label(&event.queue);
    match &event.what {
        Change::ExecutionStarted { .. } => {
            counter!(EXECUTIONS_STARTED, "queue" => queue.clone()).increment(1);
        }
        Change::ExecutionTimedOut { kind, lateness, .. } => {
            let kind = kind.as_str();
            counter!(EXECUTION_TIMEOUTS, "queue" => queue.clone(), "kind" => kind).increment(1);
            histogram!(DEADLINE_LATENESS, "kind" => kind).record(seconds(*lateness));
        }
        Change::ExecutionRunStarted { .. }
        | Change::ExecutionFailing
        | Change::ExecutionCompleted
        | Change::ExecutionFailed { .. }
        | Change::ExecutionCancelled { .. }
        | Change::ExecutionStuck
        | Change::ExecutionPaused
        | Change::ExecutionResumed => {}
    }
    if let Some(status) = event.what.ended_as() {
        let labels = [("queue", queue), ("outcome", status.as_str().to_owned())];
        counter!(EXECUTIONS_ENDED, &labels).increment(1);
        histogram!(EXECUTION_DURATION, &labels).record(seconds(event.at.since(born_at)));
    }
}

/// Records that a worker started a turn, and how long the turn had waited.
pub(crate) fn turn_started(queue: &QueueName, waited: Millis) {
    counter!(TURNS, "queue" => label(queue)).increment(1);
    histogram!(TURN_LATENESS, "queue" => label(queue)).record(seconds(waited));
}

/// Records the outcome of a step of an execution.
pub(crate) fn step_ended(queue: &QueueName, outcome: &'static str) {
    counter!(STEPS_ENDED, "queue" => label(queue), "outcome" => outcome).increment(1);
}

/// Records the result of an occurrence of a cron.
pub(crate) fn occurrence(result: &'static str) {
    counter!(OCCURRENCES, "result" => result).increment(1);
}

/// When a task was created, or last revived: an operator's retry counts as a new start.
pub(crate) fn born_at(before: Option<&Task>, after: &Task) -> Timestamp {
    before.and_then(|before| before.revived_at).unwrap_or(after.created_at)
}

fn attempt_ended(attempt: &EndedAttempt, queue: &str, ended_at: Timestamp) {
    let labels = [("queue", queue.to_owned()), ("ending", attempt.outcome.as_str().to_owned())];
    counter!(ATTEMPTS_ENDED, &labels).increment(1);
    if let Some(started_at) = attempt.started_at {
        histogram!(ATTEMPT_DURATION, &labels).record(seconds(ended_at.since(started_at)));
    }
}

fn enforced(expiry: &Expiry, queue: &str) {
    let kind = expiry.kind.as_str();
    counter!(TASK_TIMEOUTS, "queue" => queue.to_owned(), "kind" => kind).increment(1);
    if !expiry.doomed {
        histogram!(DEADLINE_LATENESS, "kind" => kind).record(seconds(expiry.lateness));
    }
}

fn task_ended(status: Status, queue: String, after: Millis) {
    let labels = [("queue", queue), ("outcome", status.as_str().to_owned())];
    counter!(TASKS_ENDED, &labels).increment(1);
    histogram!(TASK_DURATION, &labels).record(seconds(after));
}

/// Records the answer to a heartbeat.
pub(crate) fn heartbeat<T>(answer: &Result<T, ServiceError>) {
    let outcome = match answer {
        Ok(_) => "renewed",
        Err(ServiceError::Rejected(reject)) => reject.code(),
        Err(ServiceError::Contended) => "contended",
        Err(ServiceError::Throttled) => "throttled",
        Err(ServiceError::Unavailable { .. }) => "unavailable",
        Err(ServiceError::Corrupt { .. }) => "corrupt",
    };
    counter!(HEARTBEATS, "outcome" => outcome).increment(1);
}

/// Records how many leases heartbeats keep alive.
pub(crate) fn active_heartbeats(count: usize) {
    gauge!(ACTIVE_HEARTBEATS).set(small(count));
}

/// Records the depth of a queue.
pub(crate) fn queue_depth(queue: &QueueName, depth: &Depth) {
    let states = [("visible", depth.visible), ("in_flight", depth.in_flight), ("delayed", depth.delayed)];
    for (state, count) in states {
        let count = small(usize::try_from(count).unwrap_or(usize::MAX));
        gauge!(QUEUE_DEPTH, "queue" => label(queue), "state" => state).set(count);
    }
}

/// Most keys of limits that are labels in a process: each has two metrics.
const LIMIT_KEYS_MAX: usize = 50;

/// The keys that are labels.
static LIMIT_KEYS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether limits are recorded.
pub(crate) fn records_limits() -> bool {
    is_recorded(LIMIT_TAKEN)
}

/// Records who has places and, where that is known, how many wait at a key, if the key is one of those that are recorded:
/// the first at which tasks waited.
pub(crate) fn limit(gate: &Gate, waiting: Option<usize>) {
    if !records_limits() {
        return;
    }
    let is_known = {
        let mut keys = LIMIT_KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.is_some_and(|waiting| waiting > 0) && keys.len() < LIMIT_KEYS_MAX {
            keys.insert(gate.text.clone());
        }
        keys.contains(&gate.text)
    };
    if is_known {
        gauge!(LIMIT_TAKEN, "key" => gate.text.clone()).set(small(gate.holders.len()));
        if let Some(waiting) = waiting {
            gauge!(LIMIT_WAITING, "key" => gate.text.clone()).set(small(waiting));
        }
    }
}

/// Records a new estimate of the error of this machine's clock.
pub(crate) fn clock_offset(offset_ms: i64) {
    #[expect(clippy::cast_precision_loss, reason = "a span for people to read")]
    let seconds = offset_ms as f64 / 1_000.0;
    gauge!(CLOCK_OFFSET).set(seconds);
}

/// Records that this many hints were sent to a queue.
pub fn hints_sent(queue: &QueueName, count: usize) {
    counter!(HINTS_SENT, "queue" => label(queue)).increment(u64::try_from(count).unwrap_or(u64::MAX));
}

/// Records that a hint was sent again because the first one seemed lost.
pub fn hint_repeated(queue: &QueueName) {
    counter!(HINTS_REPEATED, "queue" => label(queue)).increment(1);
}

/// Records that a tick asked for a queue's depth and got no answer.
pub(crate) fn queue_without_answer(queue: &QueueName, reachability: Reachability) {
    let reachability = match reachability {
        Reachability::Reachable => return,
        Reachability::Unreachable => "silent",
        Reachability::NotConfigured => "missing",
    };
    counter!(QUEUES_WITHOUT_ANSWER, "queue" => label(queue), "standing" => reachability).increment(1);
}

/// Records the result of a message of the timers queue.
pub fn timer(result: &'static str) {
    counter!(TIMERS, "result" => result).increment(1);
}

/// Records how many events were sent, and how many failed.
pub(crate) fn events(sent: usize, failed: usize) {
    for (result, count) in [("sent", sent), ("failed", failed)] {
        counter!(EVENTS, "result" => result).increment(u64::try_from(count).unwrap_or(u64::MAX));
    }
}

/// Records that a record had changed since the decision.
pub fn store_conflict() {
    counter!(STORE_CONFLICTS).increment(1);
}

/// Records that a local system's disk has synced so many commits together, and how long that took.
pub fn synced(commits: usize, took: Duration) {
    histogram!(COMMITS_TOGETHER).record(small(commits));
    histogram!(COMMIT_DURATION).record(took.as_secs_f64());
}

/// Records how many commits to a data file wait, and the sizes of the file and of its log in bytes.
pub fn data_file(waiting: usize, file_bytes: u64, log_bytes: u64) {
    gauge!(COMMITS_WAITING).set(small(waiting));
    for (part, bytes) in [("file", file_bytes), ("log", log_bytes)] {
        gauge!(DATA_BYTES, "part" => part).set(small(usize::try_from(bytes).unwrap_or(usize::MAX)));
    }
}

/// Records a finished tick and how long it took.
pub fn tick(report: &TickReport, duration: Millis) {
    histogram!(TICK_DURATION).record(seconds(duration));
    let result = if report.out_of_time { "out_of_time" } else { "done" };
    counter!(TICKS, "result" => result).increment(1);
    let records = [
        ("timed_out", report.timed_out),
        ("dispatched", report.dispatched),
        ("rearmed", report.rearmed),
        ("failed", report.failed),
        ("timer", report.timers),
    ];
    for (result, count) in records {
        counter!(TICK_RECORDS, "result" => result).increment(count);
    }
}

fn label(queue: &QueueName) -> String {
    queue.as_str().to_owned()
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 milliseconds, which are 285,000 years")]
fn seconds(span: Millis) -> f64 {
    span.as_u64() as f64 / 1_000.0
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
fn small(count: usize) -> f64 {
    count as f64
}
