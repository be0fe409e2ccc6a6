//! A task's control record as an item, and back; in the modules below, every other sort of item.
//!
//! An item is the record's own serialised form, except that the id lies in the key and the place in the due
//! index in attributes of its own.

pub(crate) mod cron;
pub(crate) mod execution;
pub(crate) mod gate;
pub(crate) mod operation;
pub(crate) mod record;
pub(crate) mod row;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::due::{Due, DueKind};
use tickover_core::id::{RecordId, TaskId};
use tickover_core::record::{Head, Record};
use tickover_core::task::{FORMAT, Outcome, Task};
use tickover_core::time::Timestamp;
use tickover_service::ports::{Listed, StoreError};

use crate::attribute::{self, DUE_AT, DUE_KIND, DUE_SHARD, LIST_AT, LIST_KEY, PK, TTL, task as field};
use crate::key::{self, Key};
use crate::page::list::List;
use cron::{of_cron, to_cron};
use execution::{of_execution, to_execution};
use gate::{of_gate, to_gate};
use operation::{of_operation, to_operation};
use record::{from_item, to_item};
use row::{of_key, of_queue, of_tick, to_key, to_queue, to_tick};

/// An item as the SDK has it.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// Beyond these magnitudes a number is stored as the bound: `DynamoDB` refuses exponents of more than about 125,
/// and no factor or fraction that far out makes a difference to a delay of whole milliseconds.
const LARGEST_FLOAT: f64 = 1e30;
const SMALLEST_FLOAT: f64 = 1e-30;

/// The fields of a record that its item has elsewhere.
const IN_KEYS: [&str; 2] = [field::ID, field::DUE];

pub(crate) fn of_task(task: &Task) -> Result<Item, StoreError> {
    let mut item = of_whole(storable(task).as_ref(), &task.id.clone().into(), "task")?;
    item.extend(added(task));
    Ok(item)
}

/// What a task's item has instead of the fields that lie in its keys.
fn added(task: &Task) -> Item {
    let mut item = head_attributes(&task.into());
    if task.ended().is_some_and(|ended| is_dead(&ended.outcome)) {
        item.insert(LIST_KEY.to_owned(), AttributeValue::S(List::Dead.key_of(task.id.as_str())));
        item.insert(LIST_AT.to_owned(), millis(task.created_at));
    }
    item
}

/// The attributes of a task's item that an update may change: those that aren't as they were, before and after. One
/// that is only there before is gone; one that is there twice may still be the same.
pub(crate) fn changes(before: &Task, after: &Task) -> Result<(Item, Item), StoreError> {
    let difference = record::difference(storable(before).as_ref(), storable(after).as_ref(), &IN_KEYS)
        .map_err(|_| corrupt(format!("the record of task {} can't be serialised", after.id)))?;
    Ok(difference.between(added(before), added(after)))
}

/// A place in the due index as attributes. They are written together or not at all: half of a new place and half of
/// one that a tick wrote meanwhile would be a place that no decision asked for.
pub(crate) fn due_attributes(due: Due) -> [(&'static str, AttributeValue); 3] {
    [
        (DUE_SHARD, shard_value(due.shard)),
        (DUE_AT, millis(due.at)),
        (DUE_KIND, AttributeValue::S(due.kind.letter().to_owned())),
    ]
}

/// A shard as the index's key has it.
pub(crate) fn shard_value(shard: u16) -> AttributeValue {
    AttributeValue::S(shard.to_string())
}

/// The kind of a due slot, by its stored name.
pub(crate) fn kind_named(name: &AttributeValue) -> Option<DueKind> {
    DueKind::of_letter(name.as_s().ok()?)
}

/// Reads the record of this id.
pub(crate) fn to_record(id: &RecordId, item: Item) -> Result<Record, StoreError> {
    Ok(match id {
        RecordId::Task(_) => to_task(item)?.into(),
        RecordId::Execution(_) => to_execution(item)?.into(),
        RecordId::Cron(_) => to_cron(item)?.into(),
        RecordId::Queue(_) => to_queue(item)?.into(),
        RecordId::Operation(_) => to_operation(item)?.into(),
        RecordId::Gate(_) => to_gate(item)?.into(),
        RecordId::Tick => to_tick(item)?.into(),
        RecordId::Key(digest) => to_key(digest, item)?.into(),
    })
}

/// Its item, in a store with a list of these executions of all workflows.
pub(crate) fn of_record(record: &Record, listed: Listed) -> Result<Item, StoreError> {
    match record {
        Record::Task(task) => of_task(task),
        Record::Execution(execution) => of_execution(execution, listed),
        Record::Cron(cron) => of_cron(cron),
        Record::Queue(queue) => of_queue(queue),
        Record::Operation(operation) => of_operation(operation),
        Record::Gate(gate) => of_gate(gate),
        Record::Tick(tick) => of_tick(tick),
        Record::Key(key) => of_key(key),
    }
}

/// The id in the key of an item that should be the record of such a thing.
pub(crate) fn own_id<T: TryFrom<RecordId>>(item: &Item, what: &str) -> Result<T, StoreError> {
    let id = string(item, PK).and_then(key::record_id).and_then(|id| T::try_from(id).ok());
    id.ok_or_else(|| corrupt(format!("an item that should be that of a record ({what}) has another key")))
}

/// The item of a record in its own serialised form, without its entries in lists.
pub(crate) fn of_whole<'a, T: Serialize>(record: &'a T, id: &RecordId, what: &str) -> Result<Item, StoreError>
where
    Head: From<&'a T>,
{
    let mut item =
        to_item(record).map_err(|_| corrupt(format!("the record of {what} {id} can't be serialised")))?;
    for known in IN_KEYS {
        item.remove(known);
    }
    item.extend(Key::of(id).attributes());
    item.extend(head_attributes(&Head::from(record)));
    Ok(item)
}

/// The attributes of a record's due slot and expiry.
pub(crate) fn head_attributes(head: &Head) -> Item {
    let mut item = Item::new();
    if let Some(due) = head.due {
        item.extend(due_attributes(due).map(|(name, value)| (name.to_owned(), value)));
    }
    if let Some(expires_at) = head.expires_at {
        item.insert(TTL.to_owned(), seconds(expires_at));
    }
    item
}

/// Reads a record from an item in its own serialised form, and its due slot. The format is checked before anything else.
pub(crate) fn to_whole<I, T>(mut item: Item, format: u8, what: &str) -> Result<(T, Option<Due>), StoreError>
where
    I: TryFrom<RecordId> + Display,
    T: DeserializeOwned,
{
    let id: I = own_id(&item, what)?;
    let name = format!("{what} {id}");
    check_format(&item, format, &name)?;
    let due = read_due(&item, &name)?;
    item.insert(field::ID.to_owned(), AttributeValue::S(id.to_string()));
    // What serde has to say of a value it can't read quotes the value, and that may be a payload.
    let record =
        from_item(item).map_err(|_| corrupt(format!("the item of {name} isn't of its own format")))?;
    Ok((record, due))
}

pub(crate) fn to_task(item: Item) -> Result<Task, StoreError> {
    let (task, due) = to_whole::<TaskId, Task>(item, FORMAT, "task")?;
    Ok(Task { due, ..task })
}

/// Refuses an item of any other format than this one.
pub(crate) fn check_format(item: &Item, expected: u8, what: &str) -> Result<(), StoreError> {
    let found = item.get(attribute::FORMAT).and_then(|value| value.as_n().ok());
    match found {
        Some(found) if *found == expected.to_string() => Ok(()),
        Some(found) => {
            Err(corrupt(format!("{what} is stored in format {found}, where this build reads {expected}")))
        }
        None => Err(corrupt(format!("{what} is stored without a format, where this build reads {expected}"))),
    }
}

/// A record's place in the due index, if it has one.
pub(crate) fn read_due(item: &Item, what: &str) -> Result<Option<Due>, StoreError> {
    let Some(at) = number(item, DUE_AT) else {
        return Ok(None);
    };
    let shard = string(item, DUE_SHARD).and_then(|shard| shard.parse().ok());
    let kind = item.get(DUE_KIND).and_then(kind_named);
    match (shard, kind) {
        (Some(shard), Some(kind)) => Ok(Some(Due { at: Timestamp::from_millis(at), kind, shard })),
        (_, _) => Err(corrupt(format!("{what} has only a part of its place in the due index"))),
    }
}

/// The record with its fractions as `DynamoDB` takes them.
fn storable(task: &Task) -> Cow<'_, Task> {
    let backoff = task.retry.backoff.clamp(SMALLEST_FLOAT, LARGEST_FLOAT);
    let progress = task.progress.map(|progress| if progress < SMALLEST_FLOAT { 0.0 } else { progress });
    if backoff.to_bits() == task.retry.backoff.to_bits() && progress == task.progress {
        return Cow::Borrowed(task);
    }
    let mut task = task.clone();
    task.retry.backoff = backoff;
    task.progress = progress;
    Cow::Owned(task)
}

fn is_dead(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed { .. } | Outcome::TimedOut { .. } => true,
        Outcome::Completed { .. } | Outcome::Cancelled { .. } | Outcome::Skipped => false,
    }
}

pub(crate) fn millis(at: Timestamp) -> AttributeValue {
    AttributeValue::N(at.as_millis().to_string())
}

/// An instant in seconds, rounded up, as the time to live has it.
pub(crate) fn seconds(at: Timestamp) -> AttributeValue {
    AttributeValue::N(at.as_secs_ceil().to_string())
}

pub(crate) fn string<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

pub(crate) fn number(item: &Item, name: &str) -> Option<i64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

/// The error for what should not be in the table.
pub(crate) fn corrupt(reason: String) -> StoreError {
    StoreError::Corrupt { reason }
}

#[cfg(test)]
pub(crate) mod tests;
