//! What a run has begun that isn't over.

use std::collections::BTreeMap;

use serde::Serialize;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::id::StepName;
use tickover_core::natural;
use tickover_core::time::Timestamp;
use tickover_service::executions::remote_id;
use utoipa::ToSchema;

use super::attempts::Attempts;

/// The kind of a wait for an event without a time limit.
pub(super) const EVENT: &str = "event";

/// Something begun that isn't over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct WaitView {
    /// `step`, a remote one; `child`; `timer`, of a sleep or of a wait with a timeout; `attempt`, of a step in place
    /// that was written down before it began (`at_most_once`, `durable_timeout`) and runs; `retry`, a step's next
    /// attempt; or `event`, where nothing else is waited for.
    #[schema(value_type = String)]
    pub kind: &'static str,
    /// Its name in the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// `step`: the task that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub task: Option<String>,
    /// `child`: the execution that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub execution: Option<String>,
    /// `attempt`: its number. One that was lost with its worker counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub attempt: Option<u32>,
    /// `timer`, `retry`: until when. `attempt`: when its time is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub until: Option<String>,
}

impl WaitView {
    fn named(kind: &'static str, name: &StepName) -> Self {
        Self { name: Some(name.to_string()), ..Self::of_kind(kind) }
    }

    const fn of_kind(kind: &'static str) -> Self {
        Self { kind, name: None, task: None, execution: None, attempt: None, until: None }
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    fn until(kind: &'static str, name: &StepName, until: Timestamp) -> Self {
        Self { until: Some(until.to_rfc3339()), ..Self::named(kind, name) }
    }
}

/// What is open by this journal, in the order of the names, and of the numbers within them.
pub(super) fn of(execution: &Execution, journal: &[Entry], now: Timestamp) -> Vec<WaitView> {
    let mut open: BTreeMap<&StepName, WaitView> = BTreeMap::new();
    let mut attempts = Attempts::default();
    for entry in journal {
        attempts.note(entry);
        match &entry.what {
            Happened::Remote { name } => {
                let task = Some(remote_id(execution, name).to_string());
                open.insert(name, WaitView { task, ..WaitView::named("step", name) });
            }
            Happened::Child { name, execution, .. } => {
                let execution = Some(execution.to_string());
                open.insert(name, WaitView { execution, ..WaitView::named("child", name) });
            }
            Happened::Attempt { name, error: Some(_), next_at: Some(at), .. } => {
                open.insert(name, WaitView::until("retry", name, *at));
            }
            // One whose instant has passed is over: its execution is about to hear of it, or has dropped it.
            Happened::Until { name, until } if *until > now => {
                open.insert(name, WaitView::until("timer", name, *until));
            }
            Happened::Attempt { name, .. }
            | Happened::Step { name, .. }
            | Happened::Reopened { name }
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
        until: running.until.map(Timestamp::to_rfc3339),
        ..WaitView::named("attempt", running.name)
    });
    let mut waits: Vec<_> = open.into_values().chain(running).collect();
    waits.sort_by(|one, other| natural::compare(one.name(), other.name()));
    if waits.is_empty() && waits_without_end(execution) {
        waits.push(WaitView::of_kind(EVENT));
    }
    waits
}

/// A wait without a timeout leaves no entry before it is over.
fn waits_without_end(execution: &Execution) -> bool {
    match &execution.state {
        ExecutionState::Waiting(waiting) => waiting.until.is_none() && waiting.recheck.is_none(),
        ExecutionState::Pending(_)
        | ExecutionState::Running(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => false,
    }
}
