//! Logs: their fields, their one line a transition, and how they are set up. Payloads are never logged.

use tickover_core::task::Task;

/// The names of log fields.
pub mod field {
    /// A task's id.
    pub const TASK_ID: &str = "task.id";
    /// The number of an attempt.
    pub const ATTEMPT: &str = "attempt";
    /// A logical queue's name.
    pub const QUEUE_NAME: &str = "queue.name";
    /// How long something took.
    pub const DURATION_MS: &str = "duration_ms";
}

/// One line for a committed change of a task's status.
pub(crate) fn log_transition(before: Option<&Task>, after: &Task) {
    let (from, to) = (before.map(Task::status), after.status());
    if from == Some(to) && before.is_some_and(|before| before.attempt == after.attempt) {
        return;
    }
    tracing::info!(
        { field::TASK_ID } = %after.id,
        { field::QUEUE_NAME } = %after.queue,
        { field::ATTEMPT } = after.attempt,
        from = from.map(tickover_core::task::Status::as_str),
        to = to.as_str(),
        "task"
    );
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For machines: one JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Sends logs to standard error, filtered by directives such as `info` or `tickover=debug`.
///
/// A second call does nothing: the first one's settings stand.
pub fn init(directives: &str, format: LogFormat) {
    let filter = tracing_subscriber::EnvFilter::builder().parse_lossy(directives);
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let outcome = match format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => builder.with_target(false).try_init(),
    };
    // Already set up: by a test, or by a program that embeds this one.
    drop(outcome);
}
