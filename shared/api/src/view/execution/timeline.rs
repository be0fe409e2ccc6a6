//! What happened to an execution, in the order of time: made from its record and its run's journal.

mod steps;

use std::borrow::Cow;

use serde::Serialize;
use tickover_core::execution::journal::{Entry, Happened, RESTARTED};
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionState};
use tickover_core::natural;
use tickover_core::payload::Payload;
use tickover_core::time::Timestamp;
use tickover_service::executions::Described;
use utoipa::ToSchema;

use crate::view::attempt::ErrorView;
use crate::view::verbatim::Verbatim;

use super::outcome::{self, CauseView};
use super::waits;
use steps::Steps;

/// Something that happened. What doesn't apply to its kind is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct TimelineEntryView {
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// What: `started`, `run_continued` (an earlier run made way for the next), `run_started`, `turn_started`,
    /// `turn_lost` (its worker was lost, or let the time of an attempt pass; told as far as the record has room for
    /// it), `patched`, `step_attempt_started`, `step_attempt_failed`, `step_attempt_lost` (with its worker, or cut off
    /// with its invocation; told when that is found), `step_started`, `step_completed`, `step_failed`,
    /// `step_exhausted`, `step_timed_out`, `step_deadline_exceeded`, `step_cancelled`, `step_result_expired` (its
    /// result was deleted before anybody looked), `step_reopened`, the same with `child_` for `step_`,
    /// `child_abandoned`, `child_cancel_requested`, `child_terminated`, `fan_out_started`, `captured`,
    /// `timer_started`, `timer_fired`, `timer_cancelled`, `event_offered`, `events_drained`, `event_awaited` (it waits
    /// for an event without a time limit), `wait_ended`, `wait_timed_out`, `on_failure_started`,
    /// `execution_completed`, `execution_failed`, `execution_timed_out`, `execution_cancelled`, `drift` (the code doesn't
    /// ask for what is remembered of this name), or an operator's word such as `paused`.
    #[schema(value_type = String)]
    pub kind: Cow<'static, str>,
    /// The name of the step, child, sleep, wait, captured value or fan-out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// The run, where one begins or is continued by the next; not in an execution's only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub run: Option<u32>,
    /// Number of the attempt. Attempts that were lost count, where the journal knows of them: those of steps in place
    /// that were written down before they began (`at_most_once`, `durable_timeout`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub attempt: Option<u32>,
    /// Attempts that a step took, counted likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub attempts: Option<u32>,
    /// How many of them were lost, if any: for its policy they don't count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lost: Option<u32>,
    /// How far an attempt that failed said it had come, or one before it, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub progress: Option<f64>,
    /// Milliseconds from the beginning to this end, where the journal knows the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub duration_ms: Option<u64>,
    /// When a timer fires, the time of an attempt is over, or the next attempt may begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub until: Option<String>,
    /// `started`: the time that all runs have together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub execution_timeout: Option<String>,
    /// `started`: when it must have ended. `on_failure_started`: when that must be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub deadline_at: Option<String>,
    /// Where a run begins: the time it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub run_timeout: Option<String>,
    /// Where a run begins: when it must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub run_deadline_at: Option<String>,
    /// `turn_started`: who has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub worker: Option<String>,
    /// A remote step's task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub task: Option<String>,
    /// A child's execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub execution: Option<String>,
    /// What becomes of a child when this execution closes: `abandon`, `request_cancel` or `terminate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub parent_close: Option<&'static str>,
    /// The event's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub event: Option<String>,
    /// The event's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub event_id: Option<String>,
    /// Steps of a fan-out, or events thrown away.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub count: Option<u32>,
    /// The names of the patches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub patches: Option<Vec<String>>,
    /// A result, a captured value or an event's payload, if it is small enough to lie in the journal itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub output: Option<Verbatim>,
    /// How large it is, if it isn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub output_bytes: Option<u32>,
    /// What went wrong, as the execution has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<ErrorView>,
    /// What went wrong, as the step's own type has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub step_error: Option<Verbatim>,
    /// What an end without a result goes back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cause: Option<CauseView>,
}

impl TimelineEntryView {
    fn new(at: Timestamp, kind: impl Into<Cow<'static, str>>) -> Self {
        Self { at: at.to_rfc3339(), kind: kind.into(), ..Self::default() }
    }

    fn named(at: Timestamp, kind: impl Into<Cow<'static, str>>, name: &impl ToString) -> Self {
        Self { name: Some(name.to_string()), ..Self::new(at, kind) }
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// With a payload, or its size where it lies elsewhere.
    fn with(self, payload: Option<&Payload>) -> Self {
        match payload {
            Some(Payload::Inline(json)) => Self { output: Some(Verbatim(json.clone())), ..self },
            Some(Payload::Blob(blob)) => Self { output_bytes: Some(blob.bytes), ..self },
            None => self,
        }
    }
}

/// The timeline of an execution's last run, with its beginning and, where it has one, its end. Of earlier runs only
/// what the record still knows: when the first began, and when the last of them made way.
pub fn timeline(described: &Described, journal: &[Entry], now: Timestamp) -> Vec<TimelineEntryView> {
    let execution = &described.execution;
    let mut made: Vec<(Timestamp, TimelineEntryView)> = beginning(execution, journal);
    let mut steps = Steps::of(execution, journal);
    for entry in journal {
        made.extend(steps.entries(entry).into_iter().map(|view| (entry.at, view)));
    }
    made.extend(steps.lost_since());
    let ended_at = execution.closed().map(|closed| closed.ended_at);
    if let Some(ended_at) = ended_at {
        made.extend(steps.left_open(journal, ended_at));
    }
    made.extend(awaited(execution, journal, now));
    made.extend(end(described));
    // What is of one instant stays in the order of the journal.
    made.sort_by_key(|(at, _)| *at);
    // But of the same sort, people look for the second after the first.
    for same in made.chunk_by_mut(|(at, one), (then, other)| at == then && one.kind == other.kind) {
        same.sort_by(|(_, one), (_, other)| natural::compare(one.name(), other.name()));
    }
    made.into_iter().map(|(_, view)| view).collect()
}

fn beginning(execution: &Execution, journal: &[Entry]) -> Vec<(Timestamp, TimelineEntryView)> {
    let text = |instant: Option<Timestamp>| instant.map(Timestamp::to_rfc3339);
    let started = TimelineEntryView {
        run: (execution.run > 1).then_some(1),
        execution_timeout: execution.timeouts.execution.map(|span| span.to_string()),
        deadline_at: text(execution.deadline_at),
        run_timeout: execution.timeouts.run.map(|span| span.to_string()),
        run_deadline_at: text(execution.run_deadline_at).filter(|_| execution.run == 1),
        ..TimelineEntryView::named(execution.created_at, "started", &execution.workflow)
    };
    let mut entries = vec![(execution.created_at, started)];
    if execution.run > 1 {
        if !was_restarted(journal) {
            let view = TimelineEntryView::new(execution.run_started_at, "run_continued");
            entries
                .push((execution.run_started_at, TimelineEntryView { run: Some(execution.run - 1), ..view }));
        }
        let run = TimelineEntryView {
            run: Some(execution.run),
            run_timeout: execution.timeouts.run.map(|span| span.to_string()),
            run_deadline_at: text(execution.run_deadline_at),
            ..TimelineEntryView::new(execution.run_started_at, "run_started")
        };
        entries.push((execution.run_started_at, run));
    }
    entries
}

/// Whether an operator began the last run, after the one before had ended: that is an entry of its own.
fn was_restarted(journal: &[Entry]) -> bool {
    journal.iter().any(|entry| matches!(&entry.what, Happened::Note { kind, .. } if kind == RESTARTED))
}

/// A wait without a time limit leaves no entry before it is over.
fn awaited(
    execution: &Execution,
    journal: &[Entry],
    now: Timestamp,
) -> Option<(Timestamp, TimelineEntryView)> {
    let ExecutionState::Waiting(waiting) = &execution.state else { return None };
    let is_awaited = waits::of(execution, journal, now).iter().any(|wait| wait.kind == waits::EVENT);
    is_awaited.then(|| (waiting.since, TimelineEntryView::new(waiting.since, "event_awaited")))
}

/// The turn under way, the dealing with a failure, and the outcome.
fn end(described: &Described) -> Vec<(Timestamp, TimelineEntryView)> {
    let execution = &described.execution;
    let mut entries = Vec::new();
    if let Some(turn) = execution.turn() {
        let worker = turn.worker.as_ref().map(ToString::to_string);
        let view = TimelineEntryView { worker, ..TimelineEntryView::new(turn.claimed_at, "turn_started") };
        entries.push((turn.claimed_at, view));
    }
    if let (Some(failing), Some(length)) = (&execution.failing, execution.on_failure) {
        let at = failing.deadline_at.minus(length);
        let view = TimelineEntryView {
            error: outcome::error(&failing.outcome),
            cause: outcome::cause(&failing.outcome),
            deadline_at: Some(failing.deadline_at.to_rfc3339()),
            ..TimelineEntryView::new(at, "on_failure_started")
        };
        entries.push((at, view));
    }
    if let Some(closed) = execution.closed() {
        let view = TimelineEntryView {
            error: outcome::error(&closed.outcome),
            cause: outcome::cause(&closed.outcome),
            output: described.output.clone().map(Verbatim),
            ..TimelineEntryView::new(closed.ended_at, ending(&closed.outcome))
        };
        entries.push((closed.ended_at, view));
    }
    entries
}

const fn ending(outcome: &ExecutionOutcome) -> &'static str {
    match outcome {
        ExecutionOutcome::Completed { .. } => "execution_completed",
        ExecutionOutcome::Failed { .. } => "execution_failed",
        ExecutionOutcome::TimedOut { .. } => "execution_timed_out",
        ExecutionOutcome::Cancelled { .. } => "execution_cancelled",
    }
}
