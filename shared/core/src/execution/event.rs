//! The lifecycle events of an execution that follow from one committed write.
//!
//! As with tasks, events are derived from the record before and after the write. They carry names, numbers and
//! instants, never payloads. The serialised names are a wire format.

use serde::Serialize;

use crate::duration::Millis;
use crate::execution::{DeadlineKind, Execution, ExecutionOutcome, ExecutionState, ExecutionStatus};
use crate::id::{ExecutionId, Incarnation, QueueName, WorkflowName};
use crate::task::event::FORMAT;
use crate::task::event::wire;
use crate::time::Timestamp;
use crate::trace::TraceContext;

/// A lifecycle event of an execution. No two events have the same execution, incarnation, version and type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExecutionEvent {
    /// Version of the format: the same as for the events of tasks.
    pub v: u8,
    /// The type of the event. Its own fields are serialised next to these.
    #[serde(flatten)]
    pub what: Change,
    pub execution_id: ExecutionId,
    /// Distinguishes it from earlier executions with the same id.
    pub incarnation: Incarnation,
    /// The record's version after this write.
    pub version: u64,
    pub queue: QueueName,
    pub workflow: WorkflowName,
    /// Number of the run.
    pub run: u32,
    /// The trace that it belongs to, in the format of a `traceparent` header. Absent if traces aren't carried.
    #[serde(rename = "traceparent", serialize_with = "wire::trace", skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    #[serde(serialize_with = "wire::instant")]
    pub at: Timestamp,
}

/// The type of an event, with its own fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
pub enum Change {
    /// It exists now.
    ExecutionStarted {
        /// The deadline of all runs together.
        #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
        deadline_at: Option<Timestamp>,
        /// The deadline of the first run.
        #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
        run_deadline_at: Option<Timestamp>,
    },
    /// A further run was started: by `continue_as_new`, by the retry of a run that failed, or by an operator's restart or
    /// rerun.
    ExecutionRunStarted {
        /// Which attempt it is, if it is a retry.
        #[serde(skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        /// From when a worker may start it, if it is a retry.
        #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
        retry_at: Option<Timestamp>,
        /// The deadline of that run.
        #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
        run_deadline_at: Option<Timestamp>,
    },
    /// It failed, and its `on_failure` code handles the failure before it closes.
    ExecutionFailing,
    /// It ended with a result.
    ExecutionCompleted,
    /// It ended with an error.
    ExecutionFailed {
        /// The error's code.
        error_code: String,
        /// The step that failed, if the error came from a step.
        #[serde(skip_serializing_if = "Option::is_none")]
        step: Option<String>,
    },
    /// It ended because its own deadline or that of its run passed.
    ExecutionTimedOut {
        kind: DeadlineKind,
        /// The deadline that passed.
        #[serde(serialize_with = "wire::instant")]
        deadline_at: Timestamp,
        /// How long after the deadline the end was recorded.
        #[serde(rename = "lateness_ms")]
        lateness: Millis,
    },
    /// It ended on request.
    ExecutionCancelled {
        /// Whether it was terminated: ended without asking its code.
        terminated: bool,
    },
    /// No worker can continue it.
    ExecutionStuck,
    /// An operator paused it.
    ExecutionPaused,
    /// An operator resumed it.
    ExecutionResumed,
}

impl Change {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ExecutionStarted { .. } => "ExecutionStarted",
            Self::ExecutionRunStarted { .. } => "ExecutionRunStarted",
            Self::ExecutionFailing => "ExecutionFailing",
            Self::ExecutionCompleted => "ExecutionCompleted",
            Self::ExecutionFailed { .. } => "ExecutionFailed",
            Self::ExecutionTimedOut { .. } => "ExecutionTimedOut",
            Self::ExecutionCancelled { .. } => "ExecutionCancelled",
            Self::ExecutionStuck => "ExecutionStuck",
            Self::ExecutionPaused => "ExecutionPaused",
            Self::ExecutionResumed => "ExecutionResumed",
        }
    }

    /// The status in which the execution ended, if this event is its end.
    pub const fn ended_as(&self) -> Option<ExecutionStatus> {
        match self {
            Self::ExecutionCompleted => Some(ExecutionStatus::Completed),
            Self::ExecutionFailed { .. } => Some(ExecutionStatus::Failed),
            Self::ExecutionTimedOut { .. } => Some(ExecutionStatus::TimedOut),
            Self::ExecutionCancelled { .. } => Some(ExecutionStatus::Cancelled),
            Self::ExecutionStarted { .. }
            | Self::ExecutionRunStarted { .. }
            | Self::ExecutionFailing
            | Self::ExecutionStuck
            | Self::ExecutionPaused
            | Self::ExecutionResumed => None,
        }
    }
}

impl ExecutionEvent {
    /// The event as a message's body.
    pub fn body(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

/// The events of the write of `after` over `before`, in order. A write that only continues a turn has none.
pub fn events(before: Option<&Execution>, after: &Execution, now: Timestamp) -> Vec<ExecutionEvent> {
    let mut changes = Vec::new();
    let (deadline_at, run_deadline_at) = (after.deadline_at, after.run_deadline_at);
    match before {
        None => changes.push(Change::ExecutionStarted { deadline_at, run_deadline_at }),
        Some(before) => {
            if after.run != before.run {
                let retry_at = after.retry_starts_at();
                let attempt = retry_at.and(after.attempt).map(|attempt| attempt.number);
                changes.push(Change::ExecutionRunStarted { attempt, retry_at, run_deadline_at });
            }
            let has_failed = after.failing.as_ref().is_some_and(|failing| failing.outcome.is_failure());
            if has_failed && before.failing.is_none() {
                changes.push(Change::ExecutionFailing);
            }
            if after.stuck.is_some() && before.stuck.is_none() {
                changes.push(Change::ExecutionStuck);
            }
            if after.paused != before.paused && after.closed().is_none() {
                let change = if after.paused { Change::ExecutionPaused } else { Change::ExecutionResumed };
                changes.push(change);
            }
        }
    }
    let was_open = before.is_none_or(|before| before.closed().is_none());
    changes.extend(after.closed().filter(|_| was_open).map(|closed| ended(&closed.outcome, after, now)));
    let event = |what| ExecutionEvent {
        v: FORMAT,
        what,
        execution_id: after.id.clone(),
        incarnation: after.incarnation,
        version: after.version,
        queue: after.queue.clone(),
        workflow: after.workflow.clone(),
        run: after.run,
        trace: after.trace,
        at: now,
    };
    changes.into_iter().map(event).collect()
}

fn ended(outcome: &ExecutionOutcome, after: &Execution, now: Timestamp) -> Change {
    match outcome {
        ExecutionOutcome::Completed { .. } => Change::ExecutionCompleted,
        ExecutionOutcome::Failed { error, step, .. } => {
            Change::ExecutionFailed { error_code: error.code.clone(), step: step.clone() }
        }
        ExecutionOutcome::TimedOut { kind } => {
            let set_to = match kind {
                DeadlineKind::Execution => after.deadline_at,
                DeadlineKind::Run => after.run_deadline_at,
            };
            // A deadline that has passed is always set.
            let deadline_at = set_to.unwrap_or(now);
            Change::ExecutionTimedOut { kind: *kind, deadline_at, lateness: now.since(deadline_at) }
        }
        ExecutionOutcome::Cancelled { terminated } => Change::ExecutionCancelled { terminated: *terminated },
    }
}

/// If a write starts a turn: how long before it the turn could have been started.
pub fn turn_started(before: Option<&Execution>, after: &Execution) -> Option<Millis> {
    let (before, turn) = (before?, after.turn()?);
    if before.turn().is_some_and(|held| held.lease == turn.lease) {
        return None;
    }
    let free_since = match &before.state {
        ExecutionState::Pending(ready) => ready.available_at,
        ExecutionState::Running(lost) => lost.lease_expires_at,
        ExecutionState::Waiting(waiting) => waiting.until.unwrap_or(turn.claimed_at),
        ExecutionState::Closing(_) | ExecutionState::Ended(_) => turn.claimed_at,
    };
    Some(turn.claimed_at.since(free_since))
}
