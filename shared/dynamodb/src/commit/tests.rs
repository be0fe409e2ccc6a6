use std::collections::BTreeMap;

use serde_json::{Value, json};
use tickover_core::decision::{Condition, Write};
use tickover_core::due::{Due, DueKind};
use tickover_core::execution::Execution;
use tickover_core::id::{Fingerprint, Nonce, TaskId};
use tickover_core::payload::BlobRef;
use tickover_core::queue::KeyRecord;
use tickover_core::record::Record;
use tickover_core::task::Task;
use tickover_core::time::Timestamp;
use tickover_service::ports::{Listed, Store as _, StoreError};

use crate::item::execution::of_execution;
use crate::item::execution::tests::pending as execution;
use crate::item::tests::pending;
use crate::item::{Item, of_task};
use crate::scripted::{Answer, store};

const NONCE: Nonce = Nonce::from_bytes([7; 8]);

fn task() -> Task {
    Task { nonce: NONCE, ..pending() }
}

/// An update that doesn't change the due slot.
fn update(before: &Task) -> Write {
    let after = Task { version: before.version + 1, nonce: Nonce::from_bytes([8; 8]), ..before.clone() };
    Write::replace(before.clone(), after, Condition::UNCHANGED)
}

fn created_with_key() -> Vec<Write> {
    let record = KeyRecord {
        key: Fingerprint::from_bytes([1; 16]),
        owner: TaskId::parse("a").unwrap().into(),
        incarnation: task().incarnation,
        created_at: Timestamp::EPOCH,
        nonce: NONCE,
        expires_at: Timestamp::from_millis(1),
    };
    let created = Write::put(task(), Condition::Free { now: Timestamp::EPOCH });
    vec![Write::put(record, Condition::SameOrAbsent), created]
}

/// An item in the JSON of a request.
fn wire(item: &Item) -> Value {
    fn value(attribute: &aws_sdk_dynamodb::types::AttributeValue) -> Value {
        use aws_sdk_dynamodb::types::AttributeValue as A;
        match attribute {
            A::S(text) => json!({ "S": text }),
            A::N(number) => json!({ "N": number }),
            A::Bool(is) => json!({ "BOOL": is }),
            A::M(map) => {
                let map: BTreeMap<_, _> = map.iter().map(|(name, field)| (name, value(field))).collect();
                json!({ "M": map })
            }
            A::L(list) => json!({ "L": list.iter().map(value).collect::<Vec<_>>() }),
            other => panic!("no item of Tickover has {other:?}"),
        }
    }
    item.iter()
        .map(|(name, attribute)| (name.clone(), value(attribute)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn failed_on(item: &Value) -> Answer {
    Answer::Refused(400, "ConditionalCheckFailedException", json!({ "Item": item }))
}

fn cancelled(reasons: &Value) -> Answer {
    Answer::Refused(400, "TransactionCanceledException", json!({ "CancellationReasons": reasons }))
}

#[tokio::test]
async fn a_failed_condition_is_counted_at_what_it_costs_at_least() {
    let current = Task { nonce: Nonce::from_bytes([9; 8]), version: 5, ..task() };
    let (single, _) = store([failed_on(&wire(&of_task(&current).unwrap()))]);
    let refused = single.commit(&[update(&task())]).await;
    assert!(
        matches!(refused, Err(StoreError::Conflict { current: Some(Record::Task(found)) }) if *found == current)
    );
    let usage = single.usage();
    assert_eq!((usage.requests, usage.failed_conditions), (1, 1));
    assert!((usage.failed_condition_units - 1.0).abs() < f64::EPSILON);

    let reasons = json!([{"Code": "ConditionalCheckFailed"}, {"Code": "None"}]);
    let (transacted, _) = store([cancelled(&reasons)]);
    let refused = transacted.commit(&created_with_key()).await;
    assert!(matches!(refused, Err(StoreError::Conflict { current: None })));
    assert!((transacted.usage().failed_condition_units - 4.0).abs() < f64::EPSILON);
}

#[tokio::test]
async fn a_record_of_another_format_is_refused_loudly() {
    let mut newer = wire(&of_task(&task()).unwrap());
    newer["v"] = json!({"N": "2"});
    newer["st"] = json!({"S": "of which this build knows nothing"});
    let (store, _) = store([failed_on(&newer)]);
    let error = store.commit(&[update(&task())]).await.unwrap_err();
    let StoreError::Corrupt { reason } = error else { panic!("{error}") };
    assert_eq!(reason, "task a is stored in format 2, where this build reads 1");
}

#[tokio::test]
async fn a_transaction_cancelled_by_another_write_is_throttled() {
    for code in ["TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"] {
        let (store, _) = store([cancelled(&json!([{"Code": "None"}, {"Code": code}]))]);
        let refused = store.commit(&created_with_key()).await;
        assert!(matches!(refused, Err(StoreError::Throttled)), "{code}: {refused:?}");
        assert_eq!(store.usage().failed_conditions, 0);
    }
    let (store, _) = store([cancelled(&json!([{"Code": "None"}, {"Code": "ValidationError"}]))]);
    let refused = store.commit(&created_with_key()).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable { reason, .. }) if reason.contains("ValidationError"))
    );
}

#[tokio::test]
async fn one_item_with_our_nonce_shows_that_the_whole_transaction_was_done() {
    let moved_on = wire(&of_task(&Task { nonce: Nonce::from_bytes([9; 8]), ..task() }).unwrap());
    let ours = json!({"pk": {"S": "key#a"}, "non": {"S": NONCE.to_string()}});
    let reason = |item: &Value| json!({"Code": "ConditionalCheckFailed", "Item": item});
    let (store, _) = store([cancelled(&json!([reason(&ours), reason(&moved_on)]))]);
    store.commit(&created_with_key()).await.unwrap();
}

#[tokio::test]
async fn a_write_during_another_write_must_be_repeated_unchanged() {
    let (store, _) = store([Answer::Refused(400, "TransactionConflictException", json!({}))]);
    let refused = store.commit(&[update(&task())]).await;
    assert!(matches!(refused, Err(StoreError::Throttled)));
}

#[tokio::test]
async fn a_repeated_transaction_is_the_same_request() {
    let (store, script) = store([Answer::Lost, Answer::Done(json!({}))]);
    let before = task();
    let mut writes = created_with_key();
    let due = Some(Due { at: Timestamp::from_millis(5), kind: DueKind::Recheck, shard: 1 });
    let after = Task { losses: 3, attempt: 2, due, progress: Some(0.5), ..before.clone() };
    writes[1] = Write::replace(before, after, Condition::UNCHANGED);
    assert!(matches!(store.commit(&writes).await, Err(StoreError::Unavailable { .. })));
    store.commit(&writes).await.unwrap();
    let requests = script.requests();
    assert_eq!(requests[0], requests[1]);
    assert_eq!(requests[0].1["ClientRequestToken"], json!(format!("tickover-{NONCE}")));
}

#[tokio::test]
async fn an_extension_of_a_payload_is_sent_first_and_alone() {
    let (store, script) = store([Answer::Done(json!({}))]);
    let at = BlobRef {
        id: tickover_core::id::BlobId::from_bytes([2; 16]),
        bytes: 1,
        expires_at: Timestamp::from_millis(1_500),
    };
    store.commit(&[update(&task()), Write::extend_blob(&at)]).await.unwrap();
    let requests = script.requests();
    let operations: Vec<&str> = requests.iter().map(|(operation, _)| operation.as_str()).collect();
    assert_eq!(operations, ["UpdateItem", "UpdateItem"]);
    assert_eq!(requests[0].1["UpdateExpression"], json!("SET #ttl = :ttl"));
    assert_eq!(requests[0].1["ConditionExpression"], json!("attribute_exists(#pk) AND #ttl < :ttl"));
    assert_eq!(requests[0].1["ExpressionAttributeValues"], json!({":ttl": {"N": "2"}}));
}

#[tokio::test]
async fn a_wake_follows_the_other_writes_and_a_refused_one_is_no_error() {
    let wake = Write::Wake { id: execution().id, incarnation: execution().incarnation };
    let ended = wire(&of_execution(&execution(), Listed::Failed).unwrap());
    let (woken, script) = store([Answer::Done(json!({})), failed_on(&ended)]);
    woken.commit(&[wake.clone(), update(&task())]).await.unwrap();
    let requests = script.requests();
    let expressions: Vec<_> = requests.iter().map(|(_, body)| body["UpdateExpression"].clone()).collect();
    assert_eq!(expressions, [json!("SET #non = :non, #ver = :ver"), json!("ADD #wak :one")]);

    let (refusing, script) = store([failed_on(&wire(&of_task(&task()).unwrap()))]);
    let current = Task { nonce: Nonce::from_bytes([3; 8]), ..task() };
    let refused = refusing.commit(&[wake.clone(), update(&current)]).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })));
    assert_eq!(script.requests().len(), 1);

    let mut newer = ended;
    newer["v"] = json!({"N": "2"});
    let (unknown, _) = store([failed_on(&newer)]);
    assert!(matches!(unknown.commit(&[wake]).await, Err(StoreError::Corrupt { .. })));
}

#[tokio::test]
async fn a_refused_decision_on_an_execution_comes_with_it() {
    let stored = Execution { version: 9, nonce: NONCE, wakes: 2, ..execution() };
    let (store, _) = store([failed_on(&wire(&of_execution(&stored, Listed::Failed).unwrap()))]);
    let after = Execution { version: 2, nonce: Nonce::from_bytes([8; 8]), ..execution() };
    let update = |nonce| {
        let unchanged = Condition::Unchanged { due_no_later_than: None, wakes: Some(0) };
        Write::replace(execution(), Execution { nonce, ..after.clone() }, unchanged)
    };
    let refused = store.commit(&[update(after.nonce)]).await;
    assert!(
        matches!(refused, Err(StoreError::Conflict { current: Some(Record::Execution(found)) }) if *found == stored)
    );
    // The same decision, whose answer was lost.
    store.commit(&[update(NONCE)]).await.unwrap();
}
