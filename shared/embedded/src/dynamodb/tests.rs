//! Tests through the SDK's client only. They would also pass against AWS, except those about files and unknown
//! operations.

mod concurrency;
mod conditions;
mod files;
mod reads;
mod requests;

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType,
    Projection, ProjectionType, ScalarAttributeType, TimeToLiveSpecification,
};

use super::Embedded;

const TABLE: &str = "things";
/// An index with the keys `color` and `rank`, which projects all attributes.
const INDEX: &str = "by_color";

type Item = HashMap<String, AttributeValue>;

fn s(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

fn n(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

fn key(id: &str) -> Item {
    Item::from([("id".to_owned(), s(id))])
}

fn thing(id: &str, color: &str, rank: u64) -> Item {
    let mut item = key(id);
    item.extend([("color".to_owned(), s(color)), ("rank".to_owned(), n(rank))]);
    item
}

/// A client of a new database in memory that has [`TABLE`].
async fn client() -> Client {
    let client = Embedded::memory().unwrap().client();
    create_table(&client).await;
    client
}

async fn create_table(client: &Client) {
    let attribute = |name: &str, of: ScalarAttributeType| {
        AttributeDefinition::builder().attribute_name(name).attribute_type(of).build().unwrap()
    };
    let part = |name: &str, of: KeyType| {
        KeySchemaElement::builder().attribute_name(name).key_type(of).build().unwrap()
    };
    let index = GlobalSecondaryIndex::builder()
        .index_name(INDEX)
        .key_schema(part("color", KeyType::Hash))
        .key_schema(part("rank", KeyType::Range))
        .projection(Projection::builder().projection_type(ProjectionType::All).build())
        .build()
        .unwrap();
    client
        .create_table()
        .table_name(TABLE)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(attribute("id", ScalarAttributeType::S))
        .attribute_definitions(attribute("color", ScalarAttributeType::S))
        .attribute_definitions(attribute("rank", ScalarAttributeType::N))
        .key_schema(part("id", KeyType::Hash))
        .global_secondary_indexes(index)
        .send()
        .await
        .unwrap();
}

async fn enable_ttl(client: &Client) {
    let specification =
        TimeToLiveSpecification::builder().attribute_name("expires_at").enabled(true).build().unwrap();
    client
        .update_time_to_live()
        .table_name(TABLE)
        .time_to_live_specification(specification)
        .send()
        .await
        .unwrap();
}

async fn put(client: &Client, item: Item) {
    client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
}

async fn get(client: &Client, id: &str) -> Option<Item> {
    let got = client.get_item().table_name(TABLE).set_key(Some(key(id))).consistent_read(true).send().await;
    got.unwrap().item
}
