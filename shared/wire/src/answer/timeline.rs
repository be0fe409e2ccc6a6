//! What happened to an execution.

use serde::{Deserialize, Serialize};
use tickover_core::id::{EventId, EventName, ExecutionId, TaskId, WorkerName};

use super::{CauseView, ErrorView};
use crate::verbatim::present;
use crate::{Instant, Length, SaidParentClose, Verbatim};

/// Something that happened. What doesn't apply to its kind is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimelineEntryView {
    /// When.
    pub at: Instant,
    /// What: `started`, `run_continued` (an earlier run made way for the next), `run_started`, `turn_started`,
    /// `turn_lost` (its worker was lost, or let the time of an attempt pass; told as far as the record has room for
    /// it), `patched`, `step_attempt_started`, `step_attempt_failed`, `step_attempt_lost` (with its worker, or cut off
    /// with its invocation; told when that is found), `step_started`, `step_completed`, `step_failed`,
    /// `step_exhausted`, `step_timed_out`, `step_deadline_exceeded`, `step_cancelled`, `step_result_expired` (its
    /// result was deleted before anybody looked), `step_reopened`, the same with `child_` for `step_`,
    /// `child_abandoned`, `child_cancel_requested`, `child_terminated`, `fan_out_started`, `captured`,
    /// `timer_started`, `timer_fired`, `timer_cancelled`, `event_sent`, `events_cleared`, `event_awaited` (it waits
    /// for an event without a time limit), `wait_ended`, `wait_timed_out`, `on_failure_started`,
    /// `execution_completed`, `execution_failed`, `execution_timed_out`, `execution_cancelled`, `drift` (the code doesn't
    /// ask for what is remembered of this name), or an operator's word such as `paused`.
    pub kind: String,
    /// The name of the step, child, sleep, wait, captured value or fan-out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The run, where one begins or is continued by the next; not in an execution's only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// Number of the attempt. Attempts that were lost count, where the journal knows of them: those of steps in place
    /// that were written down before they began (`at_most_once`, `durable_timeout`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Attempts that a step took, counted likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// How many of them were lost, if any: for its policy they don't count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u32>,
    /// How far an attempt that failed said it had come, or one before it, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// Milliseconds from the beginning to this end, where the journal knows the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// When a timer fires, the time of an attempt is over, or the next attempt may begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
    /// `started`: the time that all runs have together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_timeout: Option<Length>,
    /// `started`: when it must have ended. `on_failure_started`: when that must be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Instant>,
    /// Where a run begins: the time it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_timeout: Option<Length>,
    /// Where a run begins: when it must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_deadline_at: Option<Instant>,
    /// `turn_started`: who has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// A remote step's task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// A child's execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
    /// What becomes of a child when this execution closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_close: Option<SaidParentClose>,
    /// The event's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<EventName>,
    /// The event's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// Steps of a fan-out, or events thrown away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The names of the patches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches: Option<Vec<String>>,
    /// A result, a captured value or an event's payload, if it is small enough to lie in the journal itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Verbatim>,
    /// How large it is, if it isn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u32>,
    /// What went wrong, as the execution has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// What went wrong, as the step's own type has it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub step_error: Option<Verbatim>,
    /// What an end without a result goes back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<CauseView>,
}
