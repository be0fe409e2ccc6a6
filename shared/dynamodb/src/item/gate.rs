//! The record of a key with a limit as an item, and back; and the items of those who wait at it.
//!
//! As with operations, a key's item is the record's own serialised form, except that the id is in the key.

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::gate::{FORMAT, Gate, Waiter};
use tickover_core::id::GateId;
use tickover_core::time::Timestamp;
use tickover_service::ports::StoreError;

use crate::attribute::{PK, TTL, gate as own, task as field};
use crate::item::record::{from_item, to_item};
use crate::item::{Item, check_format, corrupt, seconds, string};
use crate::key::{self, Key};

pub(crate) fn of_gate(record: &Gate) -> Result<Item, StoreError> {
    let mut item = to_item(record)
        .map_err(|_| corrupt(format!("the record of key {} can't be serialised", record.id)))?;
    item.remove(field::ID);
    item.extend(Key::gate(&record.id).attributes());
    if let Some(expires_at) = record.expires_at() {
        item.insert(TTL.to_owned(), seconds(expires_at));
    }
    Ok(item)
}

/// Reads the record of a key. The format is checked before anything else.
pub(crate) fn to_gate(mut item: Item) -> Result<Gate, StoreError> {
    let id = string(&item, PK).and_then(key::gate_id);
    let id = id.ok_or_else(|| {
        corrupt("an item that should be that of a key with a limit has another record's key".to_owned())
    })?;
    check_format(&item, FORMAT, &format!("the record of key {id}"))?;
    item.insert(field::ID.to_owned(), AttributeValue::S(id.to_string()));
    from_item(item).map_err(|_| corrupt(format!("the item of key {id} isn't of its own format")))
}

/// The item of one that waits.
pub(crate) fn of_waiter(gate: &GateId, waiter: &Waiter, expires_at: Timestamp) -> Result<Item, StoreError> {
    let mut item = Key::waiter(gate, waiter).attributes();
    let fields = serde_json::to_string(waiter)
        .map_err(|_| corrupt(format!("what waits for a place of key {gate} can't be serialised")))?;
    item.insert(own::WAITER.to_owned(), AttributeValue::S(fields));
    item.insert(TTL.to_owned(), seconds(expires_at));
    Ok(item)
}

pub(crate) fn to_waiter(item: &Item) -> Result<Waiter, StoreError> {
    let waiter = string(item, own::WAITER).and_then(|fields| serde_json::from_str(fields).ok());
    waiter.ok_or_else(|| corrupt("the item of one that waits for a place isn't of its own format".to_owned()))
}

#[cfg(test)]
mod tests;
