//! One of the index's keys that a list is spread over, while a page is being read.

use std::collections::VecDeque;

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_service::ports::StoreError;

use super::{KEYS, List, Place};
use crate::attribute::LIST_AT;
use crate::error::Failure;
use crate::item::Item;
use crate::page::{LIMIT_MAX, bounded};
use crate::store::DynamoStore;

/// Entries that one is asked for at least: so many cost no more than one would.
const FIRST_MIN: usize = 16;

/// What is known of a key: the records next in order, and where it goes on.
#[derive(Debug)]
pub(super) struct Lane {
    key: String,
    /// Next in order, the order among those of one instant included.
    ready: VecDeque<Place>,
    /// Those of the last instant that was read: the index gives them in no order, and there may be more.
    held: Vec<Place>,
    start: Option<Item>,
    is_read: bool,
    limit: usize,
}

impl Lane {
    /// Nothing is known yet of this key, which is to give its share of a page.
    pub(super) fn new(key: String, page: usize) -> Self {
        // Twice the share, because ids spread evenly only in the long run.
        let limit = (2 * page.div_ceil(usize::from(KEYS))).max(FIRST_MIN);
        Self { key, ready: VecDeque::new(), held: Vec::new(), start: None, is_read: false, limit }
    }

    pub(super) fn first(&self) -> Option<&Place> {
        self.ready.front()
    }

    pub(super) fn take(&mut self) -> Option<Place> {
        self.ready.pop_front()
    }

    /// Whether it has to be read before it is known which record comes next.
    pub(super) fn is_dry(&self) -> bool {
        self.ready.is_empty() && !self.is_read
    }

    /// Whether it has no more records.
    pub(super) fn is_over(&self) -> bool {
        self.ready.is_empty() && self.is_read
    }

    /// Reads on until the next record is known, or that there is none.
    pub(super) async fn fill(
        &mut self,
        store: &DynamoStore,
        list: List<'_>,
        behind: Option<&Place>,
    ) -> Result<(), StoreError> {
        while self.is_dry() {
            let mut query = store.list_query(&self.key).scan_index_forward(!list.is_latest_first());
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
            self.add(read.iter().filter_map(Place::of), list, behind);
        }
        Ok(())
    }

    fn add(&mut self, read: impl Iterator<Item = Place>, list: List<'_>, behind: Option<&Place>) {
        let is_next = |place: &Place| behind.is_none_or(|behind| list.compare(place, behind).is_gt());
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
