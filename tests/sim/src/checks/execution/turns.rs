//! What must hold of turns: one holder at a time, only its reports count, and no turn suspends with unseen wakes.

use std::collections::BTreeMap;

use tickover_core::execution::command::{Command, StartTurn, Suspend};
use tickover_core::execution::decision::{Reply, StartTurnReply, SuspendReply};
use tickover_core::execution::due::attempt_timeout_at;
use tickover_core::execution::{ExecutionOutcome, ExecutionState};
use tickover_core::id::LeaseId;

use super::found;
use super::story::{Step, Stories, visible_instant};
use crate::Run;
use crate::history::execution::Ruling;
use crate::trace::clock;
use crate::trace::execution::brief;
use crate::violation::{Invariant, Violation};

pub(super) fn of_step(step: &Step<'_>) -> Vec<Violation> {
    let Some(ruling) = step.ruling else { return vec![] };
    [
        i7_only_the_holders_reports_count(step, ruling),
        i7_no_turn_is_taken_from_a_live_worker(step, ruling),
        i1_a_hint_is_of_the_execution_that_it_was_sent_for(step, ruling),
        wakes_no_turn_suspends_with_unseen_wakes(step, ruling),
        policies_no_turn_of_a_paused_execution_starts(step, ruling),
        policies_a_turn_that_is_to_be_cancelled_waits_only_to_undo(step, ruling),
        policies_what_has_to_be_undone_is_undone(step, ruling),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The lease in a command of a turn's owner.
fn held_with(command: &Command) -> Option<LeaseId> {
    match command {
        Command::Record(record) => Some(record.lease),
        Command::Suspend(suspend) => Some(suspend.lease),
        Command::Close(close) => Some(close.lease),
        Command::Heartbeat { lease, .. } | Command::Release { lease, .. } => Some(*lease),
        Command::Start(_)
        | Command::StartTurn(_)
        | Command::SendEvent(_)
        | Command::ClearEvents { .. }
        | Command::Cancel
        | Command::Terminate
        | Command::Pause
        | Command::Resume
        | Command::Restart(_)
        | Command::RetryStep { .. }
        | Command::Finish(_)
        | Command::Bounce(_)
        | Command::WaitInLine { .. }
        | Command::NoteProgress(_)
        | Command::Unpark
        | Command::Due(_)
        | Command::Timer { .. } => None,
    }
}

fn i7_only_the_holders_reports_count(step: &Step<'_>, ruling: &Ruling) -> Option<Violation> {
    // A refusal may come with a write: an expiry that was noticed.
    let lease = held_with(&ruling.command).filter(|_| ruling.outcome.is_ok())?;
    let holder = step.before?.turn().map(|turn| turn.lease);
    let what = || format!("{lease} wrote, and the holder is {holder:?}");
    (holder != Some(lease)).then(|| found(Invariant::I7, step, what()))
}

fn taken(ruling: &Ruling) -> Option<&StartTurn> {
    match (&ruling.command, &ruling.outcome) {
        (Command::StartTurn(take), Ok(Reply::StartTurn(StartTurnReply::Started))) => Some(take),
        _ => None,
    }
}

fn i7_no_turn_is_taken_from_a_live_worker(step: &Step<'_>, ruling: &Ruling) -> Option<Violation> {
    taken(ruling)?;
    let (now, before) = (ruling.now, step.before?);
    let too_early = match &before.state {
        ExecutionState::Pending(ready) => ready.available_at > now,
        // A worker that lets an attempt's timeout pass counts as lost before its lease ends.
        ExecutionState::Running(turn) => {
            turn.lease_expires_at > now && attempt_timeout_at(before).is_none_or(|at| at > now)
        }
        ExecutionState::Waiting(waiting) => {
            let instants = [waiting.until, waiting.recheck.map(|recheck| recheck.at)];
            let has_come = instants.into_iter().flatten().any(|at| at <= now);
            !(waiting.wake_requested || before.wakes > waiting.seen_wakes || has_come)
        }
        ExecutionState::Closing(_) | ExecutionState::Ended(_) => true,
    };
    too_early.then(|| found(Invariant::I7, step, format!("too early at {}: {}", clock(now), brief(before))))
}

/// An id can be used again. Hints of an earlier execution with this id don't apply to the present one.
fn i1_a_hint_is_of_the_execution_that_it_was_sent_for(step: &Step<'_>, ruling: &Ruling) -> Option<Violation> {
    let other = taken(ruling)?.incarnation?;
    (other != step.after.incarnation)
        .then(|| found(Invariant::I1, step, format!("started by a hint of {other}")))
}

fn suspended(ruling: &Ruling) -> Option<&Suspend> {
    match (&ruling.command, &ruling.outcome) {
        (Command::Suspend(suspend), Ok(Reply::Suspended(SuspendReply::Suspended))) => Some(suspend),
        _ => None,
    }
}

fn wakes_no_turn_suspends_with_unseen_wakes(step: &Step<'_>, ruling: &Ruling) -> Option<Violation> {
    let (suspend, before) = (suspended(ruling)?, step.before?);
    let (seen, is) = ((suspend.seen_version, suspend.seen_wakes), (before.version, before.wakes));
    let what = || format!("it had seen version and wakes {seen:?}, and they were {is:?}");
    (seen != is).then(|| found(Invariant::Wakes, step, what()))
}

fn policies_no_turn_of_a_paused_execution_starts(step: &Step<'_>, ruling: &Ruling) -> Option<Violation> {
    taken(ruling)?;
    let before = step.before.filter(|before| before.needs_operator())?;
    Some(found(Invariant::Policies, step, format!("started while it is paused: {}", brief(before))))
}

fn policies_a_turn_that_is_to_be_cancelled_waits_only_to_undo(
    step: &Step<'_>,
    ruling: &Ruling,
) -> Option<Violation> {
    suspended(ruling)?;
    let waits = step.before?.cancel_requested && !step.after.undoes;
    waits.then(|| found(Invariant::Policies, step, "it suspends although a cancel was requested"))
}

/// What a turn has said it would undo is undone by a turn, unless a deadline or too many lost turns end that.
fn policies_what_has_to_be_undone_is_undone(step: &Step<'_>, ruling: &Ruling) -> Option<Violation> {
    let before = step.before.filter(|before| before.undoes && before.failing.is_none())?;
    let handled = step.after.failing.as_ref().map(|failing| &failing.outcome);
    let outcome = handled.or_else(|| step.after.closed().map(|closed| &closed.outcome))?;
    let is_cancelled =
        before.closed().is_none() && *outcome == ExecutionOutcome::Cancelled { terminated: false };
    let is_overdue = visible_instant(before).is_some_and(|at| at <= ruling.now);
    let is_poisoned = matches!(ruling.command, Command::StartTurn(_)) && before.idle_turns > 1;
    // A turn that is given back may say that there is nothing left to undo.
    let is_by_turn = match &ruling.command {
        Command::Close(_) => true,
        Command::Release { cleanup, .. } => cleanup.is_some_and(|cleanup| !cleanup.undoes),
        _ => false,
    };
    (is_cancelled && !is_overdue && !is_poisoned && !is_by_turn)
        .then(|| found(Invariant::Policies, step, "it is cancelled before its code has undone anything"))
}

pub(super) fn each_lease_is_granted_once(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let mut violations = Vec::new();
    for steps in stories.executions() {
        let mut granted: BTreeMap<LeaseId, u64> = BTreeMap::new();
        for step in steps.iter().filter(|step| !step.is_undecided()) {
            let lease =
                |execution: &tickover_core::execution::Execution| execution.turn().map(|one| one.lease);
            let before = step.before.and_then(lease);
            let Some(lease) = lease(step.after).filter(|lease| before != Some(*lease)) else { continue };
            let Some(call) = step.ruling.map(|ruling| ruling.call) else { continue };
            // In a run with faults, one call may grant a lease twice: its write's answer was lost, and it decided
            // again.
            let is_fair = run.plan.is_fair();
            if granted.insert(lease, call).is_some_and(|other| other != call || is_fair) {
                violations.push(found(Invariant::I7, step, format!("{lease} was granted twice")));
            }
        }
    }
    violations
}
