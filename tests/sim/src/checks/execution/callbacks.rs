//! What must hold of waits that somebody ends with a token: a report counts while its wait is open, and only then, and one
//! that was accepted is what the wait ends with.

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::execution::journal::{Entry, Happened, own_part};
use tickover_core::id::{EventName, Incarnation};
use tickover_core::time::Timestamp;

use super::found;
use super::journals::rerun_of;
use super::story::{Step, Stories};
use crate::Run;
use crate::history::execution::Asked;
use crate::history::{Answer, Request, What};
use crate::violation::{Invariant, Violation};

/// How the names of such events begin.
const RESERVED: &str = "tickover.cb.";

pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let mut violations = a_result_is_accepted_once(run);
    for steps in stories.executions() {
        // What holds of a journal holds of all that it grew from: the last of each run is enough.
        let ends = steps.iter().enumerate().filter(|(number, step)| {
            steps.get(number + 1).is_none_or(|next| next.after.run != step.after.run)
        });
        violations.extend(ends.flat_map(|(_, step)| reports_fit_their_waits(step)));
        for pair in steps.windows(2) {
            if let [before, after] = pair {
                violations.extend(the_same_work_keeps_its_results(before, after));
            }
        }
    }
    violations
}

/// Whether these entries' event is one that only tokens send.
pub(crate) fn is_reserved(event: &EventName) -> bool {
    event.as_str().starts_with(RESERVED)
}

/// The event of the callback that a wait is for.
pub(crate) fn awaited(what: &Happened) -> Option<&str> {
    let (Happened::Until { name, .. } | Happened::Waited { name, .. }) = what else { return None };
    let event = own_part(name).strip_prefix("event:")?;
    event.starts_with(RESERVED).then(|| event.split_once('[').map_or(event, |(event, _)| event))
}

/// The state of one callback's waits.
#[derive(Default)]
struct Waits {
    until: Option<Timestamp>,
    is_over: bool,
    /// When the reports came that no wait has taken.
    pending: Vec<Timestamp>,
}

fn reports_fit_their_waits(step: &Step<'_>) -> Vec<Violation> {
    let mut all: BTreeMap<&str, Waits> = BTreeMap::new();
    let mut wrong = Vec::new();
    for entry in step.journal.iter().flatten() {
        match &entry.what {
            Happened::Event { name, .. } if is_reserved(name) => {
                let waits = all.entry(name.as_str()).or_default();
                let is_late = waits.until.is_some_and(|until| entry.at >= until) && waits.pending.is_empty();
                if waits.is_over || is_late {
                    wrong.push(format!("{name} was reported after its wait was over"));
                }
                waits.pending.push(entry.at);
            }
            Happened::Until { until, .. } => {
                if let Some(event) = awaited(&entry.what) {
                    let waits = all.entry(event).or_default();
                    waits.until = Some(*until);
                }
            }
            Happened::Waited { event, .. } => {
                let Some(name) = awaited(&entry.what) else { continue };
                let waits = all.entry(name).or_default();
                let until = waits.until.take();
                if event.is_some() {
                    waits.pending.drain(..1.min(waits.pending.len()));
                    continue;
                }
                waits.is_over = true;
                let in_time = |at: &&Timestamp| until.is_some_and(|until| **at < until);
                if let Some(at) = waits.pending.iter().find(in_time) {
                    wrong.push(format!("{name} was reported at {at:?}, and its wait ended without it"));
                }
            }
            _ => {}
        }
    }
    wrong.into_iter().map(|what| found(Invariant::Callbacks, step, what)).collect()
}

/// A rerun that repeats the same work begins with all reports that had been accepted.
fn the_same_work_keeps_its_results(before: &Step<'_>, after: &Step<'_>) -> Option<Violation> {
    let rerun = rerun_of(&after.ruling?.command).filter(|rerun| rerun.is_same_work)?;
    if before.after.run == after.after.run || rerun.preserved.is_empty() {
        return None;
    }
    let results = |journal: &'_ [&Entry]| -> BTreeSet<EventName> {
        let named = |entry: &&Entry| match &entry.what {
            Happened::Event { name, id: Some(_), .. } if is_reserved(name) => Some(name.clone()),
            _ => None,
        };
        journal.iter().filter_map(named).collect()
    };
    let kept = results(after.journal.as_ref()?);
    let lost = results(before.journal.as_ref()?).into_iter().find(|name| !kept.contains(name))?;
    Some(found(Invariant::Callbacks, after, format!("the rerun has lost the result of {lost}")))
}

/// Whoever reports a result that counts is told so, and nobody else.
fn a_result_is_accepted_once(run: &Run) -> Vec<Violation> {
    let (mut asked, mut accepted) = (BTreeMap::new(), BTreeSet::<(Incarnation, &EventName)>::new());
    let mut violations = Vec::new();
    for event in &run.events {
        match &event.what {
            What::Called {
                call,
                request: Request::OfExecution(Asked::CallBack { incarnation, event, is_heartbeat }),
            } if !is_heartbeat => {
                asked.insert(*call, (*incarnation, event));
            }
            What::Answered { call, answer: Answer::Done } => {
                let Some(target) = asked.remove(call) else { continue };
                if !accepted.insert(target) {
                    let what = format!("call #{call}: a second result of {} was accepted", target.1);
                    violations.push(Violation::new(Invariant::Callbacks, event.at, what));
                }
            }
            _ => {}
        }
    }
    violations
}
