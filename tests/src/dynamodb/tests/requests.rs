//! Requests that the engine rejects, and requests that must take effect only once.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};

use super::{Item, TABLE, client, get, key, n, thing};

fn add(amount: u64) -> TransactWriteItem {
    let update = Update::builder()
        .table_name(TABLE)
        .set_key(Some(key("a")))
        .update_expression("ADD amount :amount")
        .expression_attribute_values(":amount", n(amount))
        .build()
        .unwrap();
    TransactWriteItem::builder().update(update).build()
}

fn amount(item: &Item) -> &str {
    item["amount"].as_n().unwrap()
}

#[tokio::test]
async fn an_operation_the_engine_lacks_is_unknown() {
    let client = client().await;

    let error = client.list_backups().send().await.unwrap_err().into_service_error();

    assert_eq!(error.code(), Some("UnknownOperationException"));
}

#[tokio::test]
async fn a_missing_table_is_a_typed_error() {
    let client = client().await;

    let error = client
        .put_item()
        .table_name("absent")
        .set_item(Some(thing("a", "red", 1)))
        .send()
        .await
        .unwrap_err()
        .into_service_error();

    assert!(error.is_resource_not_found_exception());
}

#[tokio::test]
async fn a_value_that_can_not_be_stored_is_a_validation_error() {
    let client = client().await;

    let mut item = key("a");
    item.insert("amount".to_owned(), AttributeValue::N("many".to_owned()));
    let error = client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap_err();

    assert_eq!(error.raw_response().unwrap().status().as_u16(), 400);
    assert_eq!(error.code(), Some("ValidationException"));
}

#[tokio::test]
async fn a_transaction_repeated_with_its_token_happens_once() {
    let client = client().await;
    for _ in 0..2 {
        let transaction = client.transact_write_items().transact_items(add(1)).client_request_token("token");
        transaction.send().await.unwrap();
    }

    assert_eq!(amount(&get(&client, "a").await.unwrap()), "1");

    let other = client.transact_write_items().transact_items(add(2)).client_request_token("token");
    let error = other.send().await.map_err(SdkError::into_service_error).unwrap_err();
    assert!(matches!(error, TransactWriteItemsError::IdempotentParameterMismatchException(_)), "{error:?}");
}

#[tokio::test]
async fn equal_transactions_without_a_token_all_happen() {
    let client = client().await;
    for _ in 0..3 {
        client.transact_write_items().transact_items(add(1)).send().await.unwrap();
    }

    assert_eq!(amount(&get(&client, "a").await.unwrap()), "3");
}
