//! What must hold of deadlines and timeouts: they are fixed, exactly one of expiry and report wins, and each instant
//! that passes is noticed.

use tickover_core::task::command::{Command, SignOfLife};
use tickover_core::task::decision::{ClaimReply, Reply};
use tickover_core::task::{Ending, Outcome, State, Task};
use tickover_core::time::Timestamp;
use tickover_core::timeout::TimeoutKind;

use super::story::{Step, visible_instant};
use crate::history::Decided;
use crate::trace::{brief, clock};
use crate::violation::{Invariant, Violation};

pub(super) fn of_step(step: &Step<'_>) -> Vec<Violation> {
    let Some(decided) = step.decided else { return vec![] };
    [
        i5_the_deadline_is_fixed_at_scheduling(step, decided),
        i5_late_commands_are_refused(step, decided),
        i5_nothing_expires_early(step, decided),
        i5_nothing_times_out_early(step, decided),
        i5_each_attempt_has_its_full_time(step, decided),
        i5_a_heartbeat_moves_nothing_else(step, decided),
        i5_a_heartbeat_renews_only_what_is_alive(step, decided),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn found(step: &Step<'_>, what: impl Into<String>) -> Violation {
    Violation::new(Invariant::I5, step.at, format!("{}: {}", brief(step.after), what.into()))
}

fn i5_the_deadline_is_fixed_at_scheduling(step: &Step<'_>, decided: &Decided) -> Option<Violation> {
    let after = step.after;
    let expected = match step.before {
        None => after.timeouts.schedule_to_close.map(|timeout| decided.now.plus(timeout.after)),
        Some(before) if before.revived_at != after.revived_at => None,
        // While its execution is paused, a step that waits has none, and then its time starts afresh.
        Some(_) if after.is_held() && after.parent.is_some() => None,
        Some(before) if before.is_held() && after.ended().is_none() => {
            after.timeouts.schedule_to_close.map(|timeout| decided.now.plus(timeout.after))
        }
        Some(before) => before.deadline_at,
    };
    let moved = after.deadline_at != expected;
    moved.then(|| found(step, format!("its deadline should be {}", name(expected))))
}

/// Claims, heartbeats and reports must come before the deadline. For an attempt's reports, the attempt's own timeout
/// counts as well.
fn i5_late_commands_are_refused(step: &Step<'_>, decided: &Decided) -> Option<Violation> {
    let before = step.before?;
    let limit = match &decided.outcome {
        // A claim may record an attempt's timeout and start the next attempt in one write.
        Ok(Reply::Claim(ClaimReply::Claimed)) if times_out(step) => before.deadline_at?,
        Ok(Reply::Claim(ClaimReply::Claimed) | Reply::Extended | Reply::Closed { duplicate: false }) => {
            visible_instant(before)?
        }
        Ok(_) | Err(_) => return None,
    };
    let late = decided.now >= limit;
    late.then(|| found(step, format!("accepted at {}, limit {}", clock(decided.now), clock(limit))))
}

fn i5_nothing_expires_early(step: &Step<'_>, decided: &Decided) -> Option<Violation> {
    let before = step.before?;
    let Ending::TimedOut(kind) = step.ended_attempt()?.ending else { return None };
    let instant = instant(before, kind);
    let early = instant.is_none_or(|instant| decided.now < instant);
    early.then(|| {
        found(step, format!("timed out at {}, {} is {}", clock(decided.now), kind.as_str(), name(instant)))
    })
}

/// A task may time out before its deadline only if its next attempt couldn't start before it.
fn i5_nothing_times_out_early(step: &Step<'_>, decided: &Decided) -> Option<Violation> {
    let (before, ended) = (step.before?, step.after.ended()?);
    let kind = match &ended.outcome {
        Outcome::TimedOut { kind, .. } | Outcome::Cancelled { timeout: Some(kind) } => *kind,
        Outcome::Completed { .. }
        | Outcome::Failed { .. }
        | Outcome::Cancelled { timeout: None }
        | Outcome::Skipped => return None,
    };
    let passed = instant(before, kind).is_some_and(|instant| instant <= decided.now);
    let doomed = || {
        let delay = before.retry.delay_before_next(step.after.attempt, before.seed());
        kind == TimeoutKind::ScheduleToClose
            && step.ended_attempt().is_some()
            && before.deadline_at.is_some_and(|deadline| decided.now.plus(delay) >= deadline)
    };
    (!passed && !doomed()).then(|| found(step, format!("{} hadn't passed", kind.as_str())))
}

fn i5_each_attempt_has_its_full_time(step: &Step<'_>, decided: &Decided) -> Option<Violation> {
    let running = step.after.running()?;
    if decided.outcome != Ok(Reply::Claim(ClaimReply::Claimed)) {
        return None;
    }
    let timeouts = step.after.timeouts;
    let expected = (
        timeouts.start_to_close.map(|timeout| decided.now.plus(timeout.after)),
        timeouts.heartbeat.map(|timeout| decided.now.plus(timeout.after)),
    );
    let wrong = (running.start_to_close_at, running.heartbeat_at) != expected;
    wrong.then(|| found(step, format!("timeouts expected: {}, {}", name(expected.0), name(expected.1))))
}

fn i5_a_heartbeat_moves_nothing_else(step: &Step<'_>, decided: &Decided) -> Option<Violation> {
    let before = step.before?.running()?;
    if decided.outcome != Ok(Reply::Extended) {
        return None;
    }
    let kept = step.after.running().is_some_and(|after| {
        (after.lease, after.claimed_at, after.start_to_close_at)
            == (before.lease, before.claimed_at, before.start_to_close_at)
    });
    (!kept).then(|| found(step, "a heartbeat changed the attempt"))
}

/// The worker's own heartbeats say nothing about its work, and those of the work nothing about the lease.
fn i5_a_heartbeat_renews_only_what_is_alive(step: &Step<'_>, decided: &Decided) -> Option<Violation> {
    let (before, after) = (step.before?.running()?, step.after.running()?);
    let Command::Heartbeat(heartbeat) = &decided.command else { return None };
    if decided.outcome != Ok(Reply::Extended) {
        return None;
    }
    let kept = match heartbeat.sign_of {
        SignOfLife::Both => true,
        SignOfLife::Worker => after.heartbeat_at == before.heartbeat_at,
        SignOfLife::Work => after.lease_expires_at == before.lease_expires_at,
    };
    (!kept).then(|| found(step, "a heartbeat renewed what it says nothing about"))
}

fn times_out(step: &Step<'_>) -> bool {
    step.ended_attempt().is_some_and(|past| matches!(past.ending, Ending::TimedOut(_)))
}

fn instant(task: &Task, kind: TimeoutKind) -> Option<Timestamp> {
    let (start, heartbeat, close) = match &task.state {
        State::Pending(pending) => (pending.schedule_to_start_at, None, None),
        State::Running(running) => (None, running.heartbeat_at, running.start_to_close_at),
        State::Ended(_) => (None, None, None),
    };
    match kind {
        TimeoutKind::ScheduleToClose => task.deadline_at,
        TimeoutKind::ScheduleToStart => start,
        TimeoutKind::Heartbeat => heartbeat,
        TimeoutKind::StartToClose => close,
    }
}

fn name(instant: Option<Timestamp>) -> String {
    instant.map_or_else(|| "none".to_owned(), clock)
}
