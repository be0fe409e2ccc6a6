//! The work of a run that has started and hasn't ended.

use std::collections::BTreeMap;

use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::id::StepName;
use tickover_core::natural;
use tickover_core::time::Timestamp;
use tickover_service::executions::remote_id;
use tickover_wire::OpenEnum;
use tickover_wire::answer::{WaitKind, WaitView};

use super::attempts::Attempts;

fn named(kind: WaitKind, name: &StepName) -> WaitView {
    WaitView { name: Some(name.clone()), ..of_kind(kind) }
}

const fn of_kind(kind: WaitKind) -> WaitView {
    WaitView {
        kind: OpenEnum::Known(kind),
        name: None,
        task: None,
        execution: None,
        attempt: None,
        until: None,
    }
}

fn until(kind: WaitKind, name: &StepName, until: Timestamp) -> WaitView {
    WaitView { until: Some(until.into()), ..named(kind, name) }
}

fn name(wait: &WaitView) -> &str {
    wait.name.as_ref().map_or("", StepName::as_str)
}

/// What is open according to this journal, sorted by name, numbers within names as numbers.
pub(super) fn of(execution: &Execution, journal: &[Entry], now: Timestamp) -> Vec<WaitView> {
    let mut open: BTreeMap<&StepName, WaitView> = BTreeMap::new();
    let mut attempts = Attempts::default();
    for entry in journal {
        attempts.apply(entry);
        match &entry.what {
            Happened::Remote { name } => {
                let task = Some(remote_id(execution, name));
                open.insert(name, WaitView { task, ..named(WaitKind::Step, name) });
            }
            Happened::Child { name, execution, .. } => {
                let execution = Some(execution.clone());
                open.insert(name, WaitView { execution, ..named(WaitKind::Child, name) });
            }
            Happened::Attempt { name, error: Some(_), next_at: Some(at), .. } => {
                open.insert(name, until(WaitKind::Retry, name, *at));
            }
            // A timer whose instant has passed is over: its execution is about to be woken, or has dropped the timer.
            Happened::Until { name, until: at } if *at > now => {
                open.insert(name, until(WaitKind::Timer, name, *at));
            }
            Happened::Attempt { name, .. }
            | Happened::Step { name, .. }
            | Happened::Reopened { name, .. }
            | Happened::Fired { name }
            | Happened::Waited { name, .. } => {
                open.remove(name);
            }
            Happened::Until { .. }
            | Happened::Captured { .. }
            | Happened::Event { .. }
            | Happened::EventsCleared { .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => {}
        }
    }
    let running = attempts.running(execution).into_iter().map(|running| WaitView {
        attempt: Some(running.attempt),
        until: running.until.map(Into::into),
        ..named(WaitKind::Attempt, running.name)
    });
    let mut waits: Vec<_> = open.into_values().chain(running).collect();
    waits.sort_by(|one, other| natural::compare(name(one), name(other)));
    if waits.is_empty() && waits_without_end(execution) {
        waits.push(of_kind(WaitKind::Event));
    }
    waits
}

/// Whether it waits for an event without a timeout. Such a wait has no journal entry before it ends.
fn waits_without_end(execution: &Execution) -> bool {
    match &execution.state {
        ExecutionState::Waiting(waiting) => waiting.until.is_none() && waiting.recheck.is_none(),
        ExecutionState::Pending(_)
        | ExecutionState::Running(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => false,
    }
}
