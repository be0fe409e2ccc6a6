//! What is measured, under which names: every metric of this project is recorded here and nowhere else.
//!
//! Labels are bounded: queues, timeouts, outcomes. What users may choose freely, such as ids and kinds of tasks,
//! is never one. Without a recorder in the process, recording does nothing.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use tickover_core::duration::Millis;
use tickover_core::execution::event::{Change, ExecutionEvent};
use tickover_core::id::QueueName;
use tickover_core::queue::Standing;
use tickover_core::task::event::{EndedAttempt, Event, Expiry, What};
use tickover_core::task::{Status, Task};
use tickover_core::time::Timestamp;

use crate::error::ServiceError;
use crate::ports::Depth;
use crate::tick::TickReport;

const TASKS_SCHEDULED: &str = "tickover_tasks_scheduled_total";
const TASKS_ENDED: &str = "tickover_tasks_ended_total";
const TASK_TIMEOUTS: &str = "tickover_task_timeouts_total";
const ATTEMPTS_ENDED: &str = "tickover_attempts_ended_total";
const HEARTBEATS: &str = "tickover_heartbeats_total";
const HINTS_SENT: &str = "tickover_hints_sent_total";
const HINTS_REPEATED: &str = "tickover_hints_repeated_total";
const QUEUES_WITHOUT_ANSWER: &str = "tickover_queues_without_answer_total";
const TIMERS: &str = "tickover_timers_total";
const EVENTS: &str = "tickover_events_total";
const EXECUTIONS_STARTED: &str = "tickover_executions_started_total";
const EXECUTIONS_ENDED: &str = "tickover_executions_ended_total";
const EXECUTION_TIMEOUTS: &str = "tickover_execution_timeouts_total";
const TURNS: &str = "tickover_turns_total";
const STEPS_ENDED: &str = "tickover_steps_ended_total";
const OCCURRENCES: &str = "tickover_cron_occurrences_total";
const STORE_CONFLICTS: &str = "tickover_store_conflicts_total";
const TICKS: &str = "tickover_ticks_total";
const TICK_RECORDS: &str = "tickover_tick_records_total";

const TASK_DURATION: &str = "tickover_task_duration_seconds";
const ATTEMPT_DURATION: &str = "tickover_attempt_duration_seconds";
const DEADLINE_LATENESS: &str = "tickover_deadline_lateness_seconds";
const EXECUTION_DURATION: &str = "tickover_execution_duration_seconds";
const TURN_LATENESS: &str = "tickover_turn_lateness_seconds";
const START_LATENESS: &str = "tickover_start_lateness_seconds";
const TICK_DURATION: &str = "tickover_tick_duration_seconds";

const QUEUE_DEPTH: &str = "tickover_queue_depth";
const ACTIVE_HEARTBEATS: &str = "tickover_active_heartbeats";
const CLOCK_OFFSET: &str = "tickover_clock_offset_seconds";

/// A metric that only grows.
const COUNTERS: [(&str, &str); 19] = [
    (TASKS_SCHEDULED, "Tasks made."),
    (TASKS_ENDED, "Tasks that ended, by outcome."),
    (TASK_TIMEOUTS, "Deadlines and timeouts enforced, by kind."),
    (ATTEMPTS_ENDED, "Attempts that ended, by how."),
    (HEARTBEATS, "Heartbeats: renewed, or the code of what they were told instead."),
    (HINTS_SENT, "Messages sent to tell workers of a task."),
    (HINTS_REPEATED, "Messages sent again because the first one seemed lost."),
    (
        QUEUES_WITHOUT_ANSWER,
        "Ticks that could not ask a queue for which work waits: it was silent, or is missing from the configuration.",
    ),
    (TIMERS, "Messages of the timers' queue, by what became of them."),
    (EVENTS, "Lifecycle events for the events' queue: sent or failed."),
    (EXECUTIONS_STARTED, "Executions made."),
    (EXECUTIONS_ENDED, "Executions that got their outcome, by outcome."),
    (EXECUTION_TIMEOUTS, "Deadlines of executions and runs enforced, by kind."),
    (TURNS, "Turns of executions taken by workers."),
    (STEPS_ENDED, "Steps of executions that ended, by outcome."),
    (OCCURRENCES, "Occurrences of crons, by what they came to: started, refused, or why skipped."),
    (STORE_CONFLICTS, "Decisions taken again because others changed the record meanwhile."),
    (TICKS, "Ticks: done or out_of_time."),
    (TICK_RECORDS, "Records that ticks dealt with, by what they did."),
];

const GAUGES: [(&str, &str); 3] = [
    (QUEUE_DEPTH, "Messages in a queue, about as many as its tasks that wait, run, or wait for their start."),
    (
        ACTIVE_HEARTBEATS,
        "Leases that a heartbeat to this process renewed and that have not run out or ended.",
    ),
    (CLOCK_OFFSET, "What is added to this machine's clock to make it agree with the dates of AWS's answers."),
];

/// From five milliseconds to ten minutes: by how much something is late.
const LATENESS_SECONDS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
/// From ten milliseconds to a day: how long work takes.
const DURATION_SECONDS: &[f64] =
    &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0];

/// A metric that shows how values are spread.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub name: &'static str,
    /// Upper bounds of its buckets, in seconds, for a recorder that counts in buckets.
    pub bounds: &'static [f64],
    description: &'static str,
}

pub const HISTOGRAMS: [Spread; 7] = [
    Spread {
        name: TASK_DURATION,
        bounds: DURATION_SECONDS,
        description: "From scheduling, or an operator's retry, to the end of a task.",
    },
    Spread {
        name: ATTEMPT_DURATION,
        bounds: DURATION_SECONDS,
        description: "From the claim to the end of an attempt.",
    },
    Spread {
        name: DEADLINE_LATENESS,
        bounds: LATENESS_SECONDS,
        description: "From the instant of a deadline or timeout to its enforcement.",
    },
    Spread {
        name: START_LATENESS,
        bounds: LATENESS_SECONDS,
        description: "From when a task could be claimed to its claim.",
    },
    Spread {
        name: EXECUTION_DURATION,
        bounds: DURATION_SECONDS,
        description: "From the start of an execution to its outcome.",
    },
    Spread {
        name: TURN_LATENESS,
        bounds: LATENESS_SECONDS,
        description: "From when an execution could go on by itself to its turn.",
    },
    Spread { name: TICK_DURATION, bounds: LATENESS_SECONDS, description: "How long a tick took." },
];

/// Tells the process's recorder what each metric means. To be called once, after it is installed.
pub fn describe() {
    for (name, description) in COUNTERS {
        describe_counter!(name, Unit::Count, description);
    }
    for (name, description) in GAUGES {
        describe_gauge!(name, Unit::Count, description);
    }
    for Spread { name, description, .. } in HISTOGRAMS {
        describe_histogram!(name, Unit::Seconds, description);
    }
}

/// Something happened to a task. `born_at` is when this life of it began.
pub(crate) fn event(event: &Event, born_at: Timestamp) {
    let queue = label(&event.queue);
    match &event.what {
        What::TaskScheduled { .. } => counter!(TASKS_SCHEDULED, "queue" => queue.clone()).increment(1),
        What::TaskStarted { waited, .. } => {
            histogram!(START_LATENESS, "queue" => queue.clone()).record(seconds(*waited));
        }
        What::TaskRetrying { .. }
        | What::TaskCompleted { .. }
        | What::TaskFailed { .. }
        | What::TaskTimedOut { .. }
        | What::TaskCancelled { .. } => {
            if let Some(attempt) = event.what.ended_attempt() {
                attempt_ended(attempt, &queue, event.at);
            }
        }
        // An attempt that timed out is closed by the event after that.
        What::AttemptTimedOut { .. } | What::TaskCancelRequested | What::TaskSkipped | What::TaskRevived => {}
    }
    if let Some(expiry) = event.what.expiry() {
        enforced(expiry, &queue);
    }
    if let Some(status) = event.what.ended_as() {
        task_ended(status, queue, event.at.since(born_at));
    }
}

/// Something happened to an execution that was started at `born_at`.
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

/// A worker took a turn, that long after it could have.
pub(crate) fn turn_started(queue: &QueueName, waited: Millis) {
    counter!(TURNS, "queue" => label(queue)).increment(1);
    histogram!(TURN_LATENESS, "queue" => label(queue)).record(seconds(waited));
}

/// A step of an execution ended like this.
pub(crate) fn step_ended(queue: &QueueName, outcome: &'static str) {
    counter!(STEPS_ENDED, "queue" => label(queue), "outcome" => outcome).increment(1);
}

/// An occurrence of a cron came to this.
pub(crate) fn occurrence(result: &'static str) {
    counter!(OCCURRENCES, "result" => result).increment(1);
}

/// When this life of a task began: an operator's retry begins another.
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

/// A heartbeat was answered.
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

/// So many leases are kept alive by heartbeats.
pub(crate) fn active_heartbeats(count: usize) {
    gauge!(ACTIVE_HEARTBEATS).set(small(count));
}

/// A queue was looked at.
pub(crate) fn queue_depth(queue: &QueueName, depth: &Depth) {
    let states = [("visible", depth.visible), ("in_flight", depth.in_flight), ("delayed", depth.delayed)];
    for (state, count) in states {
        let count = small(usize::try_from(count).unwrap_or(usize::MAX));
        gauge!(QUEUE_DEPTH, "queue" => label(queue), "state" => state).set(count);
    }
}

/// The error of this machine's clock has turned out to be another one.
pub(crate) fn clock_offset(offset_ms: i64) {
    #[expect(clippy::cast_precision_loss, reason = "a span to be read by people")]
    let seconds = offset_ms as f64 / 1_000.0;
    gauge!(CLOCK_OFFSET).set(seconds);
}

/// So many hints went to a queue.
pub fn hints_sent(queue: &QueueName, count: usize) {
    counter!(HINTS_SENT, "queue" => label(queue)).increment(u64::try_from(count).unwrap_or(u64::MAX));
}

/// A hint was sent again because the first one seemed lost.
pub fn hint_repeated(queue: &QueueName) {
    counter!(HINTS_REPEATED, "queue" => label(queue)).increment(1);
}

/// A tick asked for a queue's depth and got none.
pub(crate) fn queue_without_answer(queue: &QueueName, standing: Standing) {
    let standing = match standing {
        Standing::Answers => return,
        Standing::Silent => "silent",
        Standing::Missing => "missing",
    };
    counter!(QUEUES_WITHOUT_ANSWER, "queue" => label(queue), "standing" => standing).increment(1);
}

/// This became of a message of the timers' queue.
pub fn timer(result: &'static str) {
    counter!(TIMERS, "result" => result).increment(1);
}

/// Events went to their queue, or didn't.
pub(crate) fn events(sent: usize, failed: usize) {
    for (result, count) in [("sent", sent), ("failed", failed)] {
        counter!(EVENTS, "result" => result).increment(u64::try_from(count).unwrap_or(u64::MAX));
    }
}

/// A record had changed since it was decided on.
pub fn store_conflict() {
    counter!(STORE_CONFLICTS).increment(1);
}

/// A tick is over, after that long.
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
