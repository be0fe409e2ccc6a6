//! A task's view for callers.

use tickover_core::flow::Priority;
use tickover_core::task::next::{NextStep, next, rate_waited_for};
use tickover_core::task::{Outcome, Pending, Running, State, Task};
use tickover_core::time::Timestamp;
use tickover_core::timeout::TimeoutKind;
use tickover_service::claim::ClaimedTask;
use tickover_service::executions::idempotency_key;
use tickover_service::tasks::describe::Described;

use tickover_wire::answer::{ClaimedView, ErrorView, NextView, TaskView};
use tickover_wire::{Attempts, Instant, LeaseToken, Verbatim};

use super::attempt::{self, attempts};
use super::{QUEUE_PAUSED, policy};

/// The view of a task. Only `next` depends on `now`.
pub fn task(described: &Described, now: Timestamp) -> TaskView {
    let task = &described.task;
    let at = |instant: Option<Timestamp>| instant.map(Instant);
    let (pending, running) = (pending(task), task.running());
    let next = next(task, now);
    let paused = described.in_paused_queue;
    let what = match next.what {
        NextStep::Claim | NextStep::Available | NextStep::Rate if paused => QUEUE_PAUSED,
        // A worker that asks doesn't get it. Lists read no keys, but a record knows that it is in a line.
        NextStep::Claim if described.waits_at.is_some() || task.parked.in_line().is_some() => {
            "waits_for_place"
        }
        what => what.as_str(),
    };
    let key = rate_waited_for(task, now).map(|paced| paced.text.clone());
    TaskView {
        id: task.id.clone(),
        queue: task.queue.clone(),
        kind: task.kind.clone(),
        status: task.status().into(),
        execution_id: task.execution_id().cloned(),
        step: task.step().cloned(),
        attempt: task.attempt,
        max_attempts: Attempts(task.retry.max_attempts),
        retry: policy::retry(&task.retry),
        timeouts: policy::timeouts(&task.timeouts),
        created_at: task.created_at.into(),
        available_at: at(pending.map(|pending| pending.available_at)),
        ended_at: at(task.ended().map(|ended| ended.ended_at)),
        deadline_at: at(task.deadline_at),
        schedule_to_start_at: at(pending.and_then(|pending| pending.schedule_to_start_at)),
        start_to_close_at: at(running.and_then(|running| running.start_to_close_at)),
        heartbeat_at: at(running.and_then(|running| running.heartbeat_at)),
        lease_expires_at: at(running.map(|running: &Running| running.lease_expires_at)),
        timeout_kind: timeout_kind(task).map(Into::into),
        input: described.input.clone().map(Verbatim),
        output: described.output.clone().map(Verbatim),
        error: error(described),
        attempts: attempts(task),
        progress: task.progress,
        details: described.details.clone().map(Verbatim),
        labels: described.labels.clone().map(Verbatim),
        traceparent: task.trace.map(|trace| trace.traceparent()),
        priority: Some(task.priority()).filter(|priority| *priority != Priority::Normal).map(Into::into),
        fairness_key: task.flow.as_ref().map(|flow| flow.fairness_text.clone()).filter(|key| !key.is_empty()),
        by: task.by.as_deref().map(super::by),
        waits_at: described.waits_at.clone().map(super::limit::waits_at),
        next: NextView { what: what.to_owned(), at: at(next.at), key, unprovided: vec![], paused },
    }
}

fn pending(task: &Task) -> Option<&Pending> {
    match &task.state {
        State::Pending(pending) => Some(pending),
        State::Running(_) | State::Ended(_) => None,
    }
}

fn timeout_kind(task: &Task) -> Option<TimeoutKind> {
    match &task.ended()?.outcome {
        Outcome::TimedOut { kind, .. } => Some(*kind),
        Outcome::Cancelled { timeout } => *timeout,
        Outcome::Completed { .. } | Outcome::Failed { .. } | Outcome::Skipped => None,
    }
}

fn error(described: &Described) -> Option<ErrorView> {
    let task = &described.task;
    match &task.state {
        State::Pending(_) => task.history.last()?.error.as_ref().map(attempt::error),
        State::Running(_) => None,
        State::Ended(ended) => match &ended.outcome {
            Outcome::Failed { error, .. } => {
                let whole = described.error_message.as_ref();
                let message = whole.and_then(|json| serde_json::from_str(json.as_str()).ok());
                Some(ErrorView {
                    code: error.code.clone(),
                    message: message.unwrap_or_else(|| error.message.clone()),
                })
            }
            Outcome::TimedOut { error, .. } => Some(attempt::error(error)),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } | Outcome::Skipped => None,
        },
    }
}

/// The view of a claimed task. `now` gives the time that is left.
pub fn claimed(claimed: ClaimedTask, now: Timestamp) -> ClaimedView {
    ClaimedView {
        idempotency_key: Some(idempotency_key(&claimed.task)),
        id: claimed.task.id,
        kind: claimed.task.kind,
        input: claimed.input.map(Verbatim),
        attempt: claimed.task.attempt,
        progress: claimed.task.progress,
        details: claimed.details.map(Verbatim),
        traceparent: claimed.task.trace.map(|trace| trace.traceparent()),
        lease: LeaseToken(claimed.token),
        lease_expires_at: claimed.lease_expires_at.into(),
        heartbeat_timeout_ms: claimed.task.timeouts.heartbeat.map(|timeout| timeout.after.as_u64()),
        deadline_at: claimed.deadline_at.map(Instant),
        remaining_ms: claimed.deadline_at.map(|deadline| deadline.since(now).as_u64()),
    }
}
