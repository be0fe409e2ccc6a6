//! What happened to an execution.

use serde::Deserialize;
use tickover_core::duration::Millis;
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;

use super::json;
use crate::error::Failure;

/// Something that happened to an execution. What doesn't apply to its kind is absent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TimelineEntry {
    /// When.
    #[serde(deserialize_with = "json::instant")]
    pub at: Timestamp,
    /// What: `started`, `step_completed`, `step_attempt_failed`, `timer_fired`, `event_offered`, `execution_completed`
    /// and so on, as the HTTP API lists them; or an operator's word such as `paused`.
    pub kind: String,
    /// The name of the step, child, sleep, wait, captured value or fan-out.
    pub name: Option<String>,
    /// The run, where one begins or is continued by the next; not in an execution's only one.
    pub run: Option<u32>,
    /// Number of the attempt.
    pub attempt: Option<u32>,
    /// Attempts that a step took.
    pub attempts: Option<u32>,
    /// How many of them were lost, if any: for its policy they don't count.
    pub lost: Option<u32>,
    /// How far an attempt that failed said it had come, or one before it, from 0 to 1.
    pub progress: Option<f64>,
    /// From the beginning to this end, where the journal knows the beginning.
    #[serde(rename = "duration_ms")]
    pub duration: Option<Millis>,
    /// When a timer fires, the time of an attempt is over, or the next attempt may begin.
    #[serde(default, deserialize_with = "json::some_instant")]
    pub until: Option<Timestamp>,
    /// The time that all runs have together.
    #[serde(default, deserialize_with = "json::some_span")]
    pub execution_timeout: Option<Millis>,
    /// When the execution, or what runs on its failure, must have ended.
    #[serde(default, deserialize_with = "json::some_instant")]
    pub deadline_at: Option<Timestamp>,
    /// Where a run begins: the time it has.
    #[serde(default, deserialize_with = "json::some_span")]
    pub run_timeout: Option<Millis>,
    /// Where a run begins: when it must have ended.
    #[serde(default, deserialize_with = "json::some_instant")]
    pub run_deadline_at: Option<Timestamp>,
    /// Who has the turn.
    pub worker: Option<String>,
    /// A remote step's task.
    pub task: Option<String>,
    /// A child's execution.
    pub execution: Option<String>,
    /// What becomes of a child when this execution closes: `abandon`, `request_cancel` or `terminate`.
    pub parent_close: Option<String>,
    /// The event's name.
    pub event: Option<String>,
    /// The event's own id.
    pub event_id: Option<String>,
    /// Steps of a fan-out, or events thrown away.
    pub count: Option<u32>,
    /// The names of the patches.
    pub patches: Option<Vec<String>>,
    /// A result, a captured value or an event's payload, if it is small.
    #[serde(default, deserialize_with = "json::payload")]
    pub output: Option<Json>,
    /// How large it is, in bytes, if it isn't.
    pub output_bytes: Option<u32>,
    /// What went wrong, as the execution has it.
    pub error: Option<Failure>,
    /// What went wrong, as the step's own type has it.
    #[serde(default, deserialize_with = "json::payload")]
    pub step_error: Option<Json>,
}
