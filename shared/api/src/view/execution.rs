//! An execution as callers see it.

mod answers;
mod attempts;
mod outcome;
mod timeline;
mod waits;

use serde::Serialize;
use tickover_core::execution::journal::Entry;
use tickover_core::execution::next::next;
use tickover_core::execution::{Execution, ExecutionState, Stuck};
use tickover_core::time::Timestamp;
use tickover_service::executions::Described;
use utoipa::ToSchema;

use super::attempt::ErrorView;
use super::task::NextView;
use super::verbatim::Verbatim;

pub use answers::{
    ClearEventsAnswer, EventView, EventsAnswer, ExecutionAnswer, ExecutionCancelAnswer,
    ExecutionChangeAnswer, ExecutionsAnswer, SendEventAnswer, TimelineAnswer,
};
pub use outcome::{CauseView, FailingView};
pub use timeline::{TimelineEntryView, timeline};
pub use waits::WaitView;

/// An execution. Instants are RFC 3339 in UTC with milliseconds; what doesn't apply is absent.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ExecutionView {
    /// Its id, the same for all its runs.
    pub id: String,
    /// Which code it runs.
    pub workflow: String,
    /// Where workers find it.
    pub queue: String,
    /// `pending`, `running`, `waiting`, `paused`, `completed`, `failed`, `timed_out` or `cancelled`.
    #[schema(value_type = String)]
    pub status: &'static str,
    /// Number of the run, from 1: continuing as new, a restart and a rerun begin another one.
    pub run: u32,
    /// When it was started.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When this run was begun.
    #[schema(format = DateTime)]
    pub run_started_at: String,
    /// While pending: from when a worker may take its next turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub available_at: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub ended_at: Option<String>,
    /// The time that all its runs have together, such as `1h 30m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub execution_timeout: Option<String>,
    /// When it must have ended, whatever the number of runs: fixed at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub deadline_at: Option<String>,
    /// The time that each run has, such as `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub run_timeout: Option<String>,
    /// When this run must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub run_deadline_at: Option<String>,
    /// The time that the workflow's own code has after a failure, as far as is known that there is such code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub on_failure_timeout: Option<String>,
    /// While running: who has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub worker: Option<String>,
    /// While running: when its turn was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub claimed_at: Option<String>,
    /// While running: until when its worker counts as alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub lease_expires_at: Option<String>,
    /// While waiting: since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub waiting_since: Option<String>,
    /// While waiting: when it goes on by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub wakes_at: Option<String>,
    /// What this run has begun that isn't over: only in the description of a single live execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub waits_for: Option<Vec<WaitView>>,
    /// Remote steps and children that were begun and haven't ended.
    pub open_steps: u32,
    /// Events that wait for it.
    pub pending_events: u32,
    /// `true` where somebody asked to cancel it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cancel_requested: Option<bool>,
    /// `true` while what it left open at its end is being ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub closing: Option<bool>,
    /// Why no worker can go on with it: `unknown_workflow`, `panic` and
    /// `foreign_wait` (its code awaits something that isn't durable), with the tries so far; or, until an operator lets it
    /// go on, `unreadable_result` and `drift` (changed code doesn't ask for what is remembered).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub stuck: Option<ErrorView>,
    /// The failure that the workflow's own code is dealing with, before the execution ends with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failing: Option<FailingView>,
    /// Which deadline ended it: `execution` or `run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub timeout_kind: Option<&'static str>,
    /// Why it failed or timed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<ErrorView>,
    /// What the end without a result goes back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cause: Option<CauseView>,
    /// The run's input as it was sent. Lists and operators' calls leave out one that is stored apart, being large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub input: Option<Verbatim>,
    /// Its result; left out like the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub output: Option<Verbatim>,
    /// The execution it is a child of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub parent: Option<ParentView>,
    /// Its labels, an object of strings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub labels: Option<Verbatim>,
    /// Its memo as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub memo: Option<Verbatim>,
    /// What happens next by itself, and when.
    pub next: NextView,
}

/// The execution that started this one as a part of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ParentView {
    /// Its id.
    pub id: String,
    /// Its run: a later one isn't told of the end.
    pub run: u32,
}

impl ExecutionView {
    /// The view of an execution at an instant, with what it waits for where its journal is at hand.
    pub fn of(described: &Described, journal: Option<&[Entry]>, now: Timestamp) -> Self {
        let execution = &described.execution;
        let text = |instant: Option<Timestamp>| instant.map(Timestamp::to_rfc3339);
        let Stand { available_at, waiting_since, wakes_at, closing } = Stand::of(execution);
        let (turn, closed) = (execution.turn(), execution.closed());
        let outcome = closed.map(|closed| &closed.outcome);
        let next = next(execution, now);
        Self {
            id: execution.id.to_string(),
            workflow: execution.workflow.to_string(),
            queue: execution.queue.to_string(),
            status: execution.status().as_str(),
            run: execution.run,
            created_at: execution.created_at.to_rfc3339(),
            run_started_at: execution.run_started_at.to_rfc3339(),
            available_at: text(available_at),
            ended_at: text(closed.map(|closed| closed.ended_at)),
            execution_timeout: execution.timeouts.execution.map(|span| span.to_string()),
            deadline_at: text(execution.deadline_at),
            run_timeout: execution.timeouts.run.map(|span| span.to_string()),
            run_deadline_at: text(execution.run_deadline_at),
            on_failure_timeout: execution.on_failure.map(|span| span.to_string()),
            worker: turn.and_then(|turn| turn.worker.as_ref()).map(ToString::to_string),
            claimed_at: text(turn.map(|turn| turn.claimed_at)),
            lease_expires_at: text(turn.map(|turn| turn.lease_expires_at)),
            waiting_since: text(waiting_since),
            wakes_at: text(wakes_at),
            waits_for: journal.map(|journal| waits::of(execution, journal, now)),
            open_steps: execution.open_steps,
            pending_events: execution.pending_events,
            cancel_requested: execution.cancel_requested.then_some(true),
            closing: closing.then_some(true),
            stuck: execution.stuck.as_ref().map(stuck),
            failing: execution.failing.as_ref().filter(|_| closed.is_none()).map(FailingView::from),
            timeout_kind: outcome.and_then(outcome::timeout_kind),
            error: outcome.and_then(outcome::error),
            cause: outcome.and_then(outcome::cause),
            input: described.input.clone().map(Verbatim),
            output: described.output.clone().map(Verbatim),
            parent: execution
                .parent
                .as_ref()
                .map(|parent| ParentView { id: parent.execution.to_string(), run: parent.run }),
            labels: described.labels.clone().map(Verbatim),
            memo: described.memo.clone().map(Verbatim),
            next: NextView { what: next.what.as_str(), at: text(next.at) },
        }
    }
}

/// What only some states have.
#[derive(Default)]
struct Stand {
    available_at: Option<Timestamp>,
    waiting_since: Option<Timestamp>,
    wakes_at: Option<Timestamp>,
    closing: bool,
}

impl Stand {
    fn of(execution: &Execution) -> Self {
        match &execution.state {
            ExecutionState::Pending(ready) => {
                Self { available_at: Some(ready.available_at), ..Self::default() }
            }
            ExecutionState::Waiting(waiting) => {
                Self { waiting_since: Some(waiting.since), wakes_at: waiting.until, ..Self::default() }
            }
            ExecutionState::Closing(_) => Self { closing: true, ..Self::default() },
            ExecutionState::Running(_) | ExecutionState::Ended(_) => Self::default(),
        }
    }
}

fn stuck(stuck: &Stuck) -> ErrorView {
    match stuck {
        Stuck::UnknownWorkflow { tries } => ErrorView {
            code: "unknown_workflow".to_owned(),
            message: format!("no worker that took it knows its workflow; tried so far: {tries}"),
        },
        Stuck::Unreadable(failure) => ErrorView::from(failure),
        Stuck::Code { failure, tries } => ErrorView {
            code: failure.code.clone(),
            message: format!("{}; tried so far: {tries}", failure.message),
        },
    }
}

#[cfg(test)]
mod tests;
