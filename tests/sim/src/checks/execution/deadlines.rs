//! What must hold of an execution's deadlines: they are fixed, and exactly one of expiry and the turn's report wins.

use tickover_core::execution::command::Command;
use tickover_core::execution::decision::{Reply, StartTurnReply};
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{DeadlineKind, Execution, ExecutionOutcome};
use tickover_core::time::Timestamp;

use super::found;
use super::journals::rerun_of;
use super::story::{Step, visible_instant};
use crate::history::execution::Ruling;
use crate::trace::clock;
use crate::violation::{Invariant, Violation};

pub(super) fn of_step(step: &Step<'_>) -> Vec<Violation> {
    let Some(ruling) = step.ruling else { return vec![] };
    [
        i5_the_deadline_is_fixed_at_the_start(step, ruling),
        i5_a_runs_deadline_is_fixed_when_it_begins(step, ruling),
        i5_a_failures_deadline_is_fixed_when_it_failed(step, ruling),
        i5_late_commands_are_refused(step, ruling),
        i5_nothing_times_out_early(step, ruling),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn is_restart(ruling: &Ruling) -> bool {
    rerun_of(&ruling.command).is_some()
}

/// The deadlines from the code's settings, which come with the start of a turn if the execution's start had none: over
/// all runs, and the run's.
fn told(before: &Execution, ruling: &Ruling) -> [Option<Timestamp>; 2] {
    let Command::StartTurn(take) = &ruling.command else { return [None; 2] };
    let from_outside = |entry: &Entry| matches!(entry.what, Happened::Event { .. } | Happened::Note { .. });
    let has_begun = before.sealed.is_some() || !before.journal.iter().all(from_outside);
    if before.run != before.first_run.unwrap_or(1) || has_begun || before.failing.is_some() {
        return [None; 2];
    }
    let timeouts = take.terms.timeouts;
    let whole = timeouts.execution.filter(|_| before.deadline_at.is_none());
    let run = timeouts.run.filter(|_| before.run_deadline_at.is_none());
    let started_at = if before.run == 1 { before.created_at } else { before.run_started_at };
    [whole.map(|timeout| started_at.plus(timeout)), run.map(|timeout| before.run_started_at.plus(timeout))]
}

/// A record that is too large leaves out deadlines that don't count any more.
const fn is_left_out(execution: &Execution, deadline: Option<Timestamp>) -> bool {
    deadline.is_none() && execution.failing.is_some()
}

fn i5_the_deadline_is_fixed_at_the_start(step: &Step<'_>, ruling: &Ruling) -> Option<Violation> {
    let after = step.after;
    let expected = match step.before {
        Some(before) if !is_restart(ruling) => before.deadline_at,
        Some(_) | None => after.timeouts.execution.map(|timeout| ruling.now.plus(timeout)),
    };
    let came = step.before.and_then(|before| told(before, ruling)[0]);
    let moved = after.deadline_at != expected && (came.is_none() || after.deadline_at != came);
    let moved = moved && !is_left_out(after, after.deadline_at);
    moved.then(|| found(Invariant::I5, step, format!("its deadline should be {}", name(expected))))
}

fn i5_a_runs_deadline_is_fixed_when_it_begins(step: &Step<'_>, ruling: &Ruling) -> Option<Violation> {
    let after = step.after;
    let expected = match step.before {
        None => after.timeouts.run.map(|timeout| after.run_started_at.plus(timeout)),
        Some(before) if before.run != after.run => {
            // The retry of a run that failed starts later.
            let starts_at = after.retry_starts_at().unwrap_or(ruling.now);
            after.timeouts.run.map(|timeout| starts_at.plus(timeout))
        }
        Some(before) => before.run_deadline_at,
    };
    let came = step.before.and_then(|before| told(before, ruling)[1]);
    let moved = after.run_deadline_at != expected && (came.is_none() || after.run_deadline_at != came);
    let moved = moved && !is_left_out(after, after.run_deadline_at);
    moved.then(|| found(Invariant::I5, step, format!("its run's deadline should be {}", name(expected))))
}

fn i5_a_failures_deadline_is_fixed_when_it_failed(step: &Step<'_>, ruling: &Ruling) -> Option<Violation> {
    let failing = step.after.failing.as_ref()?;
    let expected = match step.before.and_then(|before| before.failing.as_ref()) {
        Some(before) => before.deadline_at,
        None if failing.outcome.is_failure() => ruling.now.plus(step.after.on_failure?),
        None => ruling.now.plus(step.after.on_cancel?),
    };
    let moved = failing.deadline_at != expected;
    moved.then(|| found(Invariant::I5, step, format!("its timeout should be at {}", clock(expected))))
}

/// Turns, their reports and events must come before the deadline.
fn i5_late_commands_are_refused(step: &Step<'_>, ruling: &Ruling) -> Option<Violation> {
    let before = step.before?;
    let limit = visible_instant(before)?;
    if before.failing.is_none() && step.after.failing.is_some() {
        // The expiry is recorded in the same write: an event may wait for the code that handles the failure.
        return None;
    }
    let accepted = match &ruling.outcome {
        Ok(
            Reply::StartTurn(StartTurnReply::Started)
            | Reply::Recorded
            | Reply::Suspended(_)
            | Reply::Closed { .. }
            | Reply::Renewed
            | Reply::Released
            | Reply::EventSent { duplicate: false },
        ) => true,
        Ok(_) | Err(_) => false,
    };
    (accepted && ruling.now >= limit).then(|| {
        found(Invariant::I5, step, format!("accepted at {}, limit {}", clock(ruling.now), clock(limit)))
    })
}

fn i5_nothing_times_out_early(step: &Step<'_>, ruling: &Ruling) -> Option<Violation> {
    let before = step.before.filter(|before| before.closed().is_none() && before.failing.is_none())?;
    let failing = step.after.failing.as_ref().map(|failing| &failing.outcome);
    let outcome = failing.or(step.after.closed().map(|closed| &closed.outcome))?;
    let kind = match outcome {
        ExecutionOutcome::TimedOut { kind } => *kind,
        ExecutionOutcome::Completed { .. }
        | ExecutionOutcome::Failed { .. }
        | ExecutionOutcome::Cancelled { .. } => return None,
    };
    let instant = match kind {
        DeadlineKind::Execution => before.deadline_at.or(told(before, ruling)[0]),
        DeadlineKind::Run => before.run_deadline_at.or(told(before, ruling)[1]),
    };
    let early = instant.is_none_or(|instant| ruling.now < instant);
    early.then(|| {
        let (now, instant) = (clock(ruling.now), name(instant));
        found(Invariant::I5, step, format!("timed out at {now}, {} is {instant}", kind.as_str()))
    })
}

fn name(instant: Option<Timestamp>) -> String {
    instant.map_or_else(|| "none".to_owned(), clock)
}
