//! Requests for operations on many records.

use tickover_core::error::Reject;
use tickover_core::failure::recorded_code;
use tickover_service::operations::{Details, EventToSend, OperationRequest, Selection};
use tickover_service::ports::{ExecutionFilter, TaskFilter};
use tickover_wire::request::{self as wire, contradiction};
use tickover_wire::{FailureCode, Instant, Label, Word};

use super::payload;
use super::query::period;

/// The service's request.
pub(crate) fn operation(given: wire::OperationRequest) -> Result<OperationRequest, Reject> {
    let selection = match (given.executions, given.tasks) {
        (Some(executions), None) => of_executions(executions),
        (None, Some(tasks)) => of_tasks(tasks),
        (Some(_), Some(_)) => return Err(contradiction("tasks", "executions")),
        (None, None) => {
            let expected = "required; expected the executions to work on, or tasks instead";
            return Err(Reject::field("executions", expected));
        }
    };
    let event = given.event.map(|event| EventToSend { name: event.name, payload: payload(event.payload) });
    let (Word(action), dry_run) = (given.action, given.dry_run.unwrap_or(false));
    let (total, details) = (given.total, Details { selection, event });
    Ok(OperationRequest { id: given.id, action, dry_run, total, details })
}

fn of_executions(given: wire::ExecutionSelection) -> Selection {
    let filter = ExecutionFilter {
        workflow: given.workflow,
        statuses: words(given.status),
        started_from: given.started_from.map(|Instant(at)| at),
        started_before: given.started_before.map(|Instant(at)| at),
        ended: period(given.ended_from, given.ended_before),
        stuck: false,
        id_prefix: None,
        label: given.label.map(|Label { name, value }| (name, value)),
        error: given.error.map(|FailureCode(code)| recorded_code(code)),
    };
    Selection::Executions { filter, ids: once(given.ids) }
}

fn of_tasks(given: wire::TaskSelection) -> Selection {
    let filter = TaskFilter {
        queue: given.queue,
        statuses: words(given.status),
        kind: given.kind,
        created_from: given.created_from.map(|Instant(at)| at),
        created_before: given.created_before.map(|Instant(at)| at),
        ended: period(given.ended_from, given.ended_before),
        stuck: false,
        id_prefix: None,
        label: given.label.map(|Label { name, value }| (name, value)),
        error: given.error.map(|FailureCode(code)| recorded_code(code)),
    };
    Selection::Tasks { filter, ids: once(given.ids) }
}

fn words<T>(given: Option<Vec<Word<T>>>) -> Vec<T> {
    given.unwrap_or_default().into_iter().map(|Word(word)| word).collect()
}

/// Each id once.
fn once<T: Ord>(given: Option<Vec<T>>) -> Vec<T> {
    let mut ids = given.unwrap_or_default();
    ids.sort_unstable();
    ids.dedup();
    ids
}
