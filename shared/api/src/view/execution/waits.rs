//! The work of a run that has started and hasn't ended.

use std::collections::BTreeMap;

use tickover_core::execution::journal::{Entry, Happened, awaited_event};
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::id::{EventName, StepName};
use tickover_core::natural;
use tickover_core::time::Timestamp;
use tickover_service::callbacks::callback_of;
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
        event: None,
        callback: None,
        task: None,
        execution: None,
        attempt: None,
        until: None,
    }
}

fn until(kind: WaitKind, name: &StepName, until: Timestamp) -> WaitView {
    WaitView { until: Some(until.into()), ..named(kind, name) }
}

fn with_event(wait: WaitView, event: Option<EventName>) -> WaitView {
    let callback = event.as_ref().and_then(callback_of).map(str::to_owned);
    WaitView { event, callback, ..wait }
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
                open.insert(name, with_event(until(WaitKind::Timer, name, *at), awaited_event(name)));
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
    waits.extend(events(execution, waits.is_empty()));
    waits
}

/// The events that it waits for without a timeout: such waits have no journal entry before they end.
fn events(execution: &Execution, is_all: bool) -> Vec<WaitView> {
    let waiting = match &execution.state {
        ExecutionState::Waiting(waiting) => waiting,
        ExecutionState::Pending(_)
        | ExecutionState::Running(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => return vec![],
    };
    let named = waiting.events.iter().map(|event| with_event(of_kind(WaitKind::Event), Some(event.clone())));
    // Older versions of the system wrote no names.
    let is_unnamed = is_all && named.len() == 0 && waiting.until.is_none() && waiting.recheck.is_none();
    let unnamed = (is_unnamed || waiting.has_more_events).then(|| of_kind(WaitKind::Event));
    named.chain(unnamed).collect()
}
