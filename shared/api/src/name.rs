//! Names in paths.

#[cfg(feature = "http")]
use tickover_core::duration::MAX_QUOTED_CHARS;
use tickover_core::error::Reject;
use tickover_core::id::{
    CronId, EventName, ExecutionId, NameError, OperationId, Owner, QueueName, StepName, TaskId, TaskKind,
};

/// A task's id in a path.
pub(crate) fn task_id(text: &str) -> Result<TaskId, Reject> {
    parse("id", text, TaskId::parse)
}

/// Who has a place, in a path: the id of a task, or `@` and that of an execution.
pub(crate) fn owner(text: &str) -> Result<Owner, Reject> {
    parse("holder", text, |text| Owner::try_from(text.to_owned()))
}

/// A queue's name in a path.
pub(crate) fn queue(text: &str) -> Result<QueueName, Reject> {
    parse("queue", text, QueueName::parse)
}

/// A task's kind in a path.
pub(crate) fn kind(text: &str) -> Result<TaskKind, Reject> {
    parse("kind", text, TaskKind::parse)
}

/// An execution's id in a path.
pub(crate) fn execution_id(text: &str) -> Result<ExecutionId, Reject> {
    parse("id", text, ExecutionId::parse)
}

/// An event's name in a path.
pub(crate) fn event(text: &str) -> Result<EventName, Reject> {
    parse("name", text, EventName::parse)
}

/// A step's name in a path.
pub(crate) fn step(text: &str) -> Result<StepName, Reject> {
    parse("name", text, StepName::parse)
}

/// A cron's id in a path.
pub(crate) fn cron_id(text: &str) -> Result<CronId, Reject> {
    parse("id", text, CronId::parse)
}

/// An operation's id in a path.
pub(crate) fn operation_id(text: &str) -> Result<OperationId, Reject> {
    parse("id", text, OperationId::parse)
}

fn parse<'t, T>(
    field: &str,
    text: &'t str,
    parse: impl FnOnce(&'t str) -> Result<T, NameError>,
) -> Result<T, Reject> {
    parse(text).map_err(|error| error.refused(field))
}

/// The start of a caller's text, as errors quote it.
#[cfg(feature = "http")]
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(MAX_QUOTED_CHARS).collect()
}
