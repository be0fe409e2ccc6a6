//! What an operation on many records costs beside the calls that it makes, by the `ConsumedCapacity` of the database in this process.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![expect(clippy::float_cmp, reason = "whole and half units are exact")]

use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionOutcome;
use tickover_core::execution::command::{Cleanup, Close, Ending};
use tickover_core::id::{ExecutionId, OperationId, QueueName, WorkflowName};
use tickover_core::operation::{Action, Operation};
use tickover_core::task::Failure;
use tickover_service::claim::ClaimRequest;
use tickover_service::executions::{StartRequest, Work};
use tickover_service::operations::{Details, OperationRequest, Selection};
use tickover_service::ports::{Clock as _, ExecutionFilter, Queue as _};
use tickover_tests::meter::{Bill, Meter};

/// Failed executions: three pages.
const FAILED: usize = 250;
/// What the record of an operation costs besides one write unit for each page: at its start, the item and its entries in
/// the index of due records and in the list of operations; at its end, the deletion of the entry in the due index.
const RECORD: f64 = 3.0 + 1.0;

fn queue() -> QueueName {
    QueueName::parse("work").unwrap()
}

fn workflow() -> WorkflowName {
    WorkflowName::parse("orders").unwrap()
}

fn name(number: usize) -> ExecutionId {
    ExecutionId::parse(format!("e-{number:03}")).unwrap()
}

/// Executions that have failed.
async fn failed() -> Meter {
    let meter = Meter::new().await.unwrap();
    let service = &meter.scene.service;
    for number in 0..FAILED {
        let request = StartRequest { id: Some(name(number)), ..StartRequest::new(workflow(), queue()) };
        service.start(request).await.unwrap();
        let request = ClaimRequest {
            worker: None,
            max: 1,
            lease: Millis::from_secs(60),
            wait: Millis::ZERO,
            provides: vec![],
        };
        let Some(Work::Turn(turn)) = service.next_work(&queue(), &request).await.unwrap().pop() else {
            panic!("no turn of {number}")
        };
        let error = Failure::new("declined", "no");
        let outcome = ExecutionOutcome::Failed { error, step: None, retries_exhausted: true };
        let ending = Ending::Outcome(outcome);
        let close =
            Close { lease: turn.lease, entries: vec![], ending, cleanup: Cleanup::default(), values: None };
        service.close_turn(&turn.execution, close).await.unwrap();
        service.done_with(&queue(), turn.receipt.as_deref().unwrap()).await;
    }
    meter.scene.clock.advance(Millis::from_secs(1));
    meter
}

fn asked(id: &str, action: Action, dry_run: bool, ids: Vec<ExecutionId>) -> OperationRequest {
    let workflow = ids.is_empty().then(workflow);
    let selection =
        Selection::Executions { filter: ExecutionFilter { workflow, ..ExecutionFilter::default() }, ids };
    let id = Some(OperationId::parse(id).unwrap());
    OperationRequest { id, action, dry_run, total: None, details: Details { selection, event: None } }
}

/// Carries an operation out to its end.
async fn carried_out(meter: &Meter, request: OperationRequest) -> (Operation, Bill) {
    let service = &meter.scene.service;
    let (id, all) = (request.id.clone().unwrap(), Millis::from_secs(600));
    let call = async {
        service.start_operation(request).await.unwrap();
        let timers = QueueName::timers();
        while let Some(message) =
            meter.scene.queue.receive(&timers, 1, all, Millis::ZERO).await.unwrap().pop()
        {
            service.fire(&message, meter.scene.clock.now().plus(all)).await.unwrap();
            meter.scene.queue.delete(&timers, &message.receipt).await.unwrap();
        }
    };
    let ((), bill) = meter.bill(call).await;
    (service.operation(&id).await.unwrap().operation, bill)
}

/// What it costs to retry all by calls of their own.
async fn one_by_one() -> f64 {
    let meter = failed().await;
    let mut writes = 0.0;
    for number in 0..FAILED {
        let (answer, bill) = meter.bill(meter.scene.service.rerun(&name(number), &[], true)).await;
        assert_eq!(answer.unwrap().run, 2);
        writes += bill.writes;
    }
    writes
}

#[tokio::test]
async fn retrying_many_costs_a_write_unit_for_a_hundred_more_than_retrying_each() {
    let alone = one_by_one().await;
    let meter = failed().await;
    let (operation, bill) = carried_out(&meter, asked("all", Action::Retry, false, vec![])).await;
    assert_eq!((operation.counts.changed, operation.is_over()), (250, true));
    assert_eq!(operation.pages, 3);
    // The last page is written with the end.
    assert_eq!(bill.writes, alone + 3.0 + RECORD, "alone {alone}");
    // Its message, and those of the executions.
    assert_eq!(bill.sends, 1 + FAILED as u64);
}

#[tokio::test]
async fn listed_ids_cost_the_write_of_their_list_besides() {
    let alone = one_by_one().await;
    let meter = failed().await;
    let ids: Vec<_> = (0..FAILED).map(name).collect();
    let text = serde_json::to_string(&asked("all", Action::Retry, false, ids.clone()).details).unwrap();
    let (operation, bill) = carried_out(&meter, asked("all", Action::Retry, false, ids)).await;
    assert_eq!((operation.counts.changed, operation.pages), (250, 3));
    let list = bill.writes - alone - 3.0 - RECORD;
    let kilobytes = f64::from(u32::try_from(text.len().div_ceil(1_024)).unwrap());
    assert!(list > 0.0 && list <= kilobytes + 1.0, "{list} for {kilobytes} KB");
}

#[tokio::test]
async fn a_dry_run_costs_only_its_record() {
    let meter = failed().await;
    let (operation, bill) = carried_out(&meter, asked("all", Action::Retry, true, vec![])).await;
    assert_eq!((operation.counts.matched, operation.counts.changed), (250, 0));
    assert_eq!((bill.writes, bill.sends), (3.0 + RECORD, 1));
}
