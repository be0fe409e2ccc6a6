//! Executions and their events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tickover_core::id::{
    EventId, EventName, ExecutionId, QueueName, StepName, TaskId, WorkerName, WorkflowName,
};

use super::{ErrorView, NextView, TimelineEntryView};
use crate::verbatim::present;
use crate::word::words;
use crate::{
    Cursor, Instant, Length, SaidCancelOutcome, SaidCauseCategory, SaidDeadlineKind, SaidExecutionStatus,
    SaidWaitKind, Verbatim,
};

words! {
    /// What sort of thing is waited for.
    WaitKind {
        /// A remote step.
        Step = "step",
        /// A child.
        Child = "child",
        /// A sleep, or a wait with a timeout.
        Timer = "timer",
        /// An attempt at a step in place that was written down before it began (`at_most_once`, `durable_timeout`), and
        /// runs.
        Attempt = "attempt",
        /// A step's next attempt.
        Retry = "retry",
        /// An event, where nothing else is waited for.
        Event = "event",
    }

    /// What an end without a result goes back to.
    CauseCategory {
        /// A step.
        Step = "step",
        /// The workflow's own code.
        Workflow = "workflow",
        /// A deadline.
        Timeout = "timeout",
        /// Its code was stopped on request.
        Cancelled = "cancelled",
        /// It was ended without asking its code.
        Terminated = "terminated",
    }
}

/// An execution. Instants are RFC 3339 in UTC with milliseconds; what doesn't apply is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionView {
    /// Its id, the same for all its runs.
    pub id: ExecutionId,
    /// Which code it runs.
    pub workflow: WorkflowName,
    /// Where workers find it.
    pub queue: QueueName,
    /// Where it stands.
    pub status: SaidExecutionStatus,
    /// Number of the run, from 1: continuing as new, a restart and a rerun begin another one.
    pub run: u32,
    /// When it was started.
    pub created_at: Instant,
    /// When this run was begun.
    pub run_started_at: Instant,
    /// While pending: from when a worker may take its next turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_at: Option<Instant>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Instant>,
    /// The time that all its runs have together, such as `1h 30m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_timeout: Option<Length>,
    /// When it must have ended, whatever the number of runs: fixed at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Instant>,
    /// The time that each run has, such as `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_timeout: Option<Length>,
    /// When this run must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_deadline_at: Option<Instant>,
    /// The time that the workflow's own code has after a failure, as far as is known that there is such code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure_timeout: Option<Length>,
    /// While running: who has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// While running: when its turn was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Instant>,
    /// While running: until when its worker counts as alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<Instant>,
    /// While waiting: since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Instant>,
    /// While waiting: when it goes on by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakes_at: Option<Instant>,
    /// What this run has begun that isn't over: only in the description of a single live execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Vec<WaitView>>,
    /// Remote steps and children that were begun and haven't ended.
    pub open_steps: u32,
    /// Events that wait for it.
    pub pending_events: u32,
    /// `true` where somebody asked to cancel it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<bool>,
    /// `true` while what it left open at its end is being ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closing: Option<bool>,
    /// Why no worker can go on with it: `unknown_workflow`, `panic` and
    /// `foreign_wait` (its code awaits something that isn't durable), with the tries so far; or, until an operator lets it
    /// go on, `unreadable_result` and `drift` (changed code doesn't ask for what is remembered).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<ErrorView>,
    /// The failure that the workflow's own code is dealing with, before the execution ends with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<FailingView>,
    /// Which deadline ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_kind: Option<SaidDeadlineKind>,
    /// Why it failed or timed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// What the end without a result goes back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<CauseView>,
    /// The run's input as it was sent. Lists and operators' calls leave out one that is stored apart, being large.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
    /// Its result; left out like the input.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Verbatim>,
    /// The execution it is a child of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentView>,
    /// Its labels, an object of strings.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::BTreeMap<String, String>>))]
    pub labels: Option<Verbatim>,
    /// Its memo as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub memo: Option<Verbatim>,
    /// What happens next by itself, and when.
    pub next: NextView,
}

/// The execution that started this one as a part of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ParentView {
    /// Its id.
    pub id: ExecutionId,
    /// Its run: a later one isn't told of the end.
    pub run: u32,
}

/// Something begun that isn't over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WaitView {
    /// `step`, a remote one; `child`; `timer`, of a sleep or of a wait with a timeout; `attempt`, of a step in place
    /// that was written down before it began (`at_most_once`, `durable_timeout`) and runs; `retry`, a step's next
    /// attempt; or `event`, where nothing else is waited for.
    pub kind: SaidWaitKind,
    /// Its name in the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<StepName>,
    /// `step`: the task that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// `child`: the execution that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
    /// `attempt`: its number. One that was lost with its worker counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// `timer`, `retry`: until when. `attempt`: when its time is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
}

/// What an end without a result goes back to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CauseView {
    /// `step`, `workflow` (its own code), `timeout`, `cancelled` or `terminated`.
    pub category: SaidCauseCategory,
    /// `timeout`: which deadline, `execution` or `run`; of both, the execution's counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<SaidDeadlineKind>,
    /// `step`: its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// `step`: whether it had used up its attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries_exhausted: Option<bool>,
}

/// A failure that the workflow's own code is dealing with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailingView {
    /// What the execution ends as, unless that code recovers it: `failed` or `timed_out`.
    pub status: SaidExecutionStatus,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// What it goes back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<CauseView>,
    /// When that code must be done: the execution's own deadlines no longer count.
    pub deadline_at: Instant,
}

/// An execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionAnswer {
    /// The execution as it stands now.
    pub execution: ExecutionView,
}

/// A page of executions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionsAnswer {
    /// The executions, latest first. A page may have fewer than asked for, even none, and still not be the last.
    pub executions: Vec<ExecutionView>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// What became of a cancellation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionCancelAnswer {
    /// The execution as it stands now.
    pub execution: ExecutionView,
    /// What became of it: `requested` where its code is stopped at its next step.
    pub outcome: SaidCancelOutcome,
}

/// What became of a pause or its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionChangeAnswer {
    /// The execution as it stands now.
    pub execution: ExecutionView,
    /// Whether this call changed it: `false` where it was like that before.
    pub changed: bool,
}

/// How an event was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SendEventAnswer {
    /// `true` where an event with this id had been sent before: the first one stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<bool>,
    /// Events of all names that wait for the execution now.
    pub pending: u32,
}

/// An event that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventView {
    /// Its name.
    pub name: EventName,
    /// Its own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// What came with it, as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<Verbatim>,
    /// When it was sent.
    #[serde(alias = "offered_at")]
    pub sent_at: Instant,
}

/// A page of the events that wait for an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventsAnswer {
    /// The events, oldest first: of one name, the first is taken first.
    pub events: Vec<EventView>,
    /// How many of each name there are on all pages.
    pub counts: BTreeMap<EventName, u32>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// How many events were thrown away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClearEventsAnswer {
    /// How many events.
    #[serde(alias = "drained")]
    pub cleared: u32,
}

/// What happened to an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimelineAnswer {
    /// Its id.
    pub id: ExecutionId,
    /// The run that it is the timeline of: the last one.
    pub run: u32,
    /// What happened, in the order of time.
    pub entries: Vec<TimelineEntryView>,
}
