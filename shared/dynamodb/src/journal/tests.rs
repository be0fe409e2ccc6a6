use serde_json::{Value, json};
use tickover_core::decision::{Expiring, Write};
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::id::Nonce;
use tickover_service::ports::Store as _;

use super::*;
use crate::scripted::{Answer, store};

const INCARNATION: Incarnation = Incarnation::from_bytes([1; 8]);

fn id() -> ExecutionId {
    ExecutionId::parse("e").unwrap()
}

fn sk(number: u32) -> Value {
    json!({ "S": format!("seg#{INCARNATION}#00000001#{number:06}#{}", Nonce::from_bytes([2; 8])) })
}

fn item(number: u32, body: &str) -> Value {
    json!({"pk": {"S": "exec#e"}, "sk": sk(number), "v": {"N": "1"}, "body": {"S": body}})
}

#[tokio::test]
async fn a_segment_is_one_text_with_an_end() {
    let (store, script) = store([Answer::Done(json!({}))]);
    let mark = Nonce::from_bytes([2; 8]);
    let key = SegmentKey { incarnation: INCARNATION, run: 1, number: 3, mark };
    let what = Happened::Note { kind: "paused".to_owned(), name: None, by: None };
    let segment =
        Segment { before: Some(mark), entries: vec![Entry { at: Timestamp::EPOCH, what }], end: None };
    store.put_segment(&id(), &key, &segment, Timestamp::from_millis(1_500)).await.unwrap();
    let (operation, body) = &script.requests()[0];
    assert_eq!(operation, "PutItem");
    let text = r#"{"p":"AgICAgICAgI","e":[{"t":0,"m":{"k":"paused"}}]}"#;
    let mut expected = item(3, text);
    expected["ttl"] = json!({"N": "2"});
    assert_eq!(body["Item"], expected);
}

#[tokio::test]
async fn a_run_is_one_query_whose_further_pages_are_asked_for() {
    let first =
        json!({"Items": [item(1, r#"{"e":[]}"#)], "LastEvaluatedKey": {"pk": {"S": "exec#e"}, "sk": sk(1)}});
    let second = json!({"Items": [item(2, r#"{"e":[]}"#)]});
    let (store, script) = store([Answer::Done(first), Answer::Done(second)]);
    let read = store.segments(&id(), INCARNATION, 1, 0).await.unwrap();
    assert_eq!(read.iter().map(|(key, _)| key.number).collect::<Vec<_>>(), [1, 2]);
    let requests = script.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].1["ConsistentRead"], json!(true));
    assert_eq!(requests[1].1["ExclusiveStartKey"]["sk"], sk(1));
}

#[tokio::test]
async fn an_unreadable_segment_is_refused_without_showing_its_content() {
    let newer = json!({"pk": {"S": "exec#e"}, "sk": sk(1), "v": {"N": "2"}, "body": {"S": "{}"}});
    for (item, says) in [
        (newer, "segment 1 of run 1 of execution e is stored in format 2, where this build reads 1"),
        (item(1, r#"{"e":"secret"}"#), "segment 1 of run 1 of execution e isn't of its own format"),
    ] {
        let (store, _) = store([Answer::Done(json!({ "Items": [item] }))]);
        let refused = store.segments(&id(), INCARNATION, 1, 0).await;
        assert!(matches!(&refused, Err(StoreError::Corrupt { reason }) if reason == says), "{refused:?}");
    }
}

#[tokio::test]
async fn one_segment_is_kept_longer_and_one_that_is_gone_or_kept_as_long_already_is_left() {
    let later = Answer::Refused(400, "ConditionalCheckFailedException", json!({"Item": item(2, "{}")}));
    let gone = Answer::Refused(400, "ConditionalCheckFailedException", json!({}));
    let (store, script) = store([Answer::Done(json!({})), later, gone]);
    let mark = Nonce::from_bytes([2; 8]);
    for number in 1..=3 {
        let key = SegmentKey { incarnation: INCARNATION, run: 1, number, mark };
        let expires_at = Timestamp::from_millis(1_500);
        store.commit(&[Write::Extend { item: Expiring::Segment(id(), key), expires_at }]).await.unwrap();
    }
    for (request, number) in script.requests().iter().zip(1..) {
        assert_eq!(request.1["Key"], json!({"pk": {"S": "exec#e"}, "sk": sk(number)}));
        assert_eq!(request.1["UpdateExpression"], json!("SET #ttl = :ttl"));
        assert_eq!(request.1["ConditionExpression"], json!("attribute_exists(#pk) AND #ttl < :ttl"));
        assert_eq!(request.1["ExpressionAttributeValues"], json!({":ttl": {"N": "2"}}));
    }
}
