//! What must hold of answers: they agree with the stored records, also after an answer was lost.

use std::collections::BTreeMap;

use tickover_core::task::Ending;
use tickover_core::task::command::Command;
use tickover_core::task::decision::Reply;
use tickover_core::time::Timestamp;
use tickover_service::ServiceError;

use super::story::{Step, Stories};
use crate::Run;
use crate::fault_plan::SKEW;
use crate::history::{Answer, Held, Made, Report, Request, What};
use crate::violation::{Invariant, Violation};

/// A call with its answer.
pub(super) struct Call<'a> {
    number: u64,
    pub(super) request: &'a Request,
    pub(super) at: Timestamp,
    pub(super) answer: &'a Answer,
}

pub(super) fn are_true(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let mut found = Vec::new();
    for call in calls(run) {
        if let Request::Report(held, report) = call.request {
            found.extend(a_report_is_answered_truly(stories, &call, (held, report)));
        }
        if let Answer::Claimed(all) | Answer::Taken(all, _) = call.answer {
            found.extend(all.iter().filter_map(|held| a_claim_is_recorded(stories, &call, held)));
        }
        if let Answer::Scheduled(all) = call.answer {
            let made: Vec<&Made> = all.iter().flatten().collect();
            found.extend(made.iter().filter_map(|one| a_new_task_is_new(stories, &call, one, &made)));
        }
    }
    found
}

pub(super) fn calls(run: &Run) -> Vec<Call<'_>> {
    let mut asked = BTreeMap::new();
    let mut calls = Vec::new();
    for event in &run.events {
        match &event.what {
            What::Called { call, request } => drop(asked.insert(*call, request)),
            What::Answered { call: number, answer } => {
                let asked = asked.remove(number);
                calls.extend(asked.map(|request| Call { number: *number, request, at: event.at, answer }));
            }
            What::Decided(_)
            | What::Stored(_)
            | What::OfExecution(_)
            | What::Message { .. }
            | What::Fault(_) => {}
        }
    }
    calls
}

fn found(call: &Call<'_>, held: &Held, what: &str) -> Violation {
    let what = format!("call #{} on {} with {}: {what}", call.number, held.task, held.lease);
    Violation::new(Invariant::I10, call.at, what)
}

fn a_report_is_answered_truly(
    stories: &Stories<'_>,
    call: &Call<'_>,
    (held, report): (&Held, &Report),
) -> Option<Violation> {
    let steps = stories.task(held.incarnation);
    let closed = steps.iter().find(|step| step.at <= call.at && closes(step, held, report));
    let by_this_call =
        closed.and_then(|step| step.decided).is_some_and(|decided| decided.call == call.number);
    match (call.answer, closed) {
        (Answer::Closed { .. }, None) => {
            Some(found(call, held, "the answer says that it is recorded, and it isn't"))
        }
        (Answer::Closed { duplicate: false }, Some(_)) if !by_this_call => {
            Some(found(call, held, "the answer says that its report is the first, and another one is"))
        }
        (Answer::Closed { duplicate: true }, Some(step))
            if by_this_call && !written_since(step, steps, call) =>
        {
            Some(found(call, held, "the answer says that its report is a repetition, and it is the first"))
        }
        (Answer::Renewed { lease_expires_at }, _) => {
            let renewed = steps.iter().any(|step| {
                let decided = step.decided.filter(|decided| decided.call == call.number);
                let running = step.after.running();
                decided.is_some_and(|decided| decided.outcome == Ok(Reply::Extended))
                    && running.is_some_and(|running| running.lease_expires_at == *lease_expires_at)
            });
            (!renewed).then(|| found(call, held, "the answer says that its lease is extended, and it isn't"))
        }
        (Answer::Failed(ServiceError::Rejected(reject)), Some(step)) => {
            let forgotten = written_since(step, steps, call) || is_gone(step, call);
            let untrue = (by_this_call && !forgotten) || (is_result(step) && !is_gone(step, call));
            untrue
                .then(|| found(call, held, &format!("the answer is {reject:?}, and the report is recorded")))
        }
        _ => None,
    }
}

/// Whether other writes have changed the record since: an attempt is forgotten after three more.
fn written_since(closing: &Step<'_>, steps: &[Step<'_>], call: &Call<'_>) -> bool {
    steps.iter().any(|step| step.number > closing.number && step.at <= call.at)
}

/// Whether the record that this step left may have passed its retention by any clock.
fn is_gone(step: &Step<'_>, call: &Call<'_>) -> bool {
    step.after.ended().is_some_and(|ended| ended.expires_at <= call.at.plus(SKEW))
}

/// Whether this step recorded a result: a repeated report of it is recognised for as long as the record exists.
fn is_result(step: &Step<'_>) -> bool {
    step.after.history.last().is_some_and(|past| past.ending == Ending::Completed)
}

/// Whether this step recorded such a report with this lease.
fn closes(step: &Step<'_>, held: &Held, report: &Report) -> bool {
    let Some(decided) = step.decided else { return false };
    let Some(past) = step.after.past_attempt(&held.lease) else { return false };
    let ending = match report {
        Report::Heartbeat(_) => return false,
        Report::Complete(_) => Ending::Completed,
        Report::Fail { .. } => Ending::Failed,
        Report::Release => Ending::Released,
    };
    let with = match &decided.command {
        Command::Complete(complete) => complete.lease,
        Command::Fail(fail) => fail.lease,
        Command::Release { lease } => *lease,
        Command::Schedule(_)
        | Command::Bounce(_)
        | Command::Claim(_)
        | Command::Heartbeat(_)
        | Command::Cancel { .. }
        | Command::Retry(_)
        | Command::Hold
        | Command::Unpark
        | Command::WaitInLine { .. }
        | Command::Due(_)
        | Command::Timer { .. } => return false,
    };
    let is_new = step.before.is_none_or(|before| before.past_attempt(&held.lease).is_none());
    past.ending == ending && with == held.lease && is_new
}

fn a_claim_is_recorded(stories: &Stories<'_>, call: &Call<'_>, held: &Held) -> Option<Violation> {
    let steps = stories.task(held.incarnation);
    let recorded = steps.iter().any(|step| {
        let running = step.after.running();
        step.decided.is_some_and(|decided| decided.call == call.number)
            && running.is_some_and(|running| running.lease == held.lease)
    });
    (!recorded).then(|| found(call, held, "the answer contains it, and it wasn't claimed"))
}

/// A batch may contain one task twice: then it is new to one of the two.
fn a_new_task_is_new(
    stories: &Stories<'_>,
    call: &Call<'_>,
    made: &Made,
    batch: &[&Made],
) -> Option<Violation> {
    let new_beside = batch.iter().any(|other| other.incarnation == made.incarnation && !other.existed);
    let first = stories.task(made.incarnation).first();
    let by_this_call = first.and_then(|step| step.decided).is_some_and(|decided| decided.call == call.number);
    let what = match (first, made.existed) {
        (None, _) => "there is none",
        (Some(_), false) if !by_this_call => "it is another call's",
        (Some(_), true) if by_this_call && !new_beside => "it is new",
        (Some(_), _) => return None,
    };
    let what = format!(
        "the answer to call #{} contains {} (existed: {}): {what}",
        call.number, made.task, made.existed
    );
    Some(Violation::new(Invariant::I10, call.at, what))
}
