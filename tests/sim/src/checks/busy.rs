//! What must hold of a queue that is never empty: the tick finds a lost hint because younger hints have already been
//! claimed.

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::id::Incarnation;
use tickover_core::task::{State, Task};
use tickover_core::time::Timestamp;

use super::execution::Stories as Executions;
use super::story::Stories;
use crate::Run;
use crate::history::{Fate, Note, What};
use crate::trace::{self, clock};
use crate::violation::{Invariant, Violation};

/// How long it takes at most to find a lost hint.
const FOUND_WITHIN: Millis = Millis::from_secs(15 * 60);
/// The tick that finds it comes up to a minute later, and a reading of a queue's depth is used for as long.
const SLACK: Millis = Millis::from_secs(120);

/// When hints of a record were sent or lost; `true` means lost.
type Sent = BTreeMap<Incarnation, Vec<(Timestamp, bool)>>;

pub(super) fn of_run(stories: &Stories<'_>, executions: &Executions<'_>, run: &Run) -> Vec<Violation> {
    if !run.plan.hardship.is_busy {
        return vec![];
    }
    let sent = sent(run);
    let mut found = Vec::new();
    for steps in stories.tasks() {
        let steps: Vec<_> = steps.iter().filter(|step| !step.is_rearm()).collect();
        let ends = steps.iter().skip(1).map(|step| step.at).chain([run.ended_at]);
        found.extend(steps.iter().zip(ends).filter_map(|(step, until)| {
            let since = waits_since(step.after)?.max(step.at);
            let lost = missed_by(&sent, step.after.incarnation, since, until)?;
            Some(violation(lost, since, &trace::brief(step.after)))
        }));
    }
    for steps in executions.executions() {
        let ends = steps.iter().skip(1).map(|step| step.at).chain([run.ended_at]);
        found.extend(steps.iter().zip(ends).filter_map(|(step, until)| {
            let since = turn_waits_since(step.after)?.max(step.at);
            let lost = missed_by(&sent, step.after.incarnation, since, until)?;
            Some(violation(lost, since, &trace::execution::brief(step.after)))
        }));
    }
    found
}

fn violation(by: Timestamp, since: Timestamp, brief: &str) -> Violation {
    let what =
        format!("{brief}: its hint is lost, and wasn't sent again from {} to {}", clock(since), clock(by));
    Violation::new(Invariant::Timeliness, by, what)
}

/// The instant by which a lost hint should have been found, if it wasn't.
fn missed_by(sent: &Sent, of: Incarnation, since: Timestamp, until: Timestamp) -> Option<Timestamp> {
    let by = since.plus(FOUND_WITHIN).plus(SLACK);
    let last = sent.get(&of)?.iter().rfind(|(at, _)| *at <= by)?;
    (until > by && last.1).then_some(by)
}

/// Since when a task has been waiting for its hint to be received.
fn waits_since(task: &Task) -> Option<Timestamp> {
    // One that waits in a line has none.
    if task.parked.in_line().is_some() {
        return None;
    }
    match &task.state {
        State::Pending(pending) if !pending.hint_later => {
            Some(pending.available_at.max(task.hinted_at.unwrap_or(Timestamp::EPOCH)))
        }
        State::Pending(_) | State::Running(_) | State::Ended(_) => None,
    }
}

/// Since when an execution has been waiting for its turn's hint to be received.
fn turn_waits_since(execution: &Execution) -> Option<Timestamp> {
    if execution.needs_operator() || execution.parked.in_line().is_some() {
        return None;
    }
    let since = match &execution.state {
        ExecutionState::Pending(ready) if !ready.hint_later => ready.available_at,
        ExecutionState::Waiting(waiting)
            if waiting.wake_requested || execution.wakes > waiting.seen_wakes =>
        {
            waiting.since
        }
        ExecutionState::Waiting(waiting) if !waiting.hint_later => waiting.until?,
        ExecutionState::Pending(_)
        | ExecutionState::Waiting(_)
        | ExecutionState::Running(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => return None,
    };
    Some(since.max(execution.hinted_at.unwrap_or(Timestamp::EPOCH)))
}

fn sent(run: &Run) -> Sent {
    let mut sent = Sent::new();
    for event in &run.events {
        let What::Message { fate, note, .. } = &event.what else { continue };
        let of = match note {
            Note::Hint { incarnation, .. } | Note::Turn { incarnation, .. } => *incarnation,
            Note::Timers(_) | Note::Other(_) => continue,
        };
        match fate {
            Fate::Sent(_) => sent.entry(of).or_default().push((event.at, false)),
            Fate::Dropped => sent.entry(of).or_default().push((event.at, true)),
            Fate::Refused
            | Fate::Duplicated(_)
            | Fate::Received
            | Fate::NeverReceived
            | Fate::Shown
            | Fate::Deleted => {}
        }
    }
    sent
}
