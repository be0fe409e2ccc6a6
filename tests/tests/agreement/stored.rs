//! The item and the row of each kind of record, byte by byte: the next release must read what this one writes.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use rusqlite::types::Value as Column;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tickover_core::cron::Cron;
use tickover_core::decision::{Condition, Write};
use tickover_core::execution::Execution;
use tickover_core::gate::Gate;
use tickover_core::operation::Operation;
use tickover_core::queue::{KeyRecord, QueueRecord};
use tickover_core::task::Task;
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;
use tickover_dynamodb::DynamoStore;
use tickover_service::ports::{Listed, Store as _};
use tickover_sqlite::SqliteStore;
use tickover_tests::dynamodb::LocalDynamo;

/// A record a line: its kind, its own form, its item, its row. Records of a simulation, those of each kind with most fields.
const GOLDEN: &str = include_str!("stored.jsonl");

#[tokio::test]
async fn every_kind_of_record_is_stored_in_the_same_bytes() {
    let client = LocalDynamo::memory().unwrap().client();
    let dynamodb = DynamoStore::new(client, "tickover").listing(Listed::All);
    for line in GOLDEN.lines() {
        let golden: Value = serde_json::from_str(line).unwrap();
        let (kind, record) = (golden["kind"].as_str().unwrap(), &golden["record"]);
        let write = write(kind, record);
        let (item, row) = (item(&dynamodb, &write), row(&write).await);
        assert_eq!(json!({"kind": kind, "record": record, "item": item, "row": row}), golden, "{kind}");
    }
}

/// The write of a new record.
fn write(kind: &str, record: &Value) -> Write {
    fn of<T: DeserializeOwned>(record: &Value) -> T {
        serde_json::from_value(record.clone()).unwrap()
    }
    let now = Timestamp::EPOCH;
    match kind {
        "task" => Write::put(of::<Task>(record), Condition::Free { now }),
        "execution" => Write::put(of::<Execution>(record), Condition::Free { now }),
        "cron" => Write::put(of::<Cron>(record), Condition::Same),
        "queue" => Write::put(of::<QueueRecord>(record), Condition::Follows),
        "key" => Write::put(of::<KeyRecord>(record), Condition::SameOrAbsent),
        "tick" => Write::put(of::<TickRecord>(record), Condition::Follows),
        "operation" => Write::put(of::<Operation>(record), Condition::Follows),
        "gate" => Write::put(of::<Gate>(record), Condition::Same),
        "waiter" => {
            let (gate, waiter) = of(record);
            Write::PutWaiter { gate, waiter, expires_at: now }
        }
        _ => panic!("no kind of record is {kind}"),
    }
}

fn item(store: &DynamoStore, write: &Write) -> Value {
    let written = store.transact_items(std::slice::from_ref(write)).unwrap();
    attributes(written[0].put().unwrap().item())
}

fn attributes(item: &HashMap<String, AttributeValue>) -> Value {
    let item: BTreeMap<&String, Value> = item.iter().map(|(name, value)| (name, attribute(value))).collect();
    json!(item)
}

fn attribute(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(number) => json!({"N": number}),
        AttributeValue::Bool(bool) => json!({"BOOL": bool}),
        AttributeValue::L(list) => json!({"L": list.iter().map(attribute).collect::<Vec<_>>()}),
        AttributeValue::M(map) => json!({"M": attributes(map)}),
        other => panic!("no record has {other:?}"),
    }
}

/// The one row after the write, without its number and its empty columns.
async fn row(write: &Write) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let store = SqliteStore::file(&path).unwrap();
    store.commit(std::slice::from_ref(write)).await.unwrap();
    let database = rusqlite::Connection::open(&path).unwrap();
    let mut statement = database.prepare("SELECT * FROM record").unwrap();
    let names: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    let column = |row: &rusqlite::Row<'_>, name: &String| match row.get_unwrap(name.as_str()) {
        Column::Null => None,
        Column::Integer(number) => Some((name.clone(), json!(number))),
        Column::Text(text) => Some((name.clone(), json!(text))),
        other => panic!("no record has {other:?}"),
    };
    let columns = |row: &rusqlite::Row<'_>| -> Map<String, Value> {
        names.iter().filter(|name| *name != "row").filter_map(|name| column(row, name)).collect()
    };
    json!(statement.query_row([], |row| Ok(columns(row))).unwrap())
}
