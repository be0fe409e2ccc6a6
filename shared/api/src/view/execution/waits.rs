//! What a run has begun that isn't over.

use std::collections::BTreeMap;

use serde::Serialize;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::id::StepName;
use tickover_core::time::Timestamp;
use tickover_service::executions::remote_id;
use utoipa::ToSchema;

/// The kind of a wait for an event without a time limit.
pub(super) const EVENT: &str = "event";

/// Something begun that isn't over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct WaitView {
    /// `step`, a remote one; `child`; `timer`, of a sleep or of a wait with a timeout; `retry`, a step's next
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
    /// `timer`, `retry`: until when.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub until: Option<String>,
}

impl WaitView {
    fn named(kind: &'static str, name: &StepName) -> Self {
        Self { kind, name: Some(name.to_string()), task: None, execution: None, until: None }
    }

    fn until(kind: &'static str, name: &StepName, until: Timestamp) -> Self {
        Self { until: Some(until.to_rfc3339()), ..Self::named(kind, name) }
    }
}

/// What is open by this journal, in the order of the names.
pub(super) fn of(execution: &Execution, journal: &[Entry], now: Timestamp) -> Vec<WaitView> {
    let mut open: BTreeMap<&StepName, WaitView> = BTreeMap::new();
    for entry in journal {
        match &entry.what {
            Happened::Remote { name } => {
                let task = Some(remote_id(execution, name).to_string());
                open.insert(name, WaitView { task, ..WaitView::named("step", name) });
            }
            Happened::Child { name, execution, .. } => {
                let execution = Some(execution.to_string());
                open.insert(name, WaitView { execution, ..WaitView::named("child", name) });
            }
            Happened::Attempt { name, next_at: Some(at), .. } => {
                open.insert(name, WaitView::until("retry", name, *at));
            }
            // One whose instant has passed is over: its execution is about to hear of it, or has dropped it.
            Happened::Until { name, until } if *until > now => {
                open.insert(name, WaitView::until("timer", name, *until));
            }
            Happened::Attempt { name, next_at: None, .. }
            | Happened::Step { name, .. }
            | Happened::Reopened { name }
            | Happened::Fired { name }
            | Happened::Waited { name, .. } => {
                open.remove(name);
            }
            Happened::Until { .. }
            | Happened::Captured { .. }
            | Happened::Event { .. }
            | Happened::Drained { .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => {}
        }
    }
    let mut waits: Vec<_> = open.into_values().collect();
    if waits.is_empty() && waits_without_end(execution) {
        waits.push(WaitView { kind: EVENT, name: None, task: None, execution: None, until: None });
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
