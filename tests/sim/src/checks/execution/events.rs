//! What must hold of events: each is taken once, first in, first out among those of its name.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tickover_core::execution::command::{Command, FirstEvent, SendEvent};
use tickover_core::execution::decision::Reply;
use tickover_core::execution::journal::{Entry, Happened, answered_event};
use tickover_core::id::{EventName, ExecutionId, LeaseId, StepName};
use tickover_core::payload::Payload;

use super::found;
use super::story::{Step, Stories};
use crate::Run;
use crate::history::execution::{Asked, Done, ExecutionCallAnswer};
use crate::history::{Answer, Request, What};
use crate::violation::{Invariant, Violation};

/// The payload of the event that a script took for a wait.
type Finds<'a> = BTreeMap<(LeaseId, &'a StepName), &'a str>;

pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let mut finds = Finds::new();
    for (_, _, deed) in &stories.deeds {
        if let Done::Took { wait, payload, .. } = &deed.what {
            finds.insert((deed.turn.lease, wait), payload);
        }
    }
    let mut violations: Vec<_> =
        stories.steps().filter_map(|step| each_wait_takes_the_oldest(step, &finds, run)).collect();
    violations.extend(stories.executions().flat_map(an_id_counts_once));
    violations.extend(stories.steps().filter_map(|step| it_begins_with_the_event_of_its_start(step, run)));
    violations.extend(answers_are_those_of_the_code(stories, run));
    violations
}

/// Over all runs of an execution.
fn an_id_counts_once(steps: &[Step<'_>]) -> Vec<Violation> {
    let mut ids = BTreeSet::new();
    let again = steps.iter().filter(|step| {
        let Some(ruling) = step.ruling else { return false };
        if let Command::Start(start) = &ruling.command
            && let Some(FirstEvent { id: Some(id), .. }) = &start.event
            && step.before.is_none()
        {
            return !ids.insert(id);
        }
        let Command::SendEvent(SendEvent { id: Some(id), .. }) = &ruling.command else { return false };
        ruling.outcome == Ok(Reply::EventSent { duplicate: false }) && !ids.insert(id)
    });
    again.map(|step| found(Invariant::Journal, step, "an event counts that was sent before")).collect()
}

/// The id is taken and the event is there by one write.
fn it_begins_with_the_event_of_its_start(step: &Step<'_>, run: &Run) -> Option<Violation> {
    let Command::Start(start) = &step.ruling?.command else { return None };
    if step.before.is_some() {
        return None;
    }
    let asked = start
        .event
        .as_ref()
        .map(|event| (&event.name, event.id.as_ref(), text_of(event.payload.as_ref(), run)));
    let mut events = step.journal.iter().flatten().filter_map(|entry| match &entry.what {
        Happened::Event { name, id, payload, .. } => {
            Some((name, id.as_ref(), text_of(payload.as_ref(), run)))
        }
        _ => None,
    });
    let found_first = events.next();
    let is_so = found_first == asked && events.next().is_none();
    (!is_so).then(|| {
        found(Invariant::Journal, step, format!("it begins with {found_first:?}, not with {asked:?}"))
    })
}

/// Whoever waits for an answer gets the one that is in the journal of a run of an execution with that id.
fn answers_are_those_of_the_code(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let mut given: BTreeMap<(&ExecutionId, &str), BTreeSet<String>> = BTreeMap::new();
    for step in stories.steps() {
        for entry in step.ruling.map_or(&[][..], |ruling| ruling.command.entries()) {
            let Happened::Captured { name, value } = &entry.what else { continue };
            let Some(event) = answered_event(name) else { continue };
            given.entry((&step.after.id, event)).or_default().extend(text_of(Some(value), run));
        }
    }
    let mut asked = BTreeMap::new();
    let mut violations = vec![];
    for event in &run.events {
        match &event.what {
            What::Called { call, request: Request::OfExecution(Asked::Answer { execution, id }) } => {
                asked.insert(*call, (execution, id));
            }
            What::Answered {
                call,
                answer: Answer::OfExecution(ExecutionCallAnswer::Answered(Some(answer))),
            } => {
                let Some((execution, id)) = asked.get(call) else { continue };
                if given.get(&(*execution, id.as_str())).is_none_or(|all| !all.contains(answer)) {
                    let what = format!("{execution} has answered {id} with {answer}, and its code hasn't");
                    violations.push(Violation::new(Invariant::I10, event.at, what));
                }
            }
            _ => {}
        }
    }
    violations
}

/// Goes through a journal and checks the waits that this step ended.
fn each_wait_takes_the_oldest(step: &Step<'_>, finds: &Finds<'_>, run: &Run) -> Option<Violation> {
    let (before, journal) = (step.before?, step.journal.as_ref()?);
    let lease = before.turn()?.lease;
    let brought = step.ruling.map(|ruling| ruling.command.entries())?;
    let mut free: BTreeMap<&EventName, VecDeque<&Entry>> = BTreeMap::new();
    for entry in journal {
        if let Happened::Event { name, .. } = &entry.what {
            free.entry(name).or_default().push_back(entry);
        } else if let Happened::EventsCleared { name, count } = &entry.what {
            let line = free.entry(name).or_default();
            line.drain(..usize::try_from(*count).unwrap_or(0).min(line.len()));
        } else if let Happened::Waited { name: wait, event } = &entry.what {
            let taken = event.as_ref().and_then(|name| free.entry(name).or_default().pop_front());
            let is_new = brought.iter().any(|one| one.at == entry.at && is_wait(one, wait));
            let find = finds.get(&(lease, wait)).copied().filter(|_| is_new);
            if let Some(wrong) = what_is_wrong((event.is_some(), taken), find, run) {
                return Some(found(Invariant::Journal, step, format!("{wait}: {wrong}")));
            }
        }
    }
    None
}

/// An error, if the event that a wait took by the journal isn't the one that the script found.
fn what_is_wrong(taken: (bool, Option<&Entry>), find: Option<&str>, run: &Run) -> Option<String> {
    match (taken, find) {
        ((true, None), _) => Some("it took an event, and there was none".to_owned()),
        ((_, Some(event)), Some(find)) => {
            let is = text(event, run).unwrap_or_default();
            (is != find).then(|| format!("it took {find}, and the oldest is {is}"))
        }
        ((false, None), Some(find)) => Some(format!("it took {find}, and that isn't recorded")),
        ((_, Some(_)) | (false, None), None) => None,
    }
}

fn is_wait(entry: &Entry, wait: &StepName) -> bool {
    matches!(&entry.what, Happened::Waited { name, .. } if name == wait)
}

/// The payload of an event.
pub(super) fn text(event: &Entry, run: &Run) -> Option<String> {
    text_of(event.payload(), run)
}

/// The text of a payload.
pub(super) fn text_of(payload: Option<&Payload>, run: &Run) -> Option<String> {
    Some(match payload? {
        Payload::Inline(json) => json.as_str().to_owned(),
        Payload::Blob(at) => run.world.ledger.blob(&at.id)?.as_str().to_owned(),
    })
}
