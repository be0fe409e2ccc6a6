//! Reads: indexes, pages, batches, and the capacity that they consumed.

use aws_sdk_dynamodb::types::{
    KeysAndAttributes, PutRequest, ReturnConsumedCapacity, TableStatus, WriteRequest,
};

use super::{INDEX, LocalDynamo, TABLE, client, create_table, enable_ttl, get, key, n, put, s, thing};

#[tokio::test]
async fn a_query_of_an_index_pages_in_order_and_stays_in_its_partition() {
    let client = client().await;
    for rank in 0..7 {
        put(&client, thing(&format!("red-{rank}"), "red", rank)).await;
    }
    put(&client, thing("blue-0", "blue", 0)).await;

    let mut pages = client
        .query()
        .table_name(TABLE)
        .index_name(INDEX)
        .key_condition_expression("color = :color")
        .expression_attribute_values(":color", s("red"))
        .limit(3)
        .into_paginator()
        .send();
    let (mut sizes, mut ids) = (Vec::new(), Vec::new());
    while let Some(page) = pages.next().await {
        let page = page.unwrap();
        sizes.push(page.count());
        ids.extend(page.items().iter().map(|item| item["id"].as_s().unwrap().clone()));
    }

    assert_eq!(sizes, [3, 3, 1]);
    assert_eq!(ids, (0..7).map(|rank| format!("red-{rank}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn consumed_capacity_is_returned_by_table_and_index() {
    let client = client().await;
    put(&client, thing("a", "red", 1)).await;

    // Moving an item in the index deletes its old index entry and writes a new one.
    let moved = client
        .update_item()
        .table_name(TABLE)
        .set_key(Some(key("a")))
        .update_expression("SET #rank = :rank")
        .expression_attribute_names("#rank", "rank")
        .expression_attribute_values(":rank", n(2))
        .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
        .send()
        .await
        .unwrap();

    let cost = moved.consumed_capacity().unwrap();
    assert_eq!(cost.capacity_units(), Some(3.0));
    assert_eq!(cost.table().unwrap().capacity_units(), Some(1.0));
    assert_eq!(cost.global_secondary_indexes().unwrap()[INDEX].capacity_units(), Some(2.0));
}

#[tokio::test]
async fn a_batch_is_written_and_read_whole() {
    let client = client().await;
    let write = |id: &str| {
        let put = PutRequest::builder().set_item(Some(thing(id, "red", 1))).build().unwrap();
        WriteRequest::builder().put_request(put).build()
    };
    let wanted = KeysAndAttributes::builder().keys(key("a")).keys(key("b")).keys(key("absent"));

    client.batch_write_item().request_items(TABLE, vec![write("a"), write("b")]).send().await.unwrap();
    let read = client.batch_get_item().request_items(TABLE, wanted.build().unwrap()).send().await.unwrap();

    assert_eq!(read.responses().unwrap()[TABLE].len(), 2);
    assert!(read.unprocessed_keys().is_none_or(std::collections::HashMap::is_empty));
    assert_eq!(client.scan().table_name(TABLE).send().await.unwrap().count(), 2);
}

#[tokio::test]
async fn a_table_is_usable_once_created_and_gone_once_deleted() {
    let client = client().await;

    let table = client.describe_table().table_name(TABLE).send().await.unwrap().table.unwrap();
    assert_eq!(table.table_status(), Some(&TableStatus::Active));

    client.delete_table().table_name(TABLE).send().await.unwrap();
    let absent = client.describe_table().table_name(TABLE).send().await.unwrap_err().into_service_error();
    assert!(absent.is_resource_not_found_exception());
}

#[tokio::test]
async fn a_sweep_deletes_what_has_expired_and_nothing_else() {
    let embedded = LocalDynamo::memory().unwrap();
    let client = embedded.client();
    create_table(&client).await;
    enable_ttl(&client).await;
    // In seconds: the year 2001, and a year far in the future.
    for (id, expires_at) in [("old", 1_000_000_000), ("young", 99_999_999_999)] {
        let mut item = key(id);
        item.insert("expires_at".to_owned(), n(expires_at));
        put(&client, item).await;
    }

    assert_eq!(embedded.sweep_ttl().unwrap(), 1);
    assert_eq!(get(&client, "old").await, None);
    assert!(get(&client, "young").await.is_some());
}
