//! What happened to an execution in one committed write, for those who want to be told.
//!
//! As with tasks, events are derived from the record before and after the write, and carry names, numbers and
//! instants, never payloads. The serialised names are a wire format.

use serde::Serialize;

use crate::duration::Millis;
use crate::execution::{DeadlineKind, Execution, ExecutionOutcome, ExecutionState, ExecutionStatus};
use crate::id::{ExecutionId, Incarnation, QueueName, WorkflowName};
use crate::task::event::FORMAT;
use crate::task::event::wire;
use crate::time::Timestamp;
use crate::trace::TraceContext;

/// Something that happened to an execution. No two events have the same execution, incarnation, version and type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExecutionEvent {
    /// Version of the format, as of the events of tasks.
    pub v: u8,
    /// What, with its own fields beside these.
    #[serde(flatten)]
    pub what: Change,
    /// The execution.
    pub execution_id: ExecutionId,
    /// Tells it from earlier executions of the same id.
    pub incarnation: Incarnation,
    /// The record's version since this write.
    pub version: u64,
    /// Its queue.
    pub queue: QueueName,
    /// Which code it runs.
    pub workflow: WorkflowName,
    /// Number of the run.
    pub run: u32,
    /// The trace that it belongs to, as in a `traceparent` header, where traces are carried.
    #[serde(rename = "traceparent", serialize_with = "wire::trace", skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// When.
    #[serde(serialize_with = "wire::instant")]
    pub at: Timestamp,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
pub enum Change {
    /// It exists now.
    ExecutionStarted {
        /// When it must have ended.
        #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
        deadline_at: Option<Timestamp>,
        /// When its first run must have ended.
        #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
        run_deadline_at: Option<Timestamp>,
    },
    /// A further run was begun: it continued as new, or an operator had it run again.
    ExecutionRunStarted {
        /// When that run must have ended.
        #[serde(serialize_with = "wire::maybe_instant", skip_serializing_if = "Option::is_none")]
        run_deadline_at: Option<Timestamp>,
    },
    /// It failed, and its own code deals with that before it closes.
    ExecutionFailing,
    /// It ended with a result.
    ExecutionCompleted,
    /// It ended with an error.
    ExecutionFailed {
        /// The error's code.
        error_code: String,
        /// The step whose failure it was.
        #[serde(skip_serializing_if = "Option::is_none")]
        step: Option<String>,
    },
    /// It ended because its time, or its run's, ran out.
    ExecutionTimedOut {
        /// Which deadline.
        kind: DeadlineKind,
        /// The instant that it was set to.
        #[serde(serialize_with = "wire::instant")]
        deadline_at: Timestamp,
        /// How long after that instant it was enforced.
        #[serde(rename = "lateness_ms")]
        lateness: Millis,
    },
    /// It ended on request.
    ExecutionCancelled {
        /// Whether without asking its code.
        terminated: bool,
    },
    /// No worker can go on with it.
    ExecutionStuck,
    /// An operator holds it.
    ExecutionPaused,
    /// And lets it go on.
    ExecutionResumed,
}

impl Change {
    /// The event's type.
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

    /// The status that the execution ended in, if it ended.
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

/// What happened in the write of `after` over `before`, in order; nothing for a turn that only goes on.
pub fn events(before: Option<&Execution>, after: &Execution, now: Timestamp) -> Vec<ExecutionEvent> {
    let mut changes = Vec::new();
    let (deadline_at, run_deadline_at) = (after.deadline_at, after.run_deadline_at);
    match before {
        None => changes.push(Change::ExecutionStarted { deadline_at, run_deadline_at }),
        Some(before) => {
            if after.run != before.run {
                changes.push(Change::ExecutionRunStarted { run_deadline_at });
            }
            if after.failing.is_some() && before.failing.is_none() {
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
            // What is enforced was set.
            let deadline_at = set_to.unwrap_or(now);
            Change::ExecutionTimedOut { kind: *kind, deadline_at, lateness: now.since(deadline_at) }
        }
        ExecutionOutcome::Cancelled { terminated } => Change::ExecutionCancelled { terminated: *terminated },
    }
}

/// Whether a write lets a worker begin a turn, and how long it could have begun before.
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
