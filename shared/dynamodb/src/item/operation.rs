//! An operation's record as an item, and back. All operations are in one list.

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::id::OperationId;
use tickover_core::operation::{FORMAT, Operation};
use tickover_service::ports::StoreError;

use crate::attribute::{LIST_AT, LIST_KEY};
use crate::item::{Item, millis, of_whole, to_whole};
use crate::page::list::List;

pub(crate) fn of_operation(record: &Operation) -> Result<Item, StoreError> {
    let mut item = of_whole(record, &record.id.clone().into(), "operation")?;
    let list = List::Operations.key_of(record.id.as_str());
    item.insert(LIST_KEY.to_owned(), AttributeValue::S(list));
    item.insert(LIST_AT.to_owned(), millis(record.created_at));
    Ok(item)
}

pub(crate) fn to_operation(item: Item) -> Result<Operation, StoreError> {
    let (operation, due) = to_whole::<OperationId, Operation>(item, FORMAT, "operation")?;
    Ok(Operation { due, ..operation })
}

#[cfg(test)]
mod tests;
