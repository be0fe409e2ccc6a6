//! An operation's record as an item, and back.
//!
//! As with crons, an item is the record's own serialised form, except that the id is in the key, and the due slot has
//! its own attributes. All operations are in one list.

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::operation::{FORMAT, Operation};
use tickover_service::ports::StoreError;

use crate::attribute::{LIST_AT, LIST_KEY, PK, TTL, task as field};
use crate::item::record::{from_item, to_item};
use crate::item::{Item, check_format, corrupt, due_attributes, millis, read_due, seconds, string};
use crate::key::{self, Key};
use crate::page::list::List;

pub(crate) fn of_operation(record: &Operation) -> Result<Item, StoreError> {
    let mut item = to_item(record)
        .map_err(|_| corrupt(format!("the record of operation {} can't be serialised", record.id)))?;
    item.remove(field::ID);
    item.remove(field::DUE);
    item.extend(Key::operation(&record.id).attributes());
    if let Some(due) = record.due {
        item.extend(due_attributes(due).map(|(name, value)| (name.to_owned(), value)));
    }
    if let Some(expires_at) = record.expires_at() {
        item.insert(TTL.to_owned(), seconds(expires_at));
    }
    let list = List::Operations.key_of(record.id.as_str());
    item.insert(LIST_KEY.to_owned(), AttributeValue::S(list));
    item.insert(LIST_AT.to_owned(), millis(record.created_at));
    Ok(item)
}

/// Reads an operation. The format is checked before anything else.
pub(crate) fn to_operation(mut item: Item) -> Result<Operation, StoreError> {
    let id = string(&item, PK).and_then(key::operation_id);
    let id =
        id.ok_or_else(|| corrupt("an item that should be an operation has another record's key".to_owned()))?;
    check_format(&item, FORMAT, &format!("operation {id}"))?;
    let due = read_due(&item, &format!("operation {id}"))?;
    item.insert(field::ID.to_owned(), AttributeValue::S(id.to_string()));
    let mut record: Operation = from_item(item)
        .map_err(|_| corrupt(format!("the item of operation {id} isn't of its own format")))?;
    record.due = due;
    Ok(record)
}

#[cfg(test)]
mod tests;
