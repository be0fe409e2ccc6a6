//! The record of a key with a limit as an item, and back; and the items of those who wait at it.

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::gate::{FORMAT, Gate, Waiter};
use tickover_core::id::GateId;
use tickover_core::time::Timestamp;
use tickover_service::ports::StoreError;

use crate::attribute::{TTL, gate as own};
use crate::item::{Item, corrupt, of_whole, seconds, string, to_whole};
use crate::key::Key;

pub(crate) fn of_gate(record: &Gate) -> Result<Item, StoreError> {
    of_whole(record, &record.id.clone().into(), "key")
}

pub(crate) fn to_gate(item: Item) -> Result<Gate, StoreError> {
    to_whole::<GateId, Gate>(item, FORMAT, "key").map(|(gate, _)| gate)
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
