//! A failed condition is returned as the SDK's own type, with the old item if that was requested.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::error::{ConditionalCheckFailedException, TransactionCanceledException};
use aws_sdk_dynamodb::types::{Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem};

use super::{Item, TABLE, client, get, put, thing};

async fn put_if_absent(
    client: &Client,
    item: Item,
    on_failure: Option<ReturnValuesOnConditionCheckFailure>,
) -> Result<(), PutItemError> {
    client
        .put_item()
        .table_name(TABLE)
        .set_item(Some(item))
        .condition_expression("attribute_not_exists(id)")
        .set_return_values_on_condition_check_failure(on_failure)
        .send()
        .await
        .map(drop)
        .map_err(SdkError::into_service_error)
}

fn refusal(result: Result<(), PutItemError>) -> ConditionalCheckFailedException {
    match result {
        Err(PutItemError::ConditionalCheckFailedException(refusal)) => refusal,
        other => panic!("not a refused condition: {other:?}"),
    }
}

fn put_in_transaction(item: Item) -> TransactWriteItem {
    let put = Put::builder()
        .table_name(TABLE)
        .set_item(Some(item))
        .condition_expression("attribute_not_exists(id)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build()
        .unwrap();
    TransactWriteItem::builder().put(put).build()
}

async fn cancellation(client: &Client, items: Vec<TransactWriteItem>) -> TransactionCanceledException {
    let result = client.transact_write_items().set_transact_items(Some(items)).send().await;
    match result.map_err(SdkError::into_service_error) {
        Err(TransactWriteItemsError::TransactionCanceledException(cancelled)) => cancelled,
        other => panic!("not a cancelled transaction: {other:?}"),
    }
}

#[tokio::test]
async fn a_refused_put_brings_the_old_item_when_asked() {
    let client = client().await;
    put(&client, thing("a", "red", 1)).await;

    let refused =
        put_if_absent(&client, thing("a", "blue", 2), Some(ReturnValuesOnConditionCheckFailure::AllOld));

    assert_eq!(refusal(refused.await).item, Some(thing("a", "red", 1)));
    assert_eq!(get(&client, "a").await, Some(thing("a", "red", 1)));
}

#[tokio::test]
async fn a_refused_put_brings_no_item_unasked() {
    let client = client().await;
    put(&client, thing("a", "red", 1)).await;

    assert_eq!(refusal(put_if_absent(&client, thing("a", "blue", 2), None).await).item, None);
}

#[tokio::test]
async fn a_cancelled_transaction_gives_a_reason_for_every_item_and_writes_none() {
    let client = client().await;
    put(&client, thing("b", "red", 1)).await;

    let items = ["a", "b", "c"].map(|id| put_in_transaction(thing(id, "blue", 2)));
    let cancelled = cancellation(&client, items.into()).await;

    let reasons = cancelled.cancellation_reasons();
    let codes: Vec<_> = reasons.iter().map(|reason| reason.code()).collect();
    assert_eq!(codes, [Some("None"), Some("ConditionalCheckFailed"), Some("None")]);
    let items: Vec<_> = reasons.iter().map(|reason| reason.item().cloned()).collect();
    assert_eq!(items, [None, Some(thing("b", "red", 1)), None]);
    assert_eq!((get(&client, "a").await, get(&client, "c").await), (None, None));
}
