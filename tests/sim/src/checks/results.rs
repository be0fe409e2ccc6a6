//! What must hold of leases and results: one holder at a time, one result, and it is the holder's.

use std::collections::BTreeMap;

use tickover_core::error::Reject;
use tickover_core::id::LeaseId;
use tickover_core::payload::{Json, Payload};
use tickover_core::task::command::Command;
use tickover_core::task::decision::{ClaimReply, Reply};
use tickover_core::task::{Outcome, State};

use super::story::{Step, Stories};
use crate::Run;
use crate::history::{Decided, What};
use crate::trace::{brief, clock};
use crate::violation::{Invariant, Violation};

pub(super) fn of_step(step: &Step<'_>, run: &Run) -> Vec<Violation> {
    let Some(decided) = step.decided else { return vec![] };
    [
        i7_no_task_is_taken_from_a_live_worker(step, decided),
        i7_a_report_is_the_holders(step, decided),
        i7_a_result_is_what_the_holder_reported(step, decided, run),
        i1_a_hint_is_of_the_task_that_it_was_sent_for(step, decided),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn found(invariant: Invariant, step: &Step<'_>, what: impl Into<String>) -> Violation {
    Violation::new(invariant, step.at, format!("{}: {}", brief(step.after), what.into()))
}

fn i7_no_task_is_taken_from_a_live_worker(step: &Step<'_>, decided: &Decided) -> Option<Violation> {
    if decided.outcome != Ok(Reply::Claim(ClaimReply::Claimed)) {
        return None;
    }
    let (now, before) = (decided.now, step.before?);
    let too_early = match &before.state {
        State::Pending(pending) => pending.available_at > now,
        State::Running(running) => {
            let timeouts = [running.heartbeat_at, running.start_to_close_at];
            running.lease_expires_at > now && timeouts.into_iter().flatten().all(|timeout| timeout > now)
        }
        State::Ended(_) => true,
    };
    too_early.then(|| found(Invariant::I7, step, format!("too early at {}: {}", clock(now), brief(before))))
}

/// A worker's report changes the task only with the holder's lease.
fn i7_a_report_is_the_holders(step: &Step<'_>, decided: &Decided) -> Option<Violation> {
    // A refusal may come with a write: an expiry that was noticed.
    let lease = reported_with(&decided.command).filter(|_| decided.outcome.is_ok())?;
    let holder = step.before?.running().map(|running| running.lease);
    (holder != Some(lease))
        .then(|| found(Invariant::I7, step, format!("{lease} closed the attempt of {holder:?}")))
}

fn i7_a_result_is_what_the_holder_reported(
    step: &Step<'_>,
    decided: &Decided,
    run: &Run,
) -> Option<Violation> {
    let Outcome::Completed { output } = &step.after.ended()?.outcome else { return None };
    let stored: Option<Json> = match output {
        None => None,
        Some(Payload::Inline(json)) => Some(json.clone()),
        Some(Payload::Blob(at)) => run.world.ledger.blob(&at.id),
    };
    let Command::Complete(complete) = &decided.command else {
        return Some(found(Invariant::I7, step, "completed by another command than a report"));
    };
    (stored != complete.output).then(|| found(Invariant::I7, step, format!("the result is {stored:?}")))
}

/// An id can be used again. Hints of an earlier task with this id don't apply to the present one.
fn i1_a_hint_is_of_the_task_that_it_was_sent_for(step: &Step<'_>, decided: &Decided) -> Option<Violation> {
    let Command::Claim(claim) = &decided.command else { return None };
    let other = claim.hint?.incarnation;
    (other != step.after.incarnation)
        .then(|| found(Invariant::I1, step, format!("claimed by a hint of {other}")))
}

/// A result of the holder is refused only if the attempt's time was over, however late it comes: nobody has taken over.
pub(super) fn the_holders_result_counts(run: &Run) -> Vec<Violation> {
    let wrong = run.events.iter().filter_map(|event| {
        let What::Decided(decided) = &event.what else { return None };
        let (Command::Complete(_) | Command::Fail(_)) = &decided.command else { return None };
        let seen = decided.seen.as_deref()?;
        let running = seen.running()?;
        let ends = [running.heartbeat_at, running.start_to_close_at, seen.deadline_at];
        let is_over = ends.into_iter().flatten().any(|end| end <= decided.now);
        let is_refused = decided.outcome == Err(Reject::LeaseLost);
        (is_refused && !is_over && reported_with(&decided.command) == Some(running.lease)).then(|| {
            Violation::new(Invariant::I7, event.at, format!("{}: its result is refused", brief(seen)))
        })
    });
    wrong.collect()
}

/// Each lease closes at most one attempt, and each life of a task has at most one result.
pub(super) fn one_each(stories: &Stories<'_>) -> Vec<Violation> {
    let mut found_all = Vec::new();
    for steps in stories.tasks() {
        let mut granted: BTreeMap<LeaseId, u32> = BTreeMap::new();
        let mut has_result = false;
        for step in steps.iter().filter(|step| !step.is_rearm()) {
            let before = step.before.and_then(|before| before.running()).map(|running| running.lease);
            if let Some(lease) =
                step.after.running().map(|running| running.lease).filter(|lease| before != Some(*lease))
            {
                let times = granted.entry(lease).or_default();
                *times += 1;
                if *times > 1 {
                    found_all.push(found(Invariant::I7, step, format!("{lease} was granted twice")));
                }
            }
            has_result &= step.before.is_some();
            let is_result = step.after.ended().is_some();
            if is_result && has_result {
                found_all.push(found(Invariant::I1, step, "a second result"));
            }
            has_result = is_result;
        }
    }
    found_all
}

/// The lease that a report carries.
fn reported_with(command: &Command) -> Option<LeaseId> {
    match command {
        Command::Heartbeat(heartbeat) => Some(heartbeat.lease),
        Command::Complete(complete) => Some(complete.lease),
        Command::Fail(fail) => Some(fail.lease),
        Command::Release { lease } => Some(*lease),
        Command::Schedule(_)
        | Command::Bounce(_)
        | Command::Claim(_)
        | Command::Cancel { .. }
        | Command::Retry(_)
        | Command::Hold
        | Command::Unpark
        | Command::WaitInLine { .. }
        | Command::Due(_)
        | Command::Timer { .. } => None,
    }
}
