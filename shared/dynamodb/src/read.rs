//! Reads by key: one item, or a batch, with repetitions for what `DynamoDB` leaves out of a batch.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::{KeysAndAttributes, ReturnConsumedCapacity};
use tickover_service::ports::{Consistency, StoreError};

use crate::error::{Failure, unbuildable};
use crate::item::Item;
use crate::key::Key;
use crate::store::DynamoStore;

/// The most keys that `DynamoDB` takes in one batch.
const BATCH_MAX: usize = 100;
/// How often the rest of a batch is requested again without any progress.
const FRUITLESS_MAX: u32 = 5;
const FIRST_WAIT_MS: u64 = 10;

impl DynamoStore {
    pub(crate) async fn read(&self, key: Key, consistency: Consistency) -> Result<Option<Item>, StoreError> {
        self.meter.request();
        let output = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key.attributes()))
            .consistent_read(consistency == Consistency::Strong)
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
            .send()
            .await
            .map_err(|error| Failure::from(error).into_store_error())?;
        self.meter.read(&output.consumed_capacity);
        Ok(output.item)
    }

    /// The items of these keys, in any order, absent ones left out.
    pub(crate) async fn read_all(
        &self,
        keys: impl IntoIterator<Item = Key>,
    ) -> Result<Vec<Item>, StoreError> {
        // DynamoDB refuses a batch with the same key twice.
        let mut seen = HashSet::new();
        let keys = keys.into_iter().filter(|key| seen.insert(key.pk.clone()));
        let keys: Vec<Item> = keys.map(Key::attributes).collect();
        let mut items = Vec::with_capacity(keys.len());
        for batch in keys.chunks(BATCH_MAX) {
            self.read_batch(batch.to_vec(), &mut items).await?;
        }
        Ok(items)
    }

    /// Reads a batch that may be answered in part: items that are too large for one answer come with the next;
    /// throttled items come after a wait.
    async fn read_batch(&self, mut keys: Vec<Item>, items: &mut Vec<Item>) -> Result<(), StoreError> {
        let mut fruitless = 0;
        while !keys.is_empty() {
            let before = items.len();
            keys = self.read_some(keys, items).await?;
            if keys.is_empty() {
                break;
            }
            fruitless = if items.len() > before { 0 } else { fruitless + 1 };
            if fruitless > FRUITLESS_MAX {
                return Err(StoreError::Throttled);
            }
            tokio::time::sleep(wait(fruitless)).await;
        }
        Ok(())
    }

    /// One request; returns the keys that were left out.
    async fn read_some(&self, keys: Vec<Item>, items: &mut Vec<Item>) -> Result<Vec<Item>, StoreError> {
        let wanted = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true);
        let wanted = wanted.build().map_err(|error| unbuildable(&error))?;
        self.meter.request();
        let output = self
            .client
            .batch_get_item()
            .request_items(&self.table, wanted)
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
            .send()
            .await
            .map_err(|error| Failure::from(error).into_store_error())?;
        self.meter.read(output.consumed_capacity());
        items.extend(output.responses.unwrap_or_default().into_values().flatten());
        let left: HashMap<String, KeysAndAttributes> = output.unprocessed_keys.unwrap_or_default();
        Ok(left.into_values().flat_map(|left| left.keys).collect())
    }
}

/// A random wait, up to a bound that doubles each time, so that callers that were refused together don't come back
/// together.
fn wait(fruitless: u32) -> Duration {
    let longest = FIRST_WAIT_MS << fruitless.min(FRUITLESS_MAX);
    Duration::from_millis(rand::random_range(0..=longest))
}

#[cfg(test)]
mod tests;
