//! An operation's view for callers.

use serde::Serialize;
use tickover_core::by::{By, Caller};
use tickover_core::id::{ExecutionId, TaskId};
use tickover_core::operation::{HowEnded, Operation};
use tickover_core::payload::Json;
use tickover_service::operations::{Details, EventToSend, Selection};
use tickover_service::ports::{ExecutionFilter, TaskFilter};

use tickover_wire::answer::{OperationStatus, OperationView};
use tickover_wire::request::{ExecutionSelection, OperationEvent, TaskSelection};
use tickover_wire::{FailureCode, Instant, Label, OpenEnum, Verbatim, Word};

/// The view of an operation, with what was asked for if that is known.
pub fn operation(record: Operation, details: Option<Details>) -> OperationView {
    let (selection, event) = match details {
        Some(Details { selection, event }) => (Some(selection), event),
        None => (None, None),
    };
    let listed = match &selection {
        Some(Selection::Executions { ids, .. }) => ids.len(),
        Some(Selection::Tasks { ids, .. }) => ids.len(),
        None => 0,
    };
    let total = u64::try_from(listed).ok().filter(|listed| *listed > 0).or(record.total);
    let (executions, tasks) = match selection {
        Some(Selection::Executions { filter, ids }) => (verbatim(&of_executions(filter, ids)), None),
        Some(Selection::Tasks { filter, ids }) => (None, verbatim(&of_tasks(filter, ids))),
        None => (None, None),
    };
    let caller = |caller: &Caller| super::by(&By::caller(caller.clone()));
    let by = By { caller: record.by.clone(), page: None, reason: record.reason.clone() };
    let by = (by != By::default()).then(|| super::by(&by));
    let (status, message) = match record.end.as_ref().map(|end| &end.how) {
        None if record.stop.is_some() => (OperationStatus::Stopping, None),
        None => (OperationStatus::Running, None),
        Some(HowEnded::Completed) => (OperationStatus::Completed, None),
        Some(HowEnded::Stopped) => (OperationStatus::Stopped, None),
        Some(HowEnded::Failed { message }) => (OperationStatus::Failed, Some(message.clone())),
    };
    OperationView {
        action: OpenEnum::Known(record.action),
        dry_run: record.dry_run,
        status: status.into(),
        created_at: record.created_at.into(),
        by,
        stopped_by: record.stop.as_ref().and_then(|stop| stop.by.as_ref()).map(caller),
        ended_at: record.end.as_ref().map(|end| Instant(end.at)),
        expires_at: record.expires_at().map(Instant),
        total,
        matched: record.counts.matched,
        changed: record.counts.changed,
        unchanged: record.counts.unchanged,
        refused: record.counts.refused,
        message,
        executions,
        tasks,
        event: event.and_then(|event| verbatim(&of_event(event))),
        id: record.id,
    }
}

fn of_executions(filter: ExecutionFilter, ids: Vec<ExecutionId>) -> ExecutionSelection {
    let ExecutionFilter {
        workflow,
        statuses,
        started_from,
        started_before,
        ended,
        stuck: _,
        id_prefix: _,
        label,
        error,
    } = filter;
    ExecutionSelection {
        ids: some(ids),
        workflow,
        status: some(statuses.into_iter().map(Word).collect()),
        label: label.map(|(name, value)| Label { name, value }),
        error: error.map(FailureCode),
        started_from: started_from.map(Instant),
        started_before: started_before.map(Instant),
        ended_from: ended.from.map(Instant),
        ended_before: ended.before.map(Instant),
    }
}

fn of_tasks(filter: TaskFilter, ids: Vec<TaskId>) -> TaskSelection {
    let TaskFilter {
        queue,
        statuses,
        kind,
        created_from,
        created_before,
        ended,
        stuck: _,
        id_prefix: _,
        label,
        error,
    } = filter;
    TaskSelection {
        ids: some(ids),
        queue,
        kind,
        status: some(statuses.into_iter().map(Word).collect()),
        label: label.map(|(name, value)| Label { name, value }),
        error: error.map(FailureCode),
        created_from: created_from.map(Instant),
        created_before: created_before.map(Instant),
        ended_from: ended.from.map(Instant),
        ended_before: ended.before.map(Instant),
    }
}

fn of_event(EventToSend { name, payload }: EventToSend) -> OperationEvent {
    OperationEvent { name, payload: payload.map(Verbatim) }
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn verbatim(value: &impl Serialize) -> Option<Verbatim> {
    Json::parse(serde_json::to_string(value).ok()?).map(Verbatim)
}
