//! The items beside tasks, executions and crons: queues, idempotency keys, payloads. One struct for each kind of row.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};
use tickover_core::by::By;
use tickover_core::due::Due;
use tickover_core::flow::Priority;
use tickover_core::id::{
    BlobId, Capability, Fingerprint, Incarnation, Nonce, Owner, QueueName, RecordId, WorkflowName,
};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::queue::workers::Workers;
use tickover_core::queue::{KeyRecord, Mark, QueueRecord, Resuming, Walk};
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;
use tickover_service::ports::StoreError;

use crate::attribute::{self, row as field};
use crate::item::record::{from_item, to_item};
use crate::item::{Item, check_format, corrupt, head_attributes, own_id, read_due, seconds};
use crate::key::Key;
use crate::page::list::List;

/// Version of the rows' formats. Readers refuse any other version and never rewrite the row.
const FORMAT: u8 = 1;

/// A queue's row. Its entry in the list index never changes, so rewriting the row costs nothing there. It is in the due
/// index only while it has unfinished walks.
#[derive(Serialize, Deserialize)]
struct QueueRow {
    pk: String,
    sk: String,
    v: u8,
    ver: u64,
    non: Nonce,
    paused: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<By>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    parked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resuming: Option<ResumingRow>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    marks: BTreeMap<Priority, Mark>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    flows: BTreeMap<WorkflowName, Timestamp>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    provides: BTreeMap<Capability, Timestamp>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    workers: Workers,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kinds: Option<String>,
    list_key: String,
    list_at: i64,
}

/// The unfinished walks of a queue. Their due slot has its own attributes.
#[derive(Serialize, Deserialize)]
struct ResumingRow {
    since: Timestamp,
    walks: Vec<WalkRow>,
}

/// A walk over a shard. Field names are short, because there are as many walks as shards.
#[derive(Serialize, Deserialize)]
struct WalkRow {
    s: u16,
    h: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    f: Option<Timestamp>,
}

impl ResumingRow {
    fn of(resuming: &Resuming) -> Self {
        let row = |(shard, walk): (&u16, &Walk)| WalkRow { s: *shard, h: walk.noted_at, f: walk.from };
        Self { since: resuming.since, walks: resuming.walks.iter().map(row).collect() }
    }

    fn read(self, due: Due) -> Resuming {
        let walk = |WalkRow { s, h, f }| (s, Walk { noted_at: h, from: f });
        Resuming { since: self.since, walks: self.walks.into_iter().map(walk).collect(), due }
    }
}

pub(crate) fn of_queue(record: &QueueRecord) -> Result<Item, StoreError> {
    let Key { pk, sk } = Key::of(&record.name.clone().into());
    let row = QueueRow {
        pk,
        sk,
        v: FORMAT,
        ver: record.version,
        non: record.nonce,
        paused: record.paused,
        by: record.by.clone(),
        parked: record.parked,
        resuming: record.resuming.as_ref().map(ResumingRow::of),
        marks: record.marks.clone(),
        flows: record.workflows.clone(),
        provides: record.provides.clone(),
        workers: record.workers.clone(),
        kinds: kinds(record)?,
        list_key: List::Queues.key_of(record.name.as_str()),
        list_at: 0,
    };
    let mut item = to_item(&row)
        .map_err(|_| corrupt(format!("the record of queue {} can't be serialised", record.name)))?;
    item.extend(head_attributes(&record.into()));
    Ok(item)
}

pub(crate) fn to_queue(item: Item) -> Result<QueueRecord, StoreError> {
    let name: QueueName = own_id(&item, "queue")?;
    check_format(&item, FORMAT, &format!("queue {name}"))?;
    let due = read_due(&item, &format!("queue {name}"))?;
    let row: QueueRow =
        from_item(item).map_err(|_| corrupt(format!("the item of queue {name} isn't of its own format")))?;
    let QueueRow { ver: version, non: nonce, paused, by, parked, resuming, marks, .. } = row;
    let resuming = resuming.zip(due).map(|(row, due)| row.read(due));
    let (workflows, provides, workers) = (row.flows, row.provides, row.workers);
    let unreadable = |_| corrupt(format!("the kinds of queue {name} aren't of their own format"));
    let kinds = row.kinds.map(|text| serde_json::from_str(&text).map_err(unreadable)).transpose()?;
    let kinds = kinds.unwrap_or_default();
    Ok(QueueRecord {
        name,
        version,
        nonce,
        paused,
        by,
        parked,
        resuming,
        marks,
        workflows,
        provides,
        workers,
        kinds,
    })
}

/// The defaults of the kinds as one text: as nested attributes they would take twice the room.
fn kinds(record: &QueueRecord) -> Result<Option<String>, StoreError> {
    if record.kinds.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_string(&record.kinds);
    text.map(Some).map_err(|_| corrupt(format!("the kinds of queue {} can't be serialised", record.name)))
}

#[derive(Serialize, Deserialize)]
struct TickRow {
    pk: String,
    sk: String,
    v: u8,
    ver: u64,
    non: Nonce,
    until: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fanned: Vec<(u16, Timestamp)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    behind: Vec<(u16, Timestamp)>,
}

pub(crate) fn of_tick(record: &TickRecord) -> Result<Item, StoreError> {
    let Key { pk, sk } = Key::of(&RecordId::Tick);
    let pairs = |map: &BTreeMap<u16, Timestamp>| map.iter().map(|(shard, at)| (*shard, *at)).collect();
    let (fanned, behind) = (pairs(&record.fanned), pairs(&record.behind));
    let (ver, non, until) = (record.version, record.nonce, record.timers_until);
    to_item(&TickRow { pk, sk, v: FORMAT, ver, non, until, fanned, behind })
        .map_err(|_| corrupt("the record of the ticks can't be serialised".to_owned()))
}

pub(crate) fn to_tick(item: Item) -> Result<TickRecord, StoreError> {
    check_format(&item, FORMAT, "record of the ticks")?;
    let row: TickRow =
        from_item(item).map_err(|_| corrupt("the item of the ticks isn't of its own format".to_owned()))?;
    let TickRow { ver, non, until, fanned, behind, .. } = row;
    let (fanned, behind) = (fanned.into_iter().collect(), behind.into_iter().collect());
    Ok(TickRecord { version: ver, nonce: non, timers_until: until, fanned, behind })
}

#[derive(Serialize, Deserialize)]
struct KeyRow {
    pk: String,
    sk: String,
    v: u8,
    own: Owner,
    inc: Incarnation,
    t0: Timestamp,
    non: Nonce,
    x: Timestamp,
    ttl: i64,
}

pub(crate) fn of_key(record: &KeyRecord) -> Result<Item, StoreError> {
    let Key { pk, sk } = Key::of(&RecordId::Key(record.key));
    let row = KeyRow {
        pk,
        sk,
        v: FORMAT,
        own: record.owner.clone(),
        inc: record.incarnation,
        t0: record.created_at,
        non: record.nonce,
        x: record.expires_at,
        ttl: record.expires_at.as_secs_ceil(),
    };
    to_item(&row).map_err(|_| corrupt(format!("the record of key {} can't be serialised", record.key)))
}

pub(crate) fn to_key(digest: &Fingerprint, item: Item) -> Result<KeyRecord, StoreError> {
    check_format(&item, FORMAT, &format!("key {digest}"))?;
    let row: KeyRow =
        from_item(item).map_err(|_| corrupt(format!("the item of key {digest} isn't of its own format")))?;
    Ok(KeyRecord {
        key: *digest,
        owner: row.own,
        incarnation: row.inc,
        created_at: row.t0,
        nonce: row.non,
        expires_at: row.x,
    })
}

/// The item of a payload. Built manually: its body is large, and a serialiser would copy it several times.
pub(crate) fn of_blob(at: &BlobRef, body: &Json) -> Item {
    let mut item = Key::blob(&at.id).attributes();
    item.insert(attribute::FORMAT.to_owned(), AttributeValue::N(FORMAT.to_string()));
    item.insert(field::BODY.to_owned(), AttributeValue::S(body.as_str().to_owned()));
    item.insert(attribute::TTL.to_owned(), seconds(at.expires_at));
    item
}

pub(crate) fn to_blob(id: &BlobId, mut item: Item) -> Result<Json, StoreError> {
    check_format(&item, FORMAT, &format!("payload {id}"))?;
    let Some(AttributeValue::S(body)) = item.remove(field::BODY) else {
        return Err(corrupt(format!("payload {id} has no body")));
    };
    Json::parse(body).ok_or_else(|| corrupt(format!("payload {id} isn't JSON")))
}
