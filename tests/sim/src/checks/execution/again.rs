//! What must hold of work that runs again: what an operator has run again runs, its new outcome counts, what had completed
//! isn't done a second time, and the same work has the same identity.

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::execution::ExecutionOutcome;
use tickover_core::execution::command::Command;
use tickover_core::execution::journal::{Entry, Happened, PAGE_WORKFLOW, StepOutcome, is_after_failure};
use tickover_core::id::StepName;
use tickover_service::executions::remote_id;

use super::found;
use super::story::{Step, Stories};
use crate::violation::{Invariant, Violation};

pub(super) fn of_run(stories: &Stories<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for steps in stories.executions() {
        violations.extend(what_is_reopened_runs_again(steps, stories));
        for pair in steps.windows(2) {
            let [before, after] = pair else { continue };
            violations.extend(the_same_work_has_the_same_identity(before, after));
            violations.extend(a_completed_child_is_kept(before, after, stories));
            violations.extend(what_the_end_has_ended_runs_again(before, after));
        }
    }
    violations
}

/// The outcome of a remote step that an operator has reopened is one of a later attempt, unless it had completed meanwhile.
fn what_is_reopened_runs_again(steps: &[Step<'_>], stories: &Stories<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut reopened: BTreeMap<&StepName, usize> = BTreeMap::new();
    for pair in steps.windows(2) {
        let [before, after] = pair else { continue };
        if before.after.run != after.after.run {
            reopened.clear();
            continue;
        }
        let command = after.ruling.map(|ruling| &ruling.command);
        if let Some(Command::RetryStep { name, .. }) = command
            && before.after.closed().is_some()
            && after.after.closed().is_none()
            && before.journal.iter().flatten().any(|entry| is_start_of(entry, name))
        {
            reopened.insert(name, after.number);
        }
        for Entry { what, .. } in command.map_or(&[][..], Command::entries) {
            let Happened::Step { name, outcome, .. } = what else { continue };
            let Some(since) = reopened.remove(name) else { continue };
            let id = remote_id(after.after, name);
            let changes = stories.tasks.get(id.as_str()).map_or(&[][..], Vec::as_slice);
            let ran =
                changes.iter().any(|(number, _, ended)| (since..after.number).contains(number) && !ended);
            if !ran && !matches!(outcome, StepOutcome::Completed { .. } | StepOutcome::ResultExpired) {
                let what = format!("{name} was to run again, and its old outcome counts");
                violations.push(found(Invariant::Again, after, what));
            }
        }
    }
    violations
}

/// What was open when the execution ended would have that end as its outcome: it runs again with the step that is retried.
fn what_the_end_has_ended_runs_again(before: &Step<'_>, after: &Step<'_>) -> Option<Violation> {
    let Command::RetryStep { name: step, .. } = &after.ruling?.command else { return None };
    if before.after.closed().is_none() || after.after.closed().is_some() || is_after_failure(step) {
        return None;
    }
    let mut open: BTreeSet<&StepName> = BTreeSet::new();
    for entry in after.journal.iter().flatten() {
        match &entry.what {
            Happened::Remote { name } if !is_after_failure(name) => {
                open.insert(name);
            }
            Happened::Step { name, .. } | Happened::Reopened { name, .. } => {
                open.remove(name);
            }
            _ => {}
        }
    }
    (!open.is_empty()).then(|| {
        found(
            Invariant::Again,
            after,
            format!("{step} runs again, and {open:?} stay as the end has left them"),
        )
    })
}

fn is_start_of(entry: &Entry, step: &StepName) -> bool {
    matches!(&entry.what, Happened::Remote { name } if name == step)
}

/// From it follow the keys of all calls to the outside, and the names of callbacks.
fn the_same_work_has_the_same_identity(before: &Step<'_>, after: &Step<'_>) -> Option<Violation> {
    let Command::Restart(rerun) = &after.ruling?.command else { return None };
    let (was, is) = (before.after.work(), after.after.work());
    let began = rerun.is_same_work && before.after.run != after.after.run;
    (began && was != is).then(|| {
        found(Invariant::Again, after, format!("it repeats the work of run {was} as that of run {is}"))
    })
}

/// A child that has completed isn't run again by a parent that repeats its work: a rerun, or a step that is retried. Only a
/// page of a map is, for its items that failed.
fn a_completed_child_is_kept(
    before: &Step<'_>,
    after: &Step<'_>,
    stories: &Stories<'_>,
) -> Option<Violation> {
    let Command::Start(start) = &after.ruling?.command else { return None };
    let completed = before
        .after
        .closed()
        .is_some_and(|closed| matches!(closed.outcome, ExecutionOutcome::Completed { .. }));
    if !completed || after.after.closed().is_some() {
        return None;
    }
    let parent = start.parent.as_ref()?;
    let of_run = |step: &&Step<'_>| step.number < after.number && step.after.run == parent.run;
    let repeats = stories.execution(parent.incarnation).iter().rfind(of_run)?.after.repeats.is_some();
    let is_same_work = repeats || parent.again > 0;
    (is_same_work && !is_for_failed_items(before, after))
        .then(|| found(Invariant::Again, after, "it had completed, and runs again for the same work"))
}

/// Whether this is a page of a map that completed with items that failed, and begins again with all those that completed.
fn is_for_failed_items(before: &Step<'_>, after: &Step<'_>) -> bool {
    if before.after.workflow.as_str() != PAGE_WORKFLOW {
        return false;
    }
    // Without the journals, nothing can be said.
    let (Some(old), Some(new)) = (&before.journal, &after.journal) else { return true };
    let kept: BTreeSet<_> = new.iter().copied().filter_map(end_of_item).collect();
    let mut ends = old.iter().copied().filter_map(end_of_item);
    let has_failed = ends.clone().any(|(_, completed)| !completed);
    has_failed && ends.all(|end| !end.1 || kept.contains(&end))
}

/// An item that has ended, and whether it completed.
const fn end_of_item(entry: &Entry) -> Option<(&StepName, bool)> {
    match &entry.what {
        Happened::Step { name, outcome, .. } => {
            Some((name, matches!(outcome, StepOutcome::Completed { .. })))
        }
        _ => None,
    }
}
