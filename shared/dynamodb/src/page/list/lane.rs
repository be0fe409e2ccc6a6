//! One of the index's keys over which a list is spread, while a page is being read.

use std::collections::VecDeque;

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_service::ports::StoreError;

use super::{KEYS, List, Position};
use crate::attribute::LIST_AT;
use crate::error::Failure;
use crate::item::Item;
use crate::page::{LIMIT_MAX, bounded};
use crate::store::DynamoStore;

/// The least number of entries to ask for: this many cost no more than one.
const FIRST_MIN: usize = 16;

/// What has been read of a key: the next records in order, and where the key continues.
#[derive(Debug)]
pub(super) struct Lane {
    key: String,
    /// The next records in order, which also sorts those of one instant.
    ready: VecDeque<Position>,
    /// The records of the last instant that was read: the index returns them in no order, and there may be more of
    /// them.
    held: Vec<Position>,
    start: Option<Item>,
    is_read: bool,
    limit: usize,
}

impl Lane {
    /// A key of which nothing is read yet, and which must provide its share of a page.
    pub(super) fn new(key: String, page: usize) -> Self {
        // Twice the share, because ids are spread evenly only on average.
        let limit = (2 * page.div_ceil(usize::from(KEYS))).max(FIRST_MIN);
        Self { key, ready: VecDeque::new(), held: Vec::new(), start: None, is_read: false, limit }
    }

    pub(super) fn first(&self) -> Option<&Position> {
        self.ready.front()
    }

    pub(super) fn take(&mut self) -> Option<Position> {
        self.ready.pop_front()
    }

    /// Whether it must be read before the next record is known.
    pub(super) fn is_dry(&self) -> bool {
        self.ready.is_empty() && !self.is_read
    }

    pub(super) fn is_over(&self) -> bool {
        self.ready.is_empty() && self.is_read
    }

    /// Reads until the next record is known, or the end is reached.
    pub(super) async fn fill(
        &mut self,
        store: &DynamoStore,
        list: List<'_>,
        behind: Option<&Position>,
    ) -> Result<(), StoreError> {
        while self.is_dry() {
            let mut query = store.list_query(list, &self.key).scan_index_forward(!list.is_latest_first());
            if let Some(behind) = behind {
                let until = if list.is_latest_first() { "<=" } else { ">=" };
                query = query
                    .key_condition_expression(format!("#list = :list AND #at {until} :at"))
                    .expression_attribute_names("#at", LIST_AT)
                    .expression_attribute_values(":at", AttributeValue::N(behind.at.to_string()));
            }
            store.meter.request();
            let output = query
                .limit(bounded(self.limit))
                .set_exclusive_start_key(self.start.take())
                .send()
                .await
                .map_err(|error| Failure::from(error).into_store_error())?;
            store.meter.read(&output.consumed_capacity);
            self.limit = (self.limit * 2).min(LIMIT_MAX);
            self.is_read = output.last_evaluated_key.is_none();
            self.start = output.last_evaluated_key;
            let read = output.items.unwrap_or_default();
            self.add(read.iter().filter_map(Position::of), list, behind);
        }
        Ok(())
    }

    fn add(&mut self, read: impl Iterator<Item = Position>, list: List<'_>, behind: Option<&Position>) {
        let is_next = |place: &Position| behind.is_none_or(|behind| list.compare(place, behind).is_gt());
        self.held.extend(read.filter(is_next));
        let open_instant = self.held.last().map(|place| place.at);
        self.held.sort_unstable_by(|one, other| list.compare(one, other));
        let complete = if self.is_read {
            self.held.len()
        } else {
            self.held.iter().take_while(|place| Some(place.at) != open_instant).count()
        };
        self.ready.extend(self.held.drain(..complete));
    }
}
