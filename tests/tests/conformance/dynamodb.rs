//! The store over `DynamoDB`'s semantics: in this process, in memory and in a file, and over the network.
#![expect(clippy::expect_used, reason = "a test fails if it doesn't find what it expects")]

mod executions;

use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType};
use tickover_core::command::{Context, Isolation};
use tickover_core::decision::Write;
use tickover_core::due::{Due, DueKind};
use tickover_core::duration::Millis;
use tickover_core::id::{
    BlobId, Fingerprint, Incarnation, LeaseId, Nonce, QueueName, RecordId, TaskId, TaskKind,
};
use tickover_core::limits::Limits;
use tickover_core::record::Record;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::Task;
use tickover_core::task::command::{Claim, Command, Key, Schedule, Start};
use tickover_core::task::decide;
use tickover_core::task::decision::Decision;
use tickover_core::time::Timestamp;
use tickover_core::timeout::Timeouts;
use tickover_dynamodb::{DynamoStore, Table, TableError, Usage};
use tickover_service::ports::{Consistency, Listed, Store, StoreError};
use tickover_tests::dynamodb::LocalDynamo;
use tickover_tests::emulator;

use crate::store as suite;

const NOW: Timestamp = Timestamp::from_millis(4_000_000_000_000);

/// A store over a new table.
async fn store(client: &Client, table: &str) -> Arc<DynamoStore> {
    Table::new(table).create(client).await.expect("the table is made");
    Arc::new(DynamoStore::new(client.clone(), table))
}

#[tokio::test]
async fn the_store_in_this_process_conforms() {
    suite::run(|| async {
        let embedded = LocalDynamo::memory().expect("a database in memory");
        store(&embedded.client(), "tickover").await as Arc<dyn Store>
    })
    .await;
}

#[tokio::test]
async fn the_store_conforms_where_it_lists_the_executions_of_all_workflows() {
    suite::run(|| async {
        let client = LocalDynamo::memory().expect("a database in memory").client();
        Table::new("tickover").create(&client).await.expect("the table is made");
        suite::listing(Listed::All, DynamoStore::new(client, "tickover").listing(Listed::All))
    })
    .await;
}

#[tokio::test]
async fn the_store_over_the_network_conforms() {
    let client = Client::new(&emulator::aws_config().await);
    suite::run(|| async { store(&client, &emulator::unique("conformance")).await as Arc<dyn Store> }).await;
}

#[tokio::test]
async fn creating_the_table_again_changes_nothing_and_a_different_table_is_refused() {
    let embedded = LocalDynamo::memory().expect("a database in memory").client();
    let network = Client::new(&emulator::aws_config().await);
    for client in [embedded, network] {
        let name = emulator::unique("again");
        let table = Table { point_in_time_recovery: true, ..Table::new(&name) };
        table.create(&client).await.expect("the first time");
        table.create(&client).await.expect("the second time");

        let other = emulator::unique("other");
        let key = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build();
        let id = AttributeDefinition::builder().attribute_name("id").attribute_type("S".into()).build();
        let create = client.create_table().table_name(&other).billing_mode(BillingMode::PayPerRequest);
        let create = create.key_schema(key.expect("a key")).attribute_definitions(id.expect("a definition"));
        create.send().await.expect("another table");
        let error = Table::new(&other).create(&client).await.expect_err("it isn't ours");
        assert!(matches!(error, TableError::Mismatch { .. }), "{error}");
    }
}

/// A store in this process with one pending task.
struct One {
    client: Client,
    store: Arc<DynamoStore>,
    task: Task,
}

const TABLE: &str = "tickover";

async fn one() -> One {
    let client = LocalDynamo::memory().expect("a database in memory").client();
    let store = store(&client, TABLE).await;
    let decision = scheduled(None);
    store.commit(&decision.writes).await.expect("it is written");
    One { client, store, task: decision.outcome.expect("it is there").0 }
}

fn decided(task: Option<&Task>, command: &Command, nonce: u8) -> Decision {
    let limits = Limits::default();
    decide(
        task,
        command,
        &Context { now: NOW, nonce: Nonce::from_bytes([nonce; 8]), limits: &limits, by: None },
    )
}

fn scheduled(key: Option<Key>) -> Decision {
    let schedule = Schedule {
        id: TaskId::parse("a").expect("an id"),
        incarnation: Incarnation::from_bytes([1; 8]),
        queue: QueueName::parse("mail").expect("a name"),
        kind: TaskKind::parse("send").expect("a kind"),
        input: None,
        labels: None,
        retry: RetryPolicy::none(),
        flow: tickover_core::flow::Flow::default(),
        timeouts: Timeouts::default(),
        start: Start::After(Millis::ZERO),
        in_line: false,
        fingerprint: Fingerprint::from_bytes([2; 16]),
        key,
        parent: None,
        trace: None,
        blob_ids: [BlobId::from_bytes([3; 16]), BlobId::from_bytes([4; 16])],
    };
    decided(None, &Command::Schedule(Box::new(schedule)), 1)
}

fn claimed(task: &Task, nonce: u8) -> Decision {
    let lease = LeaseId::from_bytes([nonce; 16]);
    let claim = Claim {
        lease,
        worker: None,
        length: Millis::from_secs(60),
        hint: None,
        isolation: Isolation::Alone,
        inside: false,
        paused: false,
        held: false,
        places: None,
        start: None,
        start_of: None,
    };
    decided(Some(task), &Command::Claim(claim), nonce)
}

impl One {
    async fn item(&self) -> HashMap<String, AttributeValue> {
        let key = |text: &str| AttributeValue::S(text.to_owned());
        let request =
            self.client.get_item().table_name(TABLE).key("pk", key("task#a")).key("sk", key("task"));
        request.send().await.expect("an answer").item.expect("the item")
    }

    /// Writes an attribute without the store, as a newer build would.
    async fn tamper(&self, name: &str, value: AttributeValue) {
        let mut item = self.item().await;
        item.insert(name.to_owned(), value);
        let request = self.client.put_item().table_name(TABLE).set_item(Some(item));
        request.send().await.expect("it is written");
    }

    /// What these writes cost, and their result.
    async fn cost(&self, writes: &[Write]) -> (Usage, Result<(), StoreError>) {
        let before = self.store.usage();
        let result = self.store.commit(writes).await;
        (self.store.usage().since(before), result)
    }
}

#[tokio::test]
async fn every_read_and_write_refuses_a_newer_builds_record_and_leaves_it_unchanged() {
    let one = one().await;
    one.tamper("v", AttributeValue::N("2".to_owned())).await;
    let newer = one.item().await;
    let to = Due { at: NOW, kind: DueKind::Recheck, shard: 0 };
    let rearm = [Write::Rearm { record: one.task.clone().into(), to }];
    let ids = [RecordId::from(one.task.id.clone())];
    let other = Decision { writes: scheduled(None).writes, ..decided(None, &Command::Retry(None), 9) };
    let create: Vec<Write> = other
        .writes
        .into_iter()
        .map(|write| match write {
            Write::Put { after: Record::Task(task), condition, .. } => {
                Write::put(Task { nonce: Nonce::from_bytes([9; 8]), ..*task }, condition)
            }
            write => write,
        })
        .collect();
    for refused in [
        one.store.record(&ids[0], Consistency::Strong).await.map(drop),
        one.store.records(&ids).await.map(drop),
        one.store.commit(&claimed(&one.task, 2).writes).await,
        one.store.commit(&rearm).await,
        one.store.commit(&create).await,
    ] {
        let Err(StoreError::Corrupt { reason }) = refused else { panic!("{refused:?}") };
        assert_eq!(reason, "task a is stored in format 2, where this build reads 1");
    }
    assert_eq!(one.item().await, newer);
}

#[tokio::test]
async fn usage_is_what_the_table_reports_including_failed_conditions() {
    let one = one().await;
    let created = one.store.usage();
    // The record and its entry in the due index.
    assert!((created.write_units - 2.0).abs() < f64::EPSILON, "{created:?}");

    let (claim, result) = one.cost(&claimed(&one.task, 2).writes).await;
    result.expect("it is claimed");
    // The index doesn't change.
    assert!((claim.write_units - 1.0).abs() < f64::EPSILON, "{claim:?}");

    let (lost, result) = one.cost(&claimed(&one.task, 3).writes).await;
    assert!(matches!(result, Err(StoreError::Conflict { .. })));
    assert_eq!((lost.requests, lost.failed_conditions), (1, 1));
    assert!(lost.write_units.abs() < f64::EPSILON, "{lost:?}");
    assert!((lost.failed_condition_units - 1.0).abs() < f64::EPSILON, "{lost:?}");

    let before = one.store.usage();
    one.store.record(&one.task.id.clone().into(), Consistency::Strong).await.expect("it is read");
    let read = one.store.usage().since(before);
    assert!((read.read_units - 1.0).abs() < f64::EPSILON, "{read:?}");
}

#[tokio::test]
async fn a_transaction_repeated_within_ten_minutes_costs_no_write() {
    let one = one().await;
    let key = Key { digest: Fingerprint::from_bytes([5; 16]), replaces: None };
    let mut decision = scheduled(Some(key));
    for write in &mut decision.writes {
        if let Write::Put { after: Record::Task(task), .. } = write {
            task.id = TaskId::parse("b").expect("an id");
        }
    }
    assert_eq!(decision.writes.len(), 2);
    let (first, result) = one.cost(&decision.writes).await;
    result.expect("it is written");
    assert!(first.write_units >= 4.0, "{first:?}");
    let (second, result) = one.cost(&decision.writes).await;
    result.expect("it had been written");
    assert!(second.write_units.abs() < f64::EPSILON, "{second:?}");
    assert_eq!(second.failed_conditions, 0);
}

#[tokio::test]
async fn a_store_without_its_table_says_what_to_check() {
    let client = LocalDynamo::memory().expect("a database in memory").client();
    let store = DynamoStore::new(client, "nowhere");
    let id = TaskId::parse("a").expect("an id").into();
    let error = store.record(&id, Consistency::Strong).await.expect_err("there is no table");
    assert!(
        matches!(&error, StoreError::Unavailable { reason, .. } if reason.contains("correct TICKOVER_TABLE")),
        "{error}"
    );
}
