//! What must hold of calls about executions: each is executed once, and its answer is true.

use std::collections::BTreeMap;

use tickover_core::execution::command::Command;
use tickover_core::execution::decision::Reply;

use super::story::Stories;
use crate::Run;
use crate::history::execution::{Asked, ExecutionCallAnswer, TurnCall};
use crate::history::{Answer, Request, What};
use crate::violation::{Invariant, Violation};

pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let offered = times_sent(stories);
    let mut asked = BTreeMap::new();
    let mut violations = Vec::new();
    for event in &run.events {
        match &event.what {
            What::Called { call, request: Request::OfExecution(request) } => {
                asked.insert(*call, request);
            }
            What::Answered { call, answer } => {
                let Some(request) = asked.remove(call) else { continue };
                let wrong = match (request, answer) {
                    (Asked::SendEvent { id, .. }, answer) => {
                        let is_told_apart = id.is_some() || run.plan.is_fair();
                        an_event_is_sent_once(&offered, *call, is_told_apart, answer)
                    }
                    (
                        Asked::Turn(_, TurnCall::Record(_)),
                        Answer::OfExecution(ExecutionCallAnswer::Written(version)),
                    ) => recorded_entries_are_stored(stories, *call, *version),
                    _ => None,
                };
                violations.extend(wrong.map(|what| {
                    Violation::new(Invariant::I10, event.at, format!("call #{call} to {request}: {what}"))
                }));
            }
            What::Called { .. }
            | What::Decided(_)
            | What::Stored(_)
            | What::OfExecution(_)
            | What::Message { .. }
            | What::Fault(_) => {}
        }
    }
    violations
}

/// How often each call's event was written.
fn times_sent(stories: &Stories<'_>) -> BTreeMap<u64, u32> {
    let mut times = BTreeMap::new();
    for step in stories.steps() {
        let Some(ruling) = step.ruling else { continue };
        // Another reply may come with a write too: it says that a deadline has passed, and brings no event.
        if matches!(ruling.command, Command::SendEvent(_))
            && ruling.outcome == Ok(Reply::EventSent { duplicate: false })
        {
            *times.entry(ruling.call).or_default() += 1;
        }
    }
    times
}

/// Without an id, two events can't be distinguished. Where an answer was lost and other writes followed, the event is
/// sent again. Where no answer is lost, each is sent once.
fn an_event_is_sent_once(
    offered: &BTreeMap<u64, u32>,
    call: u64,
    is_told_apart: bool,
    answer: &Answer,
) -> Option<String> {
    let times = offered.get(&call).copied().unwrap_or(0);
    match answer {
        Answer::OfExecution(ExecutionCallAnswer::EventSent { duplicate: false }) if times == 0 => {
            Some("the answer says that its event is buffered, and it isn't".to_owned())
        }
        _ if is_told_apart && times > 1 => Some(format!("its event was written {times} times")),
        _ => None,
    }
}

fn recorded_entries_are_stored(stories: &Stories<'_>, call: u64, version: u64) -> Option<String> {
    let is_there = stories
        .steps()
        .any(|step| step.after.version >= version && step.ruling.is_some_and(|ruling| ruling.call == call));
    (!is_there).then(|| "the answer says that it is recorded, and it isn't".to_owned())
}
