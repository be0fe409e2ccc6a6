//! What happened to an execution, in time order: made from its record and the journal of its run.

mod steps;

use tickover_core::execution::journal::{Entry, Happened, RESTARTED, RETRIED, RunEnd};
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionState};
use tickover_core::natural;
use tickover_core::payload::Payload;
use tickover_core::time::Timestamp;
use tickover_service::executions::{Described, Run};

use tickover_wire::answer::{TimelineEntryView, WaitKind, WaitView};
use tickover_wire::{Instant, OpenEnum, Verbatim};

use super::{outcome, waits};
use steps::Steps;

fn new(at: Timestamp, kind: impl Into<String>) -> TimelineEntryView {
    TimelineEntryView { at: at.into(), kind: kind.into(), ..TimelineEntryView::default() }
}

fn named(at: Timestamp, kind: impl Into<String>, name: &impl ToString) -> TimelineEntryView {
    TimelineEntryView { name: Some(name.to_string()), ..new(at, kind) }
}

fn name(entry: &TimelineEntryView) -> &str {
    entry.name.as_deref().unwrap_or_default()
}

/// Adds a payload, or its size if it is stored as a blob.
fn with(view: TimelineEntryView, payload: Option<&Payload>) -> TimelineEntryView {
    match payload {
        Some(Payload::Inline(json)) => TimelineEntryView { output: Some(Verbatim(json.clone())), ..view },
        Some(Payload::Blob(blob)) => TimelineEntryView { output_bytes: Some(blob.bytes), ..view },
        None => view,
    }
}

/// The timeline of a run, from the record that its execution has, or had when the run ended: with the start and, if it
/// has ended, the end. Of the runs before it, it shows only what the record has: when the first one started and when
/// the last of them ended.
pub fn timeline(described: &Described, run: &Run, now: Timestamp) -> Vec<TimelineEntryView> {
    let journal = &run.journal;
    let execution = &described.execution;
    let mut all_entries: Vec<(Timestamp, TimelineEntryView)> = start_entries(execution, journal);
    let mut steps = Steps::of(execution, journal);
    for entry in journal {
        all_entries.extend(steps.entries(entry).into_iter().map(|view| (view.at.0, view)));
    }
    all_entries.extend(steps.lost_since());
    let ended_at = execution.closed().map(|closed| closed.ended_at);
    if let Some(ended_at) = ended_at {
        all_entries.extend(steps.ended_with_execution(journal, ended_at));
    }
    all_entries.extend(awaited(execution, journal, now));
    all_entries.extend(end_entries(described, run.end.as_ref()));
    let continued_at = run.end.as_ref().and_then(|end| end.continued_at);
    all_entries.extend(continued_at.map(|at| (at, continued(execution.run, at))));
    // The sort is stable: entries of the same instant keep the order of the journal.
    all_entries.sort_by_key(|(at, _)| *at);
    // Entries of the same instant and kind are sorted by name, numbers as numbers.
    for same in all_entries.chunk_by_mut(|(at, one), (then, other)| at == then && one.kind == other.kind) {
        same.sort_by(|(_, one), (_, other)| natural::compare(name(one), name(other)));
    }
    all_entries.into_iter().map(|(_, view)| view).collect()
}

fn start_entries(execution: &Execution, journal: &[Entry]) -> Vec<(Timestamp, TimelineEntryView)> {
    let at = |instant: Option<Timestamp>| instant.map(Instant);
    let started = TimelineEntryView {
        run: (execution.run > 1).then_some(1),
        execution_timeout: execution.timeouts.execution.map(Into::into),
        deadline_at: at(execution.deadline_at),
        run_timeout: execution.timeouts.run.map(Into::into),
        run_deadline_at: at(execution.run_deadline_at).filter(|_| execution.run == 1),
        ..named(execution.created_at, "started", &execution.workflow)
    };
    let mut entries = vec![(execution.created_at, started)];
    if execution.run > 1 {
        if !follows_an_end(journal) {
            let at = execution.run_started_at;
            entries.push((at, continued(execution.run - 1, at)));
        }
        let run = TimelineEntryView {
            run: Some(execution.run),
            run_timeout: execution.timeouts.run.map(Into::into),
            run_deadline_at: at(execution.run_deadline_at),
            ..new(execution.run_started_at, "run_started")
        };
        entries.push((execution.run_started_at, run));
    }
    entries
}

/// The end of a run whose code went on in the next one.
fn continued(run: u32, at: Timestamp) -> TimelineEntryView {
    TimelineEntryView { run: Some(run), ..new(at, "run_continued") }
}

/// Whether the run before had an outcome, because it failed and is retried, or because an operator started another one
/// after it. The journal has an entry for that.
fn follows_an_end(journal: &[Entry]) -> bool {
    let is_said = |kind: &str| kind == RESTARTED || kind == RETRIED;
    journal.iter().any(|entry| matches!(&entry.what, Happened::Note { kind, .. } if is_said(kind)))
}

/// Waits for events without a timeout have no journal entry before they end.
fn awaited(execution: &Execution, journal: &[Entry], now: Timestamp) -> Vec<(Timestamp, TimelineEntryView)> {
    let ExecutionState::Waiting(waiting) = &execution.state else { return vec![] };
    let since = waiting.since;
    let entry = |wait: WaitView| TimelineEntryView { event: wait.event, ..new(since, "event_awaited") };
    let waits = waits::of(execution, journal, now).into_iter();
    waits
        .filter(|wait| wait.kind == OpenEnum::Known(WaitKind::Event))
        .map(|wait| (since, entry(wait)))
        .collect()
}

/// The current turn, the handling of a failure, and the outcome.
fn end_entries(described: &Described, end: Option<&RunEnd>) -> Vec<(Timestamp, TimelineEntryView)> {
    let execution = &described.execution;
    let mut entries = Vec::new();
    if let Some(turn) = execution.turn() {
        let worker = turn.worker.clone();
        let view = TimelineEntryView { worker, ..new(turn.claimed_at, "turn_started") };
        entries.push((turn.claimed_at, view));
    }
    let handler = execution.failing.as_ref().and_then(|failing| {
        if failing.outcome.is_failure() {
            Some((failing, execution.on_failure?, "on_failure_started"))
        } else {
            Some((failing, execution.on_cancel?, "on_cancel_started"))
        }
    });
    if let Some((failing, length, kind)) = handler {
        let at = failing.deadline_at.minus(length);
        let view = TimelineEntryView {
            error: outcome::error(&failing.outcome),
            cause: outcome::cause(&failing.outcome),
            deadline_at: Some(failing.deadline_at.into()),
            ..new(at, kind)
        };
        entries.push((at, view));
    }
    if let Some(closed) = execution.closed() {
        let retried_at = end.and_then(|end| end.retried_at);
        let kind = if retried_at.is_some() { "run_failed" } else { ending(&closed.outcome) };
        let view = TimelineEntryView {
            until: retried_at.map(Into::into),
            error: outcome::error(&closed.outcome),
            cause: outcome::cause(&closed.outcome),
            timeout_kind: execution.expired().map(|expired| OpenEnum::Known(expired.kind)),
            deadline_at: execution.expired().map(|expired| expired.deadline_at.into()),
            output: described.output.clone().map(Verbatim),
            ..new(closed.ended_at, kind)
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
