//! Many writers of one item.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use tokio::task::JoinSet;

use super::{Embedded, Item, TABLE, create_table, get, key, n, put};

const WRITERS: usize = 64;
const VERSIONS: u64 = 8;

fn counter(version: u64) -> Item {
    let mut item = key("counter");
    item.insert("version".to_owned(), n(version));
    item
}

/// Whether this writer moved the counter on from `version`.
async fn advance(client: Client, version: u64) -> bool {
    let result = client
        .update_item()
        .table_name(TABLE)
        .set_key(Some(key("counter")))
        .update_expression("SET version = version + :one")
        .condition_expression("version = :expected")
        .expression_attribute_values(":one", n(1))
        .expression_attribute_values(":expected", n(version))
        .send()
        .await;
    match result.map_err(SdkError::into_service_error) {
        Ok(_) => true,
        Err(UpdateItemError::ConditionalCheckFailedException(_)) => false,
        Err(other) => panic!("neither won nor lost: {other:?}"),
    }
}

async fn one_winner_a_version(embedded: &Embedded) {
    let client = embedded.client();
    create_table(&client).await;
    put(&client, counter(0)).await;

    for version in 0..VERSIONS {
        let writers: JoinSet<bool> = (0..WRITERS).map(|_| advance(client.clone(), version)).collect();
        let winners = writers.join_all().await.into_iter().filter(|won| *won).count();
        assert_eq!(winners, 1, "version {version}");
    }
    assert_eq!(get(&client, "counter").await, Some(counter(VERSIONS)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_concurrent_updates_exactly_one_wins_a_version_in_memory() {
    one_winner_a_version(&Embedded::memory().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_concurrent_updates_exactly_one_wins_a_version_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    one_winner_a_version(&Embedded::file(&folder.path().join("db")).unwrap()).await;
}
