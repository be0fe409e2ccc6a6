//! An execution's view for callers.

mod attempts;
mod events;
mod outcome;
mod timeline;
mod waits;

use tickover_core::execution::journal::{Entry, RunEnd};
use tickover_core::execution::next::{NextStep, next, rate_waited_for};
use tickover_core::execution::values::{Value, Values};
use tickover_core::execution::{Execution, ExecutionState, Stuck};
use tickover_core::flow::Priority;
use tickover_core::id::StepName;
use tickover_core::time::Timestamp;
use tickover_service::executions::Described;

use tickover_wire::answer::{EarlierRunView, ErrorView, ExecutionView, NextView, ParentView, ValueView};
use tickover_wire::{Attempts, Instant, OpenEnum, Verbatim};

use super::{QUEUE_PAUSED, attempt};

pub use events::{event, events};
pub use timeline::timeline;

/// The view of an execution at an instant. What it waits for is in it only if its journal is given.
pub fn execution(described: &Described, journal: Option<&[Entry]>, now: Timestamp) -> ExecutionView {
    let execution = &described.execution;
    let at = |instant: Option<Timestamp>| instant.map(Instant);
    let StateFields { available_at, waiting_since, wakes_at, closing } = StateFields::of(execution);
    let (turn, closed) = (execution.turn(), execution.closed());
    let outcome = closed.map(|closed| &closed.outcome);
    let next = next(execution, now);
    let key = rate_waited_for(execution, now).map(|paced| paced.text.clone());
    let paused = described.in_paused_queue;
    let what = match next.what {
        NextStep::Turn | NextStep::Available | NextStep::Retry | NextStep::Rate if paused => QUEUE_PAUSED,
        // A worker that asks doesn't get it. Lists read no keys, but a record knows that it is in a line.
        NextStep::Turn if described.waits_at.is_some() || execution.parked.in_line().is_some() => {
            "waits_for_place"
        }
        what => what.as_str(),
    };
    ExecutionView {
        id: execution.id.clone(),
        workflow: execution.workflow.clone(),
        queue: execution.queue.clone(),
        status: execution.status().into(),
        run: execution.run,
        attempt: execution.attempt.map(|attempt| attempt.number),
        max_attempts: execution.attempt.map(|attempt| Attempts(attempt.of)),
        created_at: execution.created_at.into(),
        run_started_at: execution.run_started_at.into(),
        available_at: at(available_at),
        ended_at: at(closed.map(|closed| closed.ended_at)),
        execution_timeout: execution.timeouts.execution.map(Into::into),
        deadline_at: at(execution.deadline_at),
        run_timeout: execution.timeouts.run.map(Into::into),
        run_deadline_at: at(execution.run_deadline_at),
        on_failure_timeout: execution.on_failure.map(Into::into),
        worker: turn.and_then(|turn| turn.worker.clone()),
        claimed_at: at(turn.map(|turn| turn.claimed_at)),
        lease_expires_at: at(turn.map(|turn| turn.lease_expires_at)),
        waiting_since: at(waiting_since),
        wakes_at: at(wakes_at),
        waits_for: journal.map(|journal| waits::of(execution, journal, now)),
        open_steps: execution.open_steps,
        completed_steps: execution.completed_steps(),
        pending_events: execution.pending_events,
        values: values(&described.values),
        cancel_requested: execution.cancel_requested.then_some(true),
        closing: closing.then_some(true),
        stuck: execution.stuck.as_ref().map(stuck),
        failing: execution.failing.as_ref().filter(|_| closed.is_none()).map(outcome::failing),
        timeout_kind: outcome.and_then(outcome::timeout_kind).map(Into::into),
        error: outcome.and_then(outcome::error),
        cause: outcome.and_then(outcome::cause),
        input: described.input.clone().map(Verbatim),
        output: described.output.clone().map(Verbatim),
        priority: Some(execution.lane.priority)
            .filter(|priority| *priority != Priority::default())
            .map(Into::into),
        waits_at: described.waits_at.as_deref().cloned().map(super::limit::waits_at),
        parent: execution
            .parent
            .as_ref()
            .map(|parent| ParentView { id: parent.execution.clone(), run: parent.run }),
        labels: described.labels.clone().map(Verbatim),
        memo: described.memo.clone().map(Verbatim),
        traceparent: execution.trace.map(|trace| trace.traceparent()),
        next: NextView { what: what.to_owned(), at: at(next.at), key, unprovided: vec![], paused },
    }
}

/// The values that an execution has published.
pub fn values(values: &Values) -> Vec<ValueView> {
    values.iter().map(|(name, published)| value(name, published)).collect()
}

/// One of them.
pub fn value(name: &StepName, published: &Value) -> ValueView {
    ValueView {
        name: name.clone(),
        version: published.version,
        published_at: published.at.into(),
        value: Verbatim(published.value.clone()),
    }
}

/// The view of an execution as it was at the end of an earlier run.
pub fn execution_of_run(described: &Described, end: &RunEnd) -> ExecutionView {
    let view = execution(described, None, end.record.run_started_at);
    ExecutionView {
        status: end.continued_at.map_or(view.status, |_| OpenEnum::Other(CONTINUED.to_owned())),
        ended_at: end.continued_at.map(Instant).or(view.ended_at),
        // What the record says of the turn that ended the run, and of what was to follow.
        worker: None,
        claimed_at: None,
        lease_expires_at: None,
        closing: None,
        next: NextView {
            what: "next_run".to_owned(),
            at: None,
            key: None,
            unprovided: vec![],
            paused: false,
        },
        ..view
    }
}

/// The status of a run whose code went on in the next one.
const CONTINUED: &str = "continued";

/// The view of an earlier run.
pub fn run(end: &RunEnd) -> EarlierRunView {
    let RunEnd { record, continued_at, retried_at } = end;
    let closed = record.closed();
    EarlierRunView {
        run: record.run,
        status: continued_at.map_or_else(|| record.status().as_str(), |_| CONTINUED).to_owned(),
        started_at: record.run_started_at.into(),
        ended_at: continued_at
            .or_else(|| closed.map(|closed| closed.ended_at))
            .unwrap_or(record.run_started_at)
            .into(),
        error: closed.and_then(|closed| outcome::error(&closed.outcome)),
        retried_at: retried_at.map(Into::into),
        journal_entries: record.sealed.map_or(0, |sealed| sealed.entries),
    }
}

/// The fields that only some states have.
#[derive(Default)]
struct StateFields {
    available_at: Option<Timestamp>,
    waiting_since: Option<Timestamp>,
    wakes_at: Option<Timestamp>,
    closing: bool,
}

impl StateFields {
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
            message: format!("no worker that claimed it knows its workflow; tried so far: {tries}"),
        },
        Stuck::Unreadable(failure) => attempt::error(failure),
        Stuck::Code { failure, tries } => ErrorView {
            code: failure.code.clone(),
            message: format!("{}; tried so far: {tries}", failure.message),
        },
    }
}

#[cfg(test)]
mod tests;
