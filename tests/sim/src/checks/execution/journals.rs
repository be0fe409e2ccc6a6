//! What must hold of journals: they only grow, each step has one result, and a step with a result isn't started again.

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::execution::ParentClosePolicy;
use tickover_core::execution::command::{Command, EndedChild, Ending, Rerun};
use tickover_core::execution::journal::{Entry, Happened, StepOutcome, is_after_failure, pending_events};
use tickover_core::id::{ExecutionId, StepName};

use super::found;
use super::story::{Step, Stories};
use crate::history::execution::{Done, ScriptAction};
use crate::trace::execution::entry;
use crate::violation::{Invariant, Violation};

pub(super) fn of_run(stories: &Stories<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for steps in stories.executions() {
        for pair in steps.windows(2) {
            if let [before, after] = pair {
                violations.extend(the_journal_only_grows(before, after));
            }
        }
        violations.extend(steps.iter().filter_map(nothing_is_recorded_twice));
    }
    violations.extend(stories.deeds.iter().filter_map(|(_, at, deed)| {
        let what = a_recorded_step_is_not_started_again(stories, deed)
            .or_else(|| memory_goes_on_only_with_events(stories, deed))?;
        Some(Violation::new(Invariant::Journal, *at, format!("{}: {what}", deed.turn)))
    }));
    violations
}

fn the_journal_only_grows(before: &Step<'_>, after: &Step<'_>) -> Option<Violation> {
    let (old, new) = (before.journal.as_ref()?, after.journal.as_ref()?);
    if before.after.run == after.after.run {
        let is_same = |(one, other): (&&Entry, &&Entry)| one.at == other.at && entry(one) == entry(other);
        let grows = new.len() >= old.len() && old.iter().zip(new).all(is_same);
        return (!grows).then(|| found(Invariant::Journal, after, "its journal lost something"));
    }
    let ruling = after.ruling?;
    let mut expected: Vec<Entry> = Vec::new();
    if let Command::Close(close) = &ruling.command {
        if !matches!(close.ending, Ending::ContinueAsNew { .. } | Ending::FailedRun { .. }) {
            return Some(found(Invariant::Journal, after, "it began a new run though it ended"));
        }
        let whole: Vec<Entry> = old.iter().copied().chain(&close.entries).cloned().collect();
        expected.extend(pending_events(&whole).into_iter().cloned());
        expected.extend(left_open(&whole));
    } else if let Some(rerun) = rerun_of(&ruling.command) {
        if let Some(entry) = rerun.preserved.iter().find(|entry| !may_be_kept(entry, old)) {
            return Some(found(Invariant::Journal, after, format!("it begins with {entry:?}")));
        }
        expected.extend(rerun.preserved.iter().cloned());
    } else {
        return Some(found(Invariant::Journal, after, "no command started a new run"));
    }
    let mut carried: Vec<&Entry> = new.iter().copied().filter(|entry| !is_note(entry)).collect();
    // Events stay in order. Children have none.
    carried.sort_by_key(|entry| left_child(entry));
    let carried: Vec<String> = carried.into_iter().map(entry).collect();
    let expected: Vec<String> = expected.iter().map(entry).collect();
    let what = || format!("it begins with {carried:?}, not with {expected:?}");
    (carried != expected).then(|| found(Invariant::Journal, after, what()))
}

/// The open children that end with the execution, as the next run begins with them.
fn left_open(whole: &[Entry]) -> Vec<Entry> {
    let (mut open, mut left) = (BTreeMap::<&StepName, Entry>::new(), BTreeMap::<&ExecutionId, Entry>::new());
    for entry in whole {
        match &entry.what {
            Happened::Child { execution, left: true, .. } => drop(left.insert(execution, entry.clone())),
            Happened::Child { name, execution: of, policy, .. } => {
                left.remove(of);
                let (called, execution, policy) = (name.clone(), of.clone(), *policy);
                let what = Happened::Child { name: called, execution, policy, left: true, was_left: false };
                open.insert(name, Entry { at: entry.at, what });
            }
            Happened::Step { name, .. } | Happened::Reopened { name, .. } => drop(open.remove(name)),
            _ => {}
        }
    }
    let ends = |entry: &Entry| matches!(&entry.what, Happened::Child { policy, .. } if *policy != ParentClosePolicy::Abandon);
    let mut next: Vec<Entry> = open.into_values().chain(left.into_values()).filter(ends).collect();
    next.sort_by(|one, other| left_child(one).cmp(&left_child(other)));
    next
}

const fn left_child(entry: &Entry) -> Option<(&StepName, &ExecutionId)> {
    match &entry.what {
        Happened::Child { name, execution, left: true, .. } => Some((name, execution)),
        _ => None,
    }
}

/// The results with which a command starts a new run of an execution that has ended.
pub(super) const fn rerun_of(command: &Command) -> Option<&Rerun> {
    match command {
        Command::Restart(rerun) => Some(rerun),
        Command::Start(start) => match &start.ended {
            EndedChild::Again { rerun, .. } => Some(rerun),
            EndedChild::Found | EndedChild::Kept { .. } => None,
        },
        _ => None,
    }
}

/// Whether a run may begin with an entry of the one before: with events and values, with steps that completed, and with
/// sleeps and waits that were over. Nothing of it undoes or handles anything.
fn may_be_kept(kept: &Entry, old: &[&Entry]) -> bool {
    let is_same = |one: &&Entry| one.at == kept.at && entry(one) == entry(kept);
    if !old.iter().any(is_same) {
        return false;
    }
    match &kept.what {
        Happened::Event { .. } | Happened::EventsCleared { .. } => true,
        Happened::Captured { name, .. } => !is_after_failure(name),
        Happened::Step { name, .. } => !is_after_failure(name) && has_completed(name, old),
        Happened::Until { name, .. } | Happened::Fired { name } | Happened::Waited { name, .. } => {
            !is_after_failure(name) && old.iter().any(|one| is_over(one, name))
        }
        Happened::Attempt { .. }
        | Happened::Remote { .. }
        | Happened::Child { .. }
        | Happened::Reopened { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => false,
    }
}

fn has_completed(step: &StepName, journal: &[&Entry]) -> bool {
    let ends = |one: &&&Entry| matches!(&one.what, Happened::Step { name, .. } | Happened::Reopened { name, .. } if name == step);
    let last = journal.iter().rfind(ends).map(|one| &one.what);
    matches!(last, Some(Happened::Step { outcome: StepOutcome::Completed { .. }, .. }))
}

fn is_over(entry: &Entry, wait: &StepName) -> bool {
    matches!(&entry.what, Happened::Fired { name } | Happened::Waited { name, .. } if name == wait)
}

const fn is_note(entry: &Entry) -> bool {
    matches!(entry.what, Happened::Note { .. })
}

/// What an entry is about, where there can be only one such entry.
fn unique_key(entry: &Entry) -> Option<(&'static str, &StepName, u32)> {
    match &entry.what {
        Happened::Attempt { name, attempt, error: Some(_), .. } => Some(("failure", name, *attempt)),
        Happened::Remote { name } | Happened::Child { name, left: false, .. } => Some(("beginning", name, 0)),
        Happened::Step { name, .. } => Some(("result", name, 0)),
        Happened::Captured { name, .. } => Some(("value", name, 0)),
        Happened::Until { name, .. } => Some(("instant", name, 0)),
        Happened::Fired { name } => Some(("firing", name, 0)),
        Happened::Waited { name, .. } => Some(("wait's end", name, 0)),
        // An attempt that is recorded before it runs is recorded again if its worker was lost.
        Happened::Attempt { error: None, .. }
        | Happened::Child { left: true, .. }
        | Happened::Reopened { .. }
        | Happened::Event { .. }
        | Happened::EventsCleared { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => None,
    }
}

fn nothing_is_recorded_twice(step: &Step<'_>) -> Option<Violation> {
    let (mut known, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for entry in step.journal.as_ref()? {
        if let Happened::Reopened { name, .. } = &entry.what {
            known.retain(|(_, known, _)| *known != name);
        }
        if let Some(one) = unique_key(entry)
            && !known.insert(one)
        {
            return Some(found(Invariant::Journal, step, format!("{} has a second {}", one.1, one.0)));
        }
        if let Happened::Event { id: Some(id), .. } = &entry.what
            && !ids.insert(id)
        {
            return Some(found(Invariant::Journal, step, format!("event {id} is in it twice")));
        }
    }
    None
}

/// A turn that goes on from memory knows the whole journal, of which only events have come since.
fn memory_goes_on_only_with_events(stories: &Stories<'_>, deed: &ScriptAction) -> Option<String> {
    let Done::WentOn { known, journal } = &deed.what else { return None };
    let steps = stories.execution(deed.turn.incarnation);
    let taken = steps.iter().find(|step| holds(step, deed))?;
    let is_event = |one: &Entry| matches!(one.what, Happened::Event { .. });
    if let Some(other) = journal.iter().skip(*known).find(|one| !is_event(one)) {
        return Some(format!("it went on from memory, and has not seen {}", entry(other)));
    }
    if taken.after.cancel_requested {
        return Some("it went on from memory though it is to be stopped".to_owned());
    }
    let is_whole = taken.journal.as_ref()?.iter().copied().eq(journal);
    (!is_whole).then(|| "its memory isn't the journal".to_owned())
}

fn holds(step: &Step<'_>, deed: &ScriptAction) -> bool {
    step.after.turn().is_some_and(|turn| turn.lease == deed.turn.lease)
}

/// A turn knows all that was recorded before it started.
fn a_recorded_step_is_not_started_again(stories: &Stories<'_>, deed: &ScriptAction) -> Option<String> {
    let Done::Began(name) = &deed.what else { return None };
    let steps = stories.execution(deed.turn.incarnation);
    let taken = steps.iter().find(|step| holds(step, deed))?;
    let mut results: BTreeMap<&StepName, bool> = BTreeMap::new();
    for entry in taken.journal.as_ref()? {
        if let Happened::Step { name, .. } | Happened::Reopened { name, .. } = &entry.what {
            results.insert(name, matches!(entry.what, Happened::Step { .. }));
        }
    }
    results.get(name).is_some_and(|has| *has).then(|| format!("{name} had a result before the turn started"))
}
