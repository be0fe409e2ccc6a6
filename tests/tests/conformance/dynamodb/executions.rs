//! Tests of executions that apply to this adapter alone: its items in the table, and what they cost.

use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::decision::{Condition, Expiring, Write};
use tickover_core::due::{Due, DueKind};
use tickover_core::execution::journal::{Entry, Happened, Segment, SegmentKey};
use tickover_core::execution::{Closed, Execution, ExecutionOutcome, ExecutionState, Parent, Slot, fixture};
use tickover_core::id::{BlobId, Nonce, RecordId};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::time::Timestamp;
use tickover_dynamodb::DynamoStore;
use tickover_service::ports::{Consistency, ExecutionLists as _, Listed, Store as _, StoreError};
use tickover_tests::dynamodb::LocalDynamo;

use super::{NOW, TABLE, store};

type Item = HashMap<String, AttributeValue>;

/// A store in this process with one execution in it.
struct One {
    client: Client,
    store: Arc<DynamoStore>,
    execution: Execution,
}

async fn one() -> One {
    let client = LocalDynamo::memory().expect("a database in memory").client();
    let store = store(&client, TABLE).await;
    let execution = fixture::pending(NOW);
    let write = Write::put(execution.clone(), Condition::Free { now: NOW });
    store.commit(&[write]).await.expect("it is written");
    One { client, store, execution }
}

impl One {
    async fn item(&self, pk: &str, sk: &str) -> Item {
        let key = |text: &str| AttributeValue::S(text.to_owned());
        let request = self.client.get_item().table_name(TABLE).key("pk", key(pk)).key("sk", key(sk));
        request.send().await.expect("an answer").item.expect("the item")
    }

    /// The write units that a commit costs.
    async fn cost(&self, write: Write) -> f64 {
        let before = self.store.usage();
        self.store.commit(&[write]).await.expect("it is written");
        self.store.usage().since(before).write_units
    }

    fn wake(&self) -> Write {
        Write::Wake { id: self.execution.id.clone(), incarnation: self.execution.incarnation }
    }
}

fn updating(before: &Execution, after: &Execution) -> Write {
    let unchanged = Condition::Unchanged { due_no_later_than: None, wakes: Some(0) };
    Write::replace(before.clone(), after.clone(), unchanged)
}

fn next(before: &Execution) -> Execution {
    let version = before.version + 1;
    Execution { version, nonce: Nonce::from_bytes((100 + version).to_be_bytes()), ..before.clone() }
}

fn closed() -> Closed {
    let outcome = ExecutionOutcome::Completed { output: None };
    Closed { outcome, ended_at: NOW, expires_at: NOW }
}

#[tokio::test]
async fn every_read_and_write_refuses_a_newer_builds_execution_and_leaves_it_unchanged() {
    let one = one().await;
    let mut newer = one.item("exec#order-7", "exec").await;
    newer.insert("v".to_owned(), AttributeValue::N("2".to_owned()));
    let request = one.client.put_item().table_name(TABLE).set_item(Some(newer.clone()));
    request.send().await.expect("it is written");

    let before = &one.execution;
    let again = Execution { nonce: Nonce::from_bytes([2; 8]), ..before.clone() };
    let create = Write::put(again, Condition::Free { now: NOW });
    let to = Due { at: NOW, kind: DueKind::Recheck, shard: 0 };
    let rearm = Write::Rearm { record: before.clone().into(), to };
    let ids = [RecordId::from(before.id.clone())];
    for refused in [
        one.store.record(&ids[0], Consistency::Strong).await.map(drop),
        one.store.records(&ids).await.map(drop),
        one.store.commit(&[create]).await,
        one.store.commit(&[updating(before, &next(before))]).await,
        one.store.commit(&[rearm]).await,
        one.store.commit(&[one.wake()]).await,
    ] {
        let Err(StoreError::Corrupt { reason }) = refused else { panic!("{refused:?}") };
        assert_eq!(reason, "execution order-7 is stored in format 2, where this build reads 1");
    }
    assert_eq!(one.item("exec#order-7", "exec").await, newer);
}

#[tokio::test]
async fn where_the_setting_changes_an_execution_enters_or_leaves_the_list_with_its_next_write() {
    let one = one().await;
    let lists_all = || DynamoStore::new(one.client.clone(), TABLE).listing(Listed::All);
    let listed = async || lists_all().find(Listed::All, 9, None).await.expect("a list").items;
    let mut execution = one.execution.clone();
    assert_eq!(listed().await, []);
    // One unit for the record, and one if its entry is made or deleted.
    for (sets, units, expected) in
        [(Listed::All, 2.0, 1), (Listed::All, 1.0, 1), (Listed::Failed, 2.0, 0), (Listed::Failed, 1.0, 0)]
    {
        let store = DynamoStore::new(one.client.clone(), TABLE).listing(sets);
        let after = next(&execution);
        store.commit(&[updating(&execution, &after)]).await.expect("it is written");
        assert_units(store.usage().write_units, units);
        assert_eq!(listed().await.len(), expected, "{sets:?}");
        execution = after;
    }
}

#[tokio::test]
async fn a_turn_and_a_wake_cost_one_unit_each_and_the_indexes_nothing() {
    let one = one().await;
    // The record, its entry in the due index, and its entry in its workflow's list.
    assert_units(one.store.usage().write_units, 3.0);

    let what = Happened::Note { kind: "n".repeat(300), name: None, by: None };
    let turned = Execution { journal: vec![Entry { at: NOW, what }], ..next(&one.execution) };
    assert_units(one.cost(updating(&one.execution, &turned)).await, 1.0);
    // The end removes it from the due index, and leaves it in the list.
    let ended = Execution { state: ExecutionState::Ended(closed()), due: None, ..next(&turned) };
    assert_units(one.cost(updating(&turned, &ended)).await, 2.0);
    let again = Execution { state: one.execution.state.clone(), due: one.execution.due, ..next(&ended) };
    assert_units(one.cost(updating(&ended, &again)).await, 2.0);
    assert_units(one.cost(one.wake()).await, 1.0);

    let before = one.store.usage();
    one.store.record(&one.execution.id.clone().into(), Consistency::Strong).await.expect("it is read");
    assert_units(one.store.usage().since(before).read_units, 1.0);
}

#[tokio::test]
async fn a_hundred_places_of_a_fan_out_are_one_unit_each() {
    let one = one().await;
    let parent = Parent {
        execution: one.execution.id.clone(),
        incarnation: one.execution.incarnation,
        run: 1,
        again: 0,
        slot: None,
        step: None,
        work: None,
        on_close: tickover_core::execution::ParentClosePolicy::default(),
    };
    let before = one.store.usage();
    for place in 0..100 {
        let slot = Slot { label: Nonce::from_bytes([2; 8]), item: 9, place, of: 100 };
        let marked = one.store.join(&parent, slot, NOW).await.expect("it is marked");
        assert_eq!(marked, place + 1);
    }
    assert_units(one.store.usage().since(before).write_units, 100.0);
    let pk = format!("join#order-7#{}#1#{}#9", parent.incarnation, Nonce::from_bytes([2; 8]));
    assert_eq!(one.item(&pk, "join").await["ttl"], AttributeValue::N(NOW.as_secs_ceil().to_string()));
}

#[tokio::test]
async fn the_expiry_of_an_executions_items_is_only_moved_later() {
    let one = one().await;
    let (id, incarnation) = (&one.execution.id, one.execution.incarnation);
    let mark = Nonce::from_bytes([2; 8]);
    let keys = [1, 2].map(|run| SegmentKey { incarnation, run, number: 1, mark });
    for key in &keys {
        let segment = Segment { before: None, entries: vec![], end: None };
        one.store
            .put_segment(id, key, &segment, Timestamp::from_millis(2_000_000_000_000))
            .await
            .expect("it is written");
    }
    let at = |expires_at| BlobRef { id: BlobId::from_bytes([3; 16]), bytes: 1, expires_at };
    one.store
        .put_blob(&at(Timestamp::from_millis(2_000_000_000_000)), &Json::string("x"))
        .await
        .expect("it is written");

    let blob = format!("blob#{}", at(NOW).id);
    let items = [
        ("exec#order-7", format!("seg#{incarnation}#00000001#000001#{mark}")),
        ("exec#order-7", format!("seg#{incarnation}#00000002#000001#{mark}")),
        (blob.as_str(), "blob".to_owned()),
    ];
    for (pk, sk) in &items {
        assert_eq!(one.item(pk, sk).await["ttl"], AttributeValue::N("2000000000".to_owned()), "{sk}");
    }
    // The second write is earlier than the stored expiry, so it changes nothing.
    for end in [4_000_000_000_001, 3_000_000_000_000].map(Timestamp::from_millis) {
        let segments = keys.map(|key| Expiring::Segment(id.clone(), key));
        for item in segments.into_iter().chain([Expiring::Blob(at(end).id)]) {
            one.store.commit(&[Write::Extend { item, expires_at: end }]).await.expect("it is kept");
        }
    }
    for (pk, sk) in &items {
        assert_eq!(one.item(pk, sk).await["ttl"], AttributeValue::N("4000000001".to_owned()), "{sk}");
    }
    assert_eq!(one.item("exec#order-7", "exec").await.get("ttl"), None);
}

fn assert_units(units: f64, expected: f64) {
    assert!((units - expected).abs() < f64::EPSILON, "{units} units instead of {expected}");
}
