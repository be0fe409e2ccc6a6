//! What happened to an execution.

use serde::{Deserialize, Serialize};
use tickover_core::id::{EventId, EventName, ExecutionId, TaskId, WorkerName};

use super::{ByView, CauseView, ErrorView};
use crate::verbatim::present;
use crate::{Instant, Length, OpenParentClose, OpenStepTimeout, Verbatim};

/// An entry of the timeline. A field that doesn't apply to its kind is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimelineEntryView {
    /// When.
    pub at: Instant,
    /// What: `started`, `run_continued` (an earlier run ended, and the next one started), `run_started`,
    /// `run_failed` (the end of a run that is retried), `retried` (the run before failed, and this one is another attempt),
    /// `turn_started`, `turn_lost` (its worker was lost, or an attempt timed out; only as far as the record has space
    /// for it), `patched`, `step_attempt_started`, `step_progress` (a running attempt reported
    /// something), `step_attempt_failed`, `step_attempt_lost` (lost with its worker or
    /// at the end of its invocation; recorded when the loss is found), `step_started`, `step_completed`, `step_failed`,
    /// `step_exhausted`, `step_timed_out`, `step_deadline_exceeded`, `step_cancelled`, `step_result_expired` (its
    /// result was deleted before the workflow read it), `step_reopened`, the same with `child_` instead of `step_`,
    /// `child_abandoned`, `child_cancel_requested`, `child_terminated`, `fan_out_started`, `captured`, `timer_started`,
    /// `timer_fired`, `timer_cancelled`, `event_sent`, `events_cleared`, `event_awaited` (it waits for an event
    /// without a time limit), `wait_ended`, `wait_timed_out`, `on_failure_started`, `on_cancel_started`, `code_stopped`
    /// (because of a cancellation; its undo steps follow), `execution_completed`, `execution_failed`,
    /// `execution_timed_out`, `execution_cancelled`, `drift` (the code doesn't ask for the stored result with this name),
    /// or an operator's action such as `paused` or `terminated`.
    pub kind: String,
    /// An operator's action: whose it was, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ByView>,
    /// The name of the step, child, sleep, wait, captured value or fan-out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The run that starts, or that the next run continues. Absent if the execution has only one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// Number of the attempt. Lost attempts count if the journal has them: attempts of inline steps that were recorded
    /// before they started (those with a `timeout` or a `heartbeat`, or `at_most_once`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The number of a step's attempts, counted in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// How many of them were lost, if any. They don't count for the retry policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u32>,
    /// The last progress that an attempt, or one before it, reported, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// The last details that an attempt, or one before it, reported.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub details: Option<Verbatim>,
    /// Milliseconds from the start to this end, if the journal has the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// When a timer fires, an attempt times out, or the next attempt may start, of a step or of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
    /// `started`: the time limit of all runs together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_timeout: Option<Length>,
    /// At the end of a step, a child or the execution by a time limit: which one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_kind: Option<OpenStepTimeout>,
    /// `started`: when the execution must have ended. `on_failure_started`: when the failure handler must have ended. At
    /// an end by a time limit: the instant of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Instant>,
    /// At the start of a run: its time limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_timeout: Option<Length>,
    /// At the start of a run: when it must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_deadline_at: Option<Instant>,
    /// `turn_started`: the worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// A remote step's task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// A child's execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
    /// What happens to a child when this execution closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_close: Option<OpenParentClose>,
    /// The event's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<EventName>,
    /// The event's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// The number of steps of a fan-out, or of events that were cleared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The names of the patches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches: Option<Vec<String>>,
    /// A result, a captured value, an event's payload, or the input with which a step runs again, if it is small enough for
    /// the journal itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Verbatim>,
    /// Its size, if it isn't in the journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u32>,
    /// The error, as the execution has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// The error, in the form of the step's own type.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub step_error: Option<Verbatim>,
    /// The cause of an end without a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<CauseView>,
}
