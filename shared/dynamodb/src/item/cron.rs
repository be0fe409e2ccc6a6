//! A cron's record as an item, and back. All crons that aren't deleted are in one list.

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::cron::{Cron, FORMAT};
use tickover_core::id::CronId;
use tickover_service::ports::StoreError;

use crate::attribute::{LIST_AT, LIST_KEY};
use crate::item::{Item, millis, of_whole, to_whole};
use crate::page::list::List;

pub(crate) fn of_cron(record: &Cron) -> Result<Item, StoreError> {
    let mut item = of_whole(record, &record.id.clone().into(), "cron")?;
    if !record.is_deleted() {
        let list = List::Crons.key_of(record.id.as_str());
        item.insert(LIST_KEY.to_owned(), AttributeValue::S(list));
        item.insert(LIST_AT.to_owned(), millis(record.created_at));
    }
    Ok(item)
}

pub(crate) fn to_cron(item: Item) -> Result<Cron, StoreError> {
    let (cron, due) = to_whole::<CronId, Cron>(item, FORMAT, "cron")?;
    Ok(Cron { due, ..cron })
}
