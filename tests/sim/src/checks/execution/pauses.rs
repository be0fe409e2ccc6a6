//! What must hold of the remote steps of a paused execution: none that waits ends by a timeout of its own, and after the
//! pause none has the time from before it.

use std::collections::HashMap;

use tickover_core::execution::command::Command;
use tickover_core::execution::journal::{Entry, Happened, open_steps};
use tickover_core::id::{Nonce, TaskId};
use tickover_core::task::{Outcome, State, Task};
use tickover_core::time::Timestamp;
use tickover_service::executions::remote_id;

use super::story::{Step, Stories};
use crate::Run;
use crate::history::{Event, Fault, Stored, What};
use crate::trace::brief;
use crate::violation::{Invariant, Violation};

pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let (mut calls, mut began) = (HashMap::new(), HashMap::<Nonce, usize>::new());
    let mut violations = Vec::new();
    for (number, event) in run.events.iter().enumerate() {
        match &event.what {
            What::Called { call, .. } => drop(calls.insert(*call, number)),
            What::Decided(decided) => {
                began.extend(calls.get(&decided.call).map(|call| (decided.nonce, *call)));
            }
            What::Stored(stored) if times_out_while_it_waits(stored) => {
                let since = began.get(&stored.after.nonce);
                if since.is_some_and(|since| is_paused(stories, stored, *since, number)) {
                    let what = format!("{}: it timed out, and its execution is paused", brief(&stored.after));
                    violations.push(Violation::new(Invariant::Policies, event.at, what));
                }
            }
            What::Stored(_)
            | What::OfExecution(_)
            | What::Answered { .. }
            | What::Message { .. }
            | What::Fault(_) => {}
        }
    }
    violations.extend(old_times(stories, run, &calls));
    violations
}

fn times_out_while_it_waits(Stored { before, after }: &Stored) -> bool {
    let waited = before.as_ref().is_some_and(|before| matches!(before.state, State::Pending(_)));
    let outcome = after.ended().map(|ended| &ended.outcome);
    // What an operator has started again goes on in a pause.
    waited
        && after.revived_at.is_none()
        && matches!(outcome, Some(Outcome::TimedOut { .. } | Outcome::Cancelled { timeout: Some(_) }))
}

/// Whether its execution waited for it and was paused from the beginning of the call until now.
fn is_paused(stories: &Stories<'_>, stored: &Stored, since: usize, now: usize) -> bool {
    let Some(parent) = &stored.after.parent else { return false };
    let steps = stories.execution(parent.incarnation);
    let (earlier, later) = steps.split_at(steps.partition_point(|step| step.number < since));
    let meanwhile = later.iter().take_while(|step| step.number < now);
    let mut seen = earlier.last().into_iter().chain(meanwhile);
    !earlier.is_empty() && seen.all(|step| step.after.paused && parent.is_open_in(Some(step.after)))
}

/// The steps that waited throughout a pause, and at its end have their time from before it.
fn old_times(stories: &Stories<'_>, run: &Run, calls: &HashMap<u64, usize>) -> Vec<Violation> {
    let mut tasks: HashMap<&TaskId, Vec<(usize, &Task)>> = HashMap::new();
    for (number, event) in run.events.iter().enumerate() {
        if let What::Stored(stored) = &event.what {
            tasks.entry(&stored.after.id).or_default().push((number, &stored.after));
        }
    }
    let mut violations = Vec::new();
    for (pause, resume) in pauses(stories, run, calls) {
        for id in open_remote(pause) {
            let story = tasks.get(&id).map_or(&[][..], Vec::as_slice);
            let since = story.partition_point(|(number, _)| *number < pause.number).saturating_sub(1);
            let meanwhile = story[since..].iter().take_while(|(number, _)| *number < resume.number);
            let waits: Option<Vec<_>> = meanwhile.map(|(_, task)| time(task)).collect();
            let (Some(waits), Some((_, task))) = (waits, story.get(since)) else { continue };
            let (Some(first), Some(last)) = (waits.first(), waits.last()) else { continue };
            if first.iter().zip(last).any(|(before, now)| before.is_some() && before == now) {
                let what = format!("{}: it has its time from before a pause", brief(task));
                violations.push(Violation::new(Invariant::Policies, resume.at, what));
            }
        }
    }
    violations
}

/// The instants that end the wait of a task, if it waits.
fn time(task: &Task) -> Option<[Option<Timestamp>; 2]> {
    match &task.state {
        State::Pending(pending) => Some([task.deadline_at, pending.schedule_to_start_at]),
        State::Running(_) | State::Ended(_) => None,
    }
}

/// The writes that began and ended each pause. The call that ended it began within it, and could read all records.
fn pauses<'a>(
    stories: &'a Stories<'a>,
    run: &Run,
    calls: &HashMap<u64, usize>,
) -> Vec<(&'a Step<'a>, &'a Step<'a>)> {
    let can_read = |event: &Event| !matches!(event.what, What::Fault(Fault::TooNew));
    let mut pauses = Vec::new();
    for steps in stories.executions() {
        let mut pause: Option<&Step<'_>> = None;
        for step in steps {
            let was_paused = step.before.is_some_and(|before| before.paused);
            match (was_paused, step.after.paused, pause) {
                (false, true, _) => pause = Some(step),
                (true, false, Some(begun)) => {
                    let resume = step.ruling.filter(|ruling| matches!(ruling.command, Command::Resume));
                    let call = resume.and_then(|ruling| calls.get(&ruling.call));
                    let is_within = call.is_some_and(|call| {
                        *call > begun.number && run.events[*call..step.number].iter().all(can_read)
                    });
                    if is_within && begun.after.run == step.after.run {
                        pauses.push((begun, step));
                    }
                }
                (false, false, _) | (true, true, _) | (true, false, None) => {}
            }
        }
    }
    pauses
}

/// The tasks of the remote steps that the journal had as open.
fn open_remote(step: &Step<'_>) -> Vec<TaskId> {
    let journal: Vec<Entry> = step.journal.iter().flatten().copied().cloned().collect();
    let mut tasks = Vec::new();
    for entry in open_steps(&journal) {
        if let Happened::Remote { name } = &entry.what {
            tasks.push(remote_id(step.after, name));
        }
    }
    tasks
}
