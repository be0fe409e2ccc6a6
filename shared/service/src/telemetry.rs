//! Logs: their fields, one line for each change of a task or an execution, and their setup. Payloads are never logged.

use std::io::IsTerminal as _;

use tickover_core::execution::Parent;
use tickover_core::execution::event::{Change, ExecutionEvent};
use tickover_core::id::{ExecutionId, StepName, WorkerName};
use tickover_core::task::event::{Event, EventType};
use tickover_core::time::Timestamp;
pub use tracing_subscriber::filter::Targets;
use tracing_subscriber::filter::{LevelFilter, ParseError};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::ProcessEnvironment;

/// The names of log fields.
pub mod field {
    pub const TASK_ID: &str = "task.id";
    pub const EXECUTION_ID: &str = "execution.id";
    pub const WORKFLOW: &str = "workflow";
    pub const RUN: &str = "run";
    pub const STEP_NAME: &str = "step.name";
    pub const ATTEMPT: &str = "attempt";
    pub const QUEUE_NAME: &str = "queue.name";
    pub const DURATION_MS: &str = "duration_ms";
    /// Which timeout was enforced.
    pub const TIMEOUT_KIND: &str = "timeout.kind";
    /// The instant of the deadline or timeout.
    pub const DEADLINE_AT: &str = "deadline_at";
    /// How long after that instant it was enforced.
    pub const LATENESS_MS: &str = "lateness_ms";
    /// Whether that instant is in the future, and no attempt could start before it.
    pub const DOOMED: &str = "doomed";
    /// When an attempt was claimed.
    pub const STARTED_AT: &str = "started_at";
    pub const OUTCOME: &str = "outcome";
    /// The code of an error, never its message.
    pub const ERROR_CODE: &str = "error.code";
    /// The worker that made the claim.
    pub const WORKER: &str = "worker";
    /// The trace that it belongs to, where traces are carried.
    pub const TRACE_ID: &str = "trace.id";
    /// From when a task may be claimed again.
    pub const RETRY_AT: &str = "retry_at";
}

/// The target of the audit lines. They are written whatever the filter says.
pub const AUDIT: &str = "audit";

/// Logs a failure at `warn`, or at `debug` if the store has logged the cause, once for all calls that fail for it. So a
/// full disk doesn't fill the log.
///
/// Before the semicolon is the error, after it what `tracing::warn!` takes.
#[macro_export]
macro_rules! warn_unless_logged {
    ($error:expr; $($line:tt)+) => {
        if $error.is_logged() { ::tracing::debug!($($line)+) } else { ::tracing::warn!($($line)+) }
    };
}

/// The execution that a task is a remote step of, by the task's reference to it, for a line about the task.
pub fn execution_of(parent: Option<&Parent>) -> Option<&str> {
    parent.map(|parent| parent.execution.as_str())
}

/// The name of a task's step, by the task's reference to its execution, for a line about the task.
pub fn step_of(parent: Option<&Parent>) -> Option<&str> {
    parent?.step.as_ref().map(StepName::as_str)
}

/// Logs one line for an event of a task. Outcomes that an operator should check are warnings. The ordinary life of a task
/// that succeeds is at `debug`: its record says the same, and each line is billed.
pub(crate) fn log_event(event: &Event) {
    macro_rules! line {
        ($level:expr) => {
            tracing::event!(
                $level,
                { field::TASK_ID } = %event.task_id,
                { field::EXECUTION_ID } = event.execution_id.as_ref().map(ExecutionId::as_str),
                { field::STEP_NAME } = event.step.as_ref().map(StepName::as_str),
                { field::QUEUE_NAME } = %event.queue,
                { field::ATTEMPT } = event.attempt,
                { field::TIMEOUT_KIND } = event.what.expiry().map(|expiry| expiry.kind.as_str()),
                { field::DEADLINE_AT } = event.what.expiry().map(|expiry| expiry.deadline_at.to_rfc3339()),
                { field::LATENESS_MS } = event.what.expiry().map(|expiry| expiry.lateness.as_u64()),
                { field::DOOMED } = event.what.expiry().map(|expiry| expiry.doomed).filter(|doomed| *doomed),
                { field::STARTED_AT } = started_at(event),
                { field::OUTCOME } = event.what.ended_attempt().map(|attempt| attempt.outcome.as_str()),
                { field::ERROR_CODE } = event.what.error_code(),
                { field::WORKER } = worker(event),
                { field::RETRY_AT } = retry_at(event),
                { field::TRACE_ID } = event.trace.map(|trace| trace.trace_id()),
                "{}",
                event.what.name()
            )
        };
    }
    match event.what {
        EventType::TaskTimedOut { .. } | EventType::TaskFailed { .. } => line!(tracing::Level::WARN),
        EventType::TaskScheduled { .. } | EventType::TaskStarted { .. } | EventType::TaskCompleted { .. } => {
            line!(tracing::Level::DEBUG);
        }
        EventType::AttemptTimedOut { .. }
        | EventType::TaskRetrying { .. }
        | EventType::TaskCancelled { .. }
        | EventType::TaskCancelRequested
        | EventType::TaskSkipped
        | EventType::TaskRevived => line!(tracing::Level::INFO),
    }
}

/// Logs one line for an event of an execution, at the levels of [`log_event`].
pub(crate) fn log_execution(event: &ExecutionEvent) {
    macro_rules! line {
        ($level:expr) => {
            tracing::event!(
                $level,
                { field::EXECUTION_ID } = %event.execution_id,
                { field::WORKFLOW } = %event.workflow,
                { field::RUN } = event.run,
                { field::QUEUE_NAME } = %event.queue,
                { field::TIMEOUT_KIND } = deadline(&event.what).map(|(kind, _, _)| kind),
                { field::DEADLINE_AT } = deadline(&event.what).map(|(_, at, _)| at),
                { field::LATENESS_MS } = deadline(&event.what).map(|(_, _, lateness)| lateness),
                { field::STEP_NAME } = failure(&event.what).and_then(|(_, step)| step),
                { field::ERROR_CODE } = failure(&event.what).map(|(code, _)| code),
                { field::TRACE_ID } = event.trace.map(|trace| trace.trace_id()),
                "{}",
                event.what.name()
            )
        };
    }
    match event.what {
        Change::ExecutionTimedOut { .. } | Change::ExecutionFailed { .. } | Change::ExecutionStuck => {
            line!(tracing::Level::WARN);
        }
        Change::ExecutionStarted { .. } | Change::ExecutionCompleted => line!(tracing::Level::DEBUG),
        Change::ExecutionRunStarted { .. }
        | Change::ExecutionFailing
        | Change::ExecutionCancelled { .. }
        | Change::ExecutionPaused
        | Change::ExecutionResumed => line!(tracing::Level::INFO),
    }
}

fn deadline(what: &Change) -> Option<(&'static str, String, u64)> {
    if let Change::ExecutionTimedOut { kind, deadline_at, lateness } = what {
        Some((kind.as_str(), deadline_at.to_rfc3339(), lateness.as_u64()))
    } else {
        None
    }
}

fn failure(what: &Change) -> Option<(&str, Option<&str>)> {
    if let Change::ExecutionFailed { error_code, step } = what {
        Some((error_code, step.as_deref()))
    } else {
        None
    }
}

fn started_at(event: &Event) -> Option<String> {
    event.what.ended_attempt()?.started_at.map(Timestamp::to_rfc3339)
}

fn worker(event: &Event) -> Option<&str> {
    let worker = if let EventType::TaskStarted { worker, .. } = &event.what {
        worker
    } else {
        &event.what.ended_attempt()?.worker
    };
    worker.as_ref().map(WorkerName::as_str)
}

fn retry_at(event: &Event) -> Option<String> {
    if let EventType::TaskRetrying { retry_at, .. } = &event.what {
        Some(retry_at.to_rfc3339())
    } else {
        None
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For machines: one JSON object for each line.
    Json,
    /// For people.
    Text,
}

/// Why log directives are refused.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// They name spans or fields.
    #[error("only levels and targets can be selected, not spans and fields")]
    Spans,
    /// They can't be parsed.
    #[error(transparent)]
    Directive(#[from] ParseError),
}

/// Parses a filter of log lines: a level, or directives such as `info,tickover=debug`. The directive with the longest
/// matching prefix of a line's target counts.
pub fn filter(directives: &str) -> Result<Targets, FilterError> {
    if directives.contains(['[', '{']) {
        return Err(FilterError::Spans);
    }
    let directives: Vec<_> = directives.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
    Ok(directives.join(",").parse()?)
}

/// The default filter: lines at `info` and above.
pub fn default_filter() -> Targets {
    Targets::new().with_default(LevelFilter::INFO)
}

/// The filter with the audit lines.
fn audited(filter: Targets) -> Targets {
    filter.with_target(AUDIT, LevelFilter::INFO)
}

/// Sends log lines that pass the filter to standard error, and audit lines. Lines for people are coloured on a terminal, unless
/// `NO_COLOR` is set.
///
/// A second call does nothing: the settings of the first one stay.
pub fn init(filter: Targets, format: LogFormat) {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(audited(filter));
    let outcome = match format {
        LogFormat::Json => {
            // Only the innermost span is written: a function has one, with the request's id.
            let lines = lines.with_ansi(false).json().flatten_event(true).with_span_list(false);
            registry.with(lines).try_init()
        }
        LogFormat::Text => {
            let coloured = std::io::stderr().is_terminal() && !ProcessEnvironment::from_env().no_color;
            registry.with(lines.with_ansi(coloured).with_target(false)).try_init()
        }
    };
    // Already set up: by a test, or by a program that embeds this one.
    drop(outcome);
}
