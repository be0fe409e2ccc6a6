//! Executions and their events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tickover_core::id::{
    EventId, EventName, ExecutionId, QueueName, StepName, TaskId, WorkerName, WorkflowName,
};

use super::{ErrorView, NextView, TimelineEntryView, WaitsAtView};
use crate::verbatim::present;
use crate::word::words;
use crate::{
    Attempts, Cursor, Instant, Length, OpenCancelOutcome, OpenCauseCategory, OpenDeadlineKind,
    OpenExecutionStatus, OpenPriority, OpenWaitKind, Verbatim,
};

words! {
    /// What an execution waits for.
    WaitKind {
        /// A remote step.
        Step = "step",
        /// A child.
        Child = "child",
        /// A sleep, or a wait with a timeout.
        Timer = "timer",
        /// A running attempt of an inline step that was recorded before it started: a step with a `timeout` or a
        /// `heartbeat`, or one that is `at_most_once`.
        Attempt = "attempt",
        /// A step's next attempt.
        Retry = "retry",
        /// An event, without a timeout.
        Event = "event",
    }

    /// The cause of an end without a result.
    CauseCategory {
        /// A step.
        Step = "step",
        /// The workflow's own code.
        Workflow = "workflow",
        /// A deadline.
        Timeout = "timeout",
        /// A cancellation: its code was stopped.
        Cancelled = "cancelled",
        /// A termination: it was ended at once.
        Terminated = "terminated",
    }
}

/// An execution. Instants are RFC 3339 in UTC with milliseconds. A field that doesn't apply is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionView {
    /// Its id, the same for all its runs.
    pub id: ExecutionId,
    /// The workflow whose code it runs.
    pub workflow: WorkflowName,
    /// The queue of its workers.
    pub queue: QueueName,
    /// Its status.
    pub status: OpenExecutionStatus,
    /// Number of the run, from 1. Continuing as new, a retry of a failed run, a restart and a rerun each start another run.
    pub run: u32,
    /// If the workflow's code retries failed runs (`retry`): which attempt this run is, from 1. Known once a worker has
    /// started a turn. It starts anew with continuing as new, a restart and a rerun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The same: how many attempts there are; -1 for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<Attempts>,
    /// When it was started.
    pub created_at: Instant,
    /// When this run started; or when it will, if it is a retry or has a delay.
    pub run_started_at: Instant,
    /// While pending: from when a worker may start its next turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_at: Option<Instant>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Instant>,
    /// The time limit of all its runs together, such as `1h 30m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_timeout: Option<Length>,
    /// When it must have ended, over all its runs. It is fixed at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Instant>,
    /// The time limit of each run, such as `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_timeout: Option<Length>,
    /// When this run must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_deadline_at: Option<Instant>,
    /// The time limit of the workflow's failure handler (`on_failure`), if it is known that the workflow has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure_timeout: Option<Length>,
    /// While running: the worker that has its lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// While running: when its turn started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Instant>,
    /// While running: when the worker's lease expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<Instant>,
    /// While waiting: since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Instant>,
    /// While waiting: when it continues by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakes_at: Option<Instant>,
    /// What this run waits for: only in the description of a single live execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Vec<WaitView>>,
    /// Remote steps and children that have started and haven't ended.
    pub open_steps: u32,
    /// Steps and children of this run that have ended with a result. Absent if an older version of the system has
    /// written a part of its history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_steps: Option<u32>,
    /// Events that wait for it.
    pub pending_events: u32,
    /// The values that its code has published. In a list only if they are small.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueView>,
    /// `true` after a request to cancel it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<bool>,
    /// `true` while its open steps and children are being ended after its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closing: Option<bool>,
    /// Why no worker can continue it. `unknown_workflow`, `panic` and `foreign_wait` (its code awaits a future that
    /// isn't durable) are retried, and have the number of tries so far. `unreadable_result` and `drift` (changed code
    /// doesn't ask for a stored result) wait for an operator's resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<ErrorView>,
    /// What the workflow's handler (`on_failure` or `on_cancel`) handles before the execution ends with it: its failure or
    /// its cancellation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<FailingView>,
    /// Which deadline ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_kind: Option<OpenDeadlineKind>,
    /// Why it failed or timed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// The cause of an end without a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<CauseView>,
    /// The run's input as it was sent. Lists and operators' calls leave out a large input that is stored as a blob.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
    /// Its result; left out like the input.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Verbatim>,
    /// `high` or `low`, if its turns don't start in the usual order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<OpenPriority>,
    /// The key whose limit holds it back, while it waits for a place. Only in the answer about this one execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_at: Option<WaitsAtView>,
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
    /// The trace that it belongs to, if the server carries traces: W3C's trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What happens next without another call, and when.
    pub next: NextView,
}

/// The execution that started this one as a child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ParentView {
    /// Its id.
    pub id: ExecutionId,
    /// Its run. A later run isn't notified of the child's end.
    pub run: u32,
}

/// Something that the run waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WaitView {
    /// `step`, a remote one; `child`; `timer`, of a sleep or of a wait with a timeout; `attempt`, a running attempt of
    /// an inline step that was recorded before it started (with a `timeout` or a `heartbeat`, or `at_most_once`);
    /// `retry`, a step's next attempt; or `event`, a wait for an event without a timeout.
    pub kind: OpenWaitKind,
    /// Its name in the run; absent for `event`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<StepName>,
    /// `event`, `timer`: the event that ends the wait. An `event` has none if the record had no space for its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventName>,
    /// The same, if only a callback sends that event: the callback's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// `step`: its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// `child`: its execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
    /// `attempt`: its number. Attempts that were lost with their worker count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// `timer`, `retry`: until when. `attempt`: when it times out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
}

/// The cause of an end without a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CauseView {
    /// `step`, `workflow` (its own code), `timeout`, `cancelled` or `terminated`.
    pub category: OpenCauseCategory,
    /// `timeout`: which deadline, `execution` or `run`. If both have passed, `execution`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<OpenDeadlineKind>,
    /// `step`: its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// `step`: whether it had no attempts left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries_exhausted: Option<bool>,
}

/// A failure or cancellation that the workflow's handler (`on_failure` or `on_cancel`) handles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailingView {
    /// The status with which the execution ends: `cancelled`; or `failed` or `timed_out`, unless the handler returns a
    /// result.
    pub status: OpenExecutionStatus,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// Its cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<CauseView>,
    /// The handler's deadline. The execution's own deadlines no longer apply.
    pub deadline_at: Instant,
}

/// An execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionAnswer {
    /// The execution in its current state.
    pub execution: ExecutionView,
}

/// A page of executions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionsAnswer {
    /// The executions, newest first. A page may have fewer records than the limit, even none, although it isn't the
    /// last page.
    pub executions: Vec<ExecutionView>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// The version of [`ExportAnswer`].
pub const EXPORT_FORMAT: u8 = 1;

/// A part of the export of an execution's current run. `tickover execution export` joins the parts to one of this form,
/// without a cursor, which [`TestEnv::replay`] of the crate `tickover` reads.
///
/// [`TestEnv::replay`]: https://docs.rs/tickover/latest/tickover/test/struct.TestEnv.html
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExportAnswer {
    /// The version of this form, which is [`EXPORT_FORMAT`].
    pub format: u8,
    /// When it was made.
    pub exported_at: Instant,
    /// Whether the inputs and results are in it. Otherwise each is `null`.
    pub payloads: bool,
    /// The record as it is stored, without its journal.
    pub execution: Verbatim,
    /// The journal's entries as they are stored, oldest first.
    pub entries: Vec<Verbatim>,
    /// Where the next part begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// The workflows that executions were started of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkflowsAnswer {
    /// The workflows, by name.
    pub workflows: Vec<WorkflowView>,
    /// Whether all executions are counted, and not only the latest.
    pub complete: bool,
    /// How many executions were read to count them, the latest; absent if the system keeps counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// When they were counted.
    pub as_of: Instant,
}

/// A workflow, and how many executions of it there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkflowView {
    /// Its name.
    pub workflow: WorkflowName,
    /// The number of executions of each status. A status that none has is absent. Those past their retention count
    /// until they are deleted.
    pub executions: BTreeMap<String, u64>,
}

/// The outcome of a cancellation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionCancelAnswer {
    /// The execution in its current state.
    pub execution: ExecutionView,
    /// The outcome: `requested` if its code will stop at its next step.
    pub outcome: OpenCancelOutcome,
}

/// The outcome of a pause or a resume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionChangeAnswer {
    /// The execution in its current state.
    pub execution: ExecutionView,
    /// Whether this call changed it: `false` if it had this state before.
    pub changed: bool,
}

/// The outcome of sending an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SendEventAnswer {
    /// `true` if an event with this id was sent before. The first one is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<bool>,
    /// Events of all names that wait for the execution now.
    pub pending: u32,
    /// The event's id, if an answer was asked for: the call may be repeated with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// What the execution's code has answered. Absent if no answer was asked for, or there is none yet.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub answer: Option<Verbatim>,
}

/// A waiting event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventView {
    /// Its name.
    pub name: EventName,
    /// Its own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// Its payload as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<Verbatim>,
    /// When it was sent.
    pub sent_at: Instant,
}

/// A page of the events that wait for an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventsAnswer {
    /// The events, oldest first. Of one name, the workflow takes the oldest first.
    pub events: Vec<EventView>,
    /// How many of each name there are on all pages.
    pub counts: BTreeMap<EventName, u32>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// The outcome of clearing events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClearEventsAnswer {
    /// The number of events that were cleared.
    pub cleared: u32,
}

/// What happened to an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimelineAnswer {
    /// Its id.
    pub id: ExecutionId,
    /// The run of this timeline.
    pub run: u32,
    /// What happened, in order of time. Steps and children that have ended since the last turn are shown as ended.
    pub entries: Vec<TimelineEntryView>,
    /// The number of open steps and children beyond the first 100, if there are more: their records weren't read, so
    /// those that have ended since the last turn are shown as open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<u32>,
}

/// A page of the earlier runs of an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunsAnswer {
    /// Its id.
    pub id: ExecutionId,
    /// The number of the current run.
    pub run: u32,
    /// Its earlier runs, latest first.
    pub runs: Vec<EarlierRunView>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// A run that another one followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EarlierRunView {
    /// Its number.
    pub run: u32,
    /// How it ended: as an execution does (`completed`, `failed`, `timed_out`, `cancelled`), or `continued`: its code
    /// went on in the next run.
    pub status: String,
    /// When it started, or was to start.
    pub started_at: Instant,
    /// When it ended.
    pub ended_at: Instant,
    /// The error it ended with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// When its retry started, or was to start: the next run is another attempt at the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_at: Option<Instant>,
    /// The number of entries in its journal.
    pub journal_entries: u32,
}

/// A value that an execution's code has published under a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ValueView {
    /// The name.
    pub name: StepName,
    /// How often the value has changed, from 1.
    pub version: u32,
    /// When it was published.
    pub published_at: Instant,
    /// The value, as the code has published it.
    pub value: Verbatim,
}

/// The values that an execution has published, in the order of their names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ValuesAnswer {
    /// The values.
    pub values: Vec<ValueView>,
}

/// A published value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ValueAnswer {
    /// The value.
    pub value: ValueView,
}
