//! What must hold of events: each is taken once, first in, first out among those of its name.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tickover_core::execution::command::{Command, SendEvent};
use tickover_core::execution::decision::Reply;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::id::{EventName, LeaseId, StepName};
use tickover_core::payload::Payload;

use super::found;
use super::story::{Step, Stories};
use crate::Run;
use crate::history::execution::Done;
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
    violations
}

/// Over all runs of an execution.
fn an_id_counts_once(steps: &[Step<'_>]) -> Vec<Violation> {
    let mut ids = BTreeSet::new();
    let again = steps.iter().filter(|step| {
        let Some(ruling) = step.ruling else { return false };
        let Command::SendEvent(SendEvent { id: Some(id), .. }) = &ruling.command else { return false };
        ruling.outcome == Ok(Reply::EventSent { duplicate: false }) && !ids.insert(id)
    });
    again.map(|step| found(Invariant::Journal, step, "an event counts that was sent before")).collect()
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
    Some(match event.payload()? {
        Payload::Inline(json) => json.as_str().to_owned(),
        Payload::Blob(at) => run.world.ledger.blob(&at.id)?.as_str().to_owned(),
    })
}
