//! What must hold of waking: where nothing fails, a waiting execution is notified as soon as its steps and children
//! have ended, and then a hint is sent.

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Entry, Happened, open_steps};
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::id::Incarnation;
use tickover_core::time::Timestamp;
use tickover_service::executions::remote_id;

use super::found;
use super::story::{Step, Stories};
use crate::Run;
use crate::history::{Fate, Note, What};
use crate::trace::clock;
use crate::violation::{Invariant, Violation};

/// How long it takes at most where no call takes time.
const PROMPT: Millis = Millis::from_secs(2);
/// Calls to the world, each way, between an end and the notification.
const LEGS: u64 = 20;

pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    if !run.plan.is_fair() {
        return vec![];
    }
    let soon = PROMPT.saturating_add(Millis::new(run.plan.faults.latency_ms).saturating_mul(LEGS));
    let sent = hints(run);
    let mut violations = Vec::new();
    for steps in stories.executions() {
        let ends = steps.iter().skip(1).map(|step| step.at).chain([run.ended_at]);
        for (step, until) in steps.iter().zip(ends) {
            if let Some(by) = notify_by(step, stories).map(|at| at.plus(soon)).filter(|by| until > *by) {
                let what = format!("all it waits for had ended, and it wasn't notified by {}", clock(by));
                violations.push(found(Invariant::Wakes, step, what));
            }
            let is_woken = step.before.is_some_and(|before| before.wakes < step.after.wakes);
            let by = step.at.plus(soon);
            let hints = sent.get(&step.after.incarnation).map_or(&[][..], Vec::as_slice);
            let is_hinted = hints.iter().any(|at| (step.at..=by).contains(at));
            if is_woken && is_asleep(step.after) && !is_hinted && until > by && run.ended_at > by {
                let what = format!("it was woken, and no hint was sent or received by {}", clock(by));
                violations.push(found(Invariant::Wakes, step, what));
            }
        }
    }
    violations
}

const fn is_asleep(execution: &Execution) -> bool {
    matches!(execution.state, ExecutionState::Waiting(_))
}

/// From when on the execution should be notified, if all it waits for ends while it is in this state.
fn notify_by(step: &Step<'_>, stories: &Stories<'_>) -> Option<Timestamp> {
    let ExecutionState::Waiting(waiting) = &step.after.state else { return None };
    if waiting.wake_requested || step.after.wakes > waiting.seen_wakes || waiting.recheck.is_none() {
        return None;
    }
    let journal: Vec<Entry> = step.journal.as_ref()?.iter().copied().cloned().collect();
    let open = open_steps(&journal);
    // Each child notifies by itself. Of remote steps in one join, perhaps only the last one does.
    let children = open.iter().filter_map(|entry| {
        // Nobody waits for one that an earlier run has left.
        let Happened::Child { execution, left: false, .. } = &entry.what else { return None };
        let steps = stories.latest(execution, usize::MAX)?;
        let is_of_run =
            |one: &&Step<'_>| one.after.parent.as_ref().is_some_and(|of| of.run == step.after.run);
        first_end(
            steps
                .iter()
                .filter(is_of_run)
                .map(|one| (one.at, matches!(one.after.state, ExecutionState::Ended(_)))),
        )
    });
    let remote = open.iter().filter_map(|entry| {
        let Happened::Remote { name } = &entry.what else { return None };
        let id = remote_id(step.after, name);
        let changes = stories.tasks.get(id.as_str()).map_or(&[][..], Vec::as_slice);
        Some(first_end(changes.iter().map(|one| (one.1, one.2))))
    });
    let remote: Option<Vec<Timestamp>> = remote.collect();
    let end = children.chain(remote.and_then(|ends| ends.into_iter().max())).min()?;
    Some(end.max(step.at))
}

/// The instant since which it has been ended, without interruption.
fn first_end(mut changes: impl DoubleEndedIterator<Item = (Timestamp, bool)>) -> Option<Timestamp> {
    let mut end = None;
    while let Some((at, true)) = changes.next_back() {
        end = Some(at);
    }
    end
}

/// When turns' hints were sent, and when they were received: who receives an earlier hint after a wake does its work.
fn hints(run: &Run) -> BTreeMap<Incarnation, Vec<Timestamp>> {
    let mut sent: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for event in &run.events {
        if let What::Message {
            fate: Fate::Sent(_) | Fate::Received,
            note: Note::Turn { incarnation, .. },
            ..
        } = &event.what
        {
            sent.entry(*incarnation).or_default().push(event.at);
        }
    }
    sent
}
