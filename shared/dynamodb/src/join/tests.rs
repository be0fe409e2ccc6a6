use serde_json::json;
use tickover_core::id::{ExecutionId, Incarnation, Nonce};
use tickover_service::ports::Store as _;

use super::*;
use crate::scripted::{Answer, store};

fn parent() -> Parent {
    let execution = ExecutionId::parse("e").unwrap();
    Parent {
        execution,
        incarnation: Incarnation::from_bytes([1; 8]),
        run: 1,
        again: 0,
        slot: None,
        step: None,
        work: None,
        on_close: tickover_core::execution::ParentClosePolicy::default(),
    }
}

const SLOT: Slot = Slot { label: Nonce::from_bytes([2; 8]), item: 0, place: 7, of: 9 };

#[tokio::test]
async fn a_mark_is_one_request_that_returns_the_number_of_marks() {
    let places = json!({"Attributes": {"places": {"NS": ["3", "7", "8"]}}});
    let (store, script) = store([Answer::Done(places)]);
    assert_eq!(store.join(&parent(), SLOT, Timestamp::from_millis(1_500)).await.unwrap(), 3);
    let (operation, body) = &script.requests()[0];
    assert_eq!(operation, "UpdateItem");
    assert_eq!(body["UpdateExpression"], json!("SET #v = :v, #ttl = :ttl ADD #places :place"));
    assert_eq!(body["ConditionExpression"], json!("attribute_not_exists(#pk) OR #v = :v"));
    let values = json!({":v": {"N": "1"}, ":ttl": {"N": "2"}, ":place": {"NS": ["7"]}});
    assert_eq!(body["ExpressionAttributeValues"], values);
    assert_eq!(body["ReturnValues"], json!("UPDATED_NEW"));
}

#[tokio::test]
async fn an_item_of_another_format_is_refused_loudly() {
    let newer = json!({"Item": {"pk": {"S": "join#e"}, "v": {"N": "2"}}});
    let (store, _) = store([Answer::Refused(400, "ConditionalCheckFailedException", newer)]);
    let refused = store.join(&parent(), SLOT, Timestamp::EPOCH).await;
    let says = "a join item of execution e is stored in format 2, where this build reads 1";
    assert!(matches!(&refused, Err(StoreError::Corrupt { reason }) if reason == says), "{refused:?}");
    assert_eq!(store.usage().failed_conditions, 1);
}
