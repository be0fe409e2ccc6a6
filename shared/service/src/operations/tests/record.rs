//! The record: ids, repeated requests, lists, retention, and what is refused.

use tickover_core::id::RecordId;
use tickover_core::payload::Payload;

use super::*;
use crate::memory::store::Item;

fn is_taken(reject: &Reject) -> bool {
    matches!(reject, Reject::IdConflict { by: tickover_core::error::TakenBy::Operation, .. })
}

fn dry(called: &str) -> OperationRequest {
    let id = Some(operation_id(called));
    OperationRequest { id, dry_run: true, ..asked(Action::Retry, all_orders()) }
}

#[tokio::test]
async fn the_same_request_finds_its_operation_and_another_one_is_refused() {
    let scene = Scene::failed_executions(&names(2)).await;
    let first = scene.service.start_operation(asked(Action::Retry, all_orders())).await.unwrap();
    let again = scene.service.start_operation(asked(Action::Retry, all_orders())).await.unwrap();
    assert_eq!((first.existing, again.existing, &again.operation), (false, true, &first.operation));
    assert_eq!(again.details, first.details);
    let others = [
        asked(Action::Restart, all_orders()),
        OperationRequest { dry_run: true, ..asked(Action::Retry, all_orders()) },
        asked(Action::Retry, these_executions(&["r0000"])),
        asked(Action::Retry, all_jobs()),
    ];
    for other in others {
        assert!(is_taken(&refused(scene.service.start_operation(other).await)));
    }
    scene.carry_out(asked(Action::Retry, all_orders())).await;
    assert_eq!(scene.runs(&names(2), 2).await, 4);
}

#[tokio::test]
async fn without_an_id_each_request_is_an_operation_of_its_own() {
    let scene = Scene::failed_executions(&names(1)).await;
    let one = scene.begin(OperationRequest { id: None, ..dry("x") }).await;
    let other = scene.begin(OperationRequest { id: None, ..dry("x") }).await;
    assert_ne!(one.id, other.id);
    assert_eq!(one.id.as_str().len(), 32);
}

#[tokio::test]
async fn an_id_is_free_again_after_the_retention_of_its_operation() {
    let scene = Scene::failed_executions(&names(2)).await;
    let first = scene.carry_out(asked(Action::Retry, all_orders())).await;
    assert_eq!(scene.fail_turns().await, 2);
    scene.advance(7 * 86_400 - 1);
    let conflict = scene.service.start_operation(asked(Action::Cancel, all_orders())).await;
    assert!(is_taken(&refused(conflict)));
    scene.advance(2);
    // The store may delete it late.
    assert_eq!(refused(scene.service.operation(&first.id).await), Reject::NoOperation);
    assert_eq!(scene.service.operations(10, None).await.unwrap().items, []);
    assert_eq!(refused(scene.service.stop_operation(&first.id).await), Reject::NoOperation);
    let second = scene.carry_out(asked(Action::Retry, all_orders())).await;
    assert!(second.version > first.version && second.created_at > first.created_at);
    assert_eq!(scene.runs(&names(2), 3).await, 6);
    scene.advance(8 * 86_400);
    scene.delete_expired();
    let left = scene.memory.expiries();
    assert!(!left.iter().any(|(item, _)| matches!(item, Item::Record(RecordId::Operation(_)))), "{left:?}");
}

#[tokio::test]
async fn operations_are_listed_latest_first() {
    let scene = Scene::failed_executions(&names(1)).await;
    for called in ["a", "b", "c", "d", "e"] {
        scene.begin(dry(called)).await;
        scene.advance(1);
    }
    let (mut found, mut cursor) = (vec![], None);
    loop {
        let page = scene.service.operations(2, cursor.as_deref()).await.unwrap();
        found.extend(page.items.iter().map(|one| one.id.to_string()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, ["e", "d", "c", "b", "a"]);
}

#[tokio::test]
async fn an_operation_says_what_it_is_for_though_that_is_in_an_item_of_its_own() {
    let scene = Scene::failed_executions(&names(3)).await;
    let listed: Vec<String> = (0..IDS_MAX).map(name_of).collect();
    let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
    let request = asked(Action::Retry, these_executions(&listed));
    let operation = scene.carry_out(request.clone()).await;
    assert!(matches!(operation.details, Payload::Blob(_)));
    assert_eq!(operation.counts, counts(3, 3, 0, &[("not_found", 997)]));
    assert_eq!((operation.pages, scene.runs(&names(3), 2).await), (10, 6));
    assert_eq!(scene.service.operation(&operation.id).await.unwrap().details, request.details);
    // As long as the record.
    scene.advance(7 * 86_400 - 60);
    scene.delete_expired();
    assert_eq!(scene.service.operation(&operation.id).await.unwrap().details, request.details);
    scene.advance(400 * 86_400);
    scene.delete_expired();
    let left = scene.memory.expiries();
    assert!(
        !left.iter().any(|(item, _)| matches!(item, Item::Record(RecordId::Operation(_)) | Item::Blob(_))),
        "{left:?}"
    );
}

#[tokio::test]
async fn what_can_not_be_carried_out_is_refused() {
    let scene = Scene::new();
    let too_many: Vec<String> = (0..=IDS_MAX).map(name_of).collect();
    let too_many: Vec<&str> = too_many.iter().map(String::as_str).collect();
    let everything = Selection::Executions { filter: ExecutionFilter::default(), ids: vec![] };
    let all_tasks = Selection::Tasks { filter: TaskFilter::default(), ids: vec![] };
    let failed = ExecutionFilter { statuses: vec![ExecutionStatus::Failed], ..ExecutionFilter::default() };
    let labelled = Some(("team".to_owned(), "a".to_owned()));
    let labelled = ExecutionFilter { label: labelled, ..ExecutionFilter::default() };
    let of_all_workflows = Selection::Executions { filter: labelled, ids: vec![] };
    let failed = ExecutionFilter { workflow: Some(orders()), ..failed };
    let failed = Selection::Executions { filter: failed, ids: vec![] };
    let done = TaskFilter { statuses: vec![Status::Completed], ..TaskFilter::default() };
    let done = Selection::Tasks { filter: done, ids: vec![] };
    // A store without an index would have to read the whole table for them.
    let cancelled = TaskFilter { statuses: vec![Status::Cancelled], ..TaskFilter::default() };
    let cancelled = Selection::Tasks { filter: cancelled, ids: vec![] };
    let event = asked(Action::SendEvent, all_orders());
    let without_event = Details { event: None, ..event.details.clone() };
    let with_event = Details { selection: all_orders(), ..event.details.clone() };
    let cases = [
        (asked(Action::Retry, these_executions(&too_many)), "ids"),
        (asked(Action::Retry, everything), "executions"),
        (asked(Action::Retry, all_tasks), "tasks"),
        (asked(Action::Cancel, of_all_workflows), "executions.workflow"),
        (asked(Action::Cancel, failed), "executions.status"),
        (asked(Action::Retry, done), "tasks.status"),
        (asked(Action::Retry, cancelled), "tasks.status"),
        (asked(Action::Restart, all_jobs()), "action"),
        (OperationRequest { details: without_event, ..event }, "event"),
        (OperationRequest { details: with_event, ..asked(Action::Retry, all_orders()) }, "event"),
    ];
    for (request, field) in cases {
        let text = format!("{:?}", refused(scene.service.start_operation(request).await));
        assert!(text.contains(&format!("\"{field}\"")), "{field}: {text}");
    }
    assert_eq!(scene.writes(), 0);
}
