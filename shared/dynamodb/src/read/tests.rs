use serde_json::json;
use tickover_core::id::{RecordId, TaskId};
use tickover_service::ports::{Store as _, StoreError};

use super::*;
use crate::scripted::{Answer, store};

fn ids(names: &[&str]) -> Vec<RecordId> {
    names.iter().map(|name| TaskId::parse(*name).unwrap().into()).collect()
}

fn left(names: &[&str]) -> serde_json::Value {
    let key = |name: &&str| json!({"pk": {"S": format!("task#{name}")}, "sk": {"S": "task"}});
    json!({"tasks": {"Keys": names.iter().map(key).collect::<Vec<_>>(), "ConsistentRead": true}})
}

#[tokio::test]
async fn keys_left_out_of_a_batch_are_requested_again() {
    let (store, script) = store([
        Answer::Done(json!({"Responses": {"tasks": []}, "UnprocessedKeys": left(&["b"])})),
        Answer::Done(json!({"Responses": {"tasks": []}, "UnprocessedKeys": {}})),
    ]);
    assert_eq!(store.records(&ids(&["a", "b", "a"])).await.unwrap(), []);
    let requests = script.requests();
    let keys = |at: usize| requests[at].1["RequestItems"]["tasks"]["Keys"].as_array().unwrap().len();
    assert_eq!((requests.len(), keys(0), keys(1)), (2, 2, 1));
    assert_eq!(requests[1].1["RequestItems"], left(&["b"]));
}

#[tokio::test]
async fn a_batch_that_gets_nowhere_is_throttled() {
    let (store, script) = store([Answer::Done(json!({"Responses": {}, "UnprocessedKeys": left(&["a"])}))]);
    assert!(matches!(store.records(&ids(&["a"])).await, Err(StoreError::Throttled)));
    assert_eq!(script.requests().len(), FRUITLESS_MAX as usize + 1);
}

#[tokio::test]
async fn a_payload_is_looked_for_cheaply_first() {
    let (store, script) = store([Answer::Done(json!({}))]);
    let id = tickover_core::id::BlobId::from_bytes([1; 16]);
    assert_eq!(store.blob(&id).await.unwrap(), None);
    let consistent: Vec<_> =
        script.requests().iter().map(|(_, body)| body["ConsistentRead"].as_bool()).collect();
    assert_eq!(consistent, [Some(false), Some(true)]);
}

#[tokio::test]
async fn refusals_are_told_apart_by_their_codes() {
    let id = TaskId::parse("a").unwrap().into();
    for code in ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"] {
        let (store, _) = store([Answer::Refused(400, code, json!({}))]);
        assert!(matches!(store.record(&id, Consistency::Strong).await, Err(StoreError::Throttled)), "{code}");
    }
    for (status, code, says) in [
        (400, "ResourceNotFoundException", "correct TICKOVER_TABLE"),
        (400, "AccessDeniedException", "role may not do this"),
        (400, "ValidationException", "ValidationException: why"),
        (500, "InternalServerError", "InternalServerError"),
    ] {
        let (store, _) = store([Answer::Refused(status, code, json!({"message": "why"}))]);
        let error = store.record(&id, Consistency::Strong).await.unwrap_err();
        assert!(matches!(&error, StoreError::Unavailable { reason, .. } if reason.contains(says)), "{error}");
    }
    let (store, _) = store([Answer::Lost]);
    assert!(matches!(store.record(&id, Consistency::Strong).await, Err(StoreError::Unavailable { .. })));
}

#[tokio::test]
async fn an_invalid_cursor_costs_no_request() {
    let (store, script) = store([Answer::Done(json!({}))]);
    let refused = store.list(tickover_service::ports::Listing::Dead, 10, Some("x")).await;
    assert!(matches!(refused, Err(StoreError::BadCursor)));
    assert_eq!(script.requests(), []);
}
