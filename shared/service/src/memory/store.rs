//! A store in memory, for tests and simulation: small, and exact in every condition.
//!
//! It keeps no index: what is due is looked for among all tasks. It has no clock, so nothing is deleted by age.

mod cursor;
mod write;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tickover_core::decision::Write;
use tickover_core::id::{BlobId, Fingerprint, QueueName, TaskId};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::queue::{KeyRecord, QueueRecord};
use tickover_core::task::{Outcome, Task};
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;

use crate::ports::{DueEntry, DueRange, Listing, Page, Store, StoreError};
use cursor::{Order, Place, page};

/// Records in memory. Every call is atomic, and every read sees all writes before it.
#[derive(Debug, Default)]
pub struct MemoryStore {
    records: Mutex<Records>,
}

/// All there is.
#[derive(Debug, Default)]
struct Records {
    tasks: BTreeMap<TaskId, Task>,
    blobs: BTreeMap<BlobId, Json>,
    queues: BTreeMap<QueueName, QueueRecord>,
    keys: BTreeMap<Fingerprint, KeyRecord>,
    tick: Option<TickRecord>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    /// The places of a listing's tasks, in no order.
    fn places(&self, listing: Listing) -> impl Iterator<Item = Place> {
        self.tasks.values().filter_map(move |task| {
            let at = match listing {
                Listing::Live { shard } => task.due.filter(|due| due.shard == shard).map(|due| due.at),
                Listing::Dead => died_at(task),
                Listing::All => Some(Timestamp::EPOCH),
            };
            at.map(|at| Place { at, task: task.id.clone() })
        })
    }
}

/// When a task ended that operators should know of.
fn died_at(task: &Task) -> Option<Timestamp> {
    task.ended().and_then(|ended| match ended.outcome {
        Outcome::Failed { .. } | Outcome::TimedOut { .. } => Some(ended.ended_at),
        Outcome::Completed { .. } | Outcome::Cancelled { .. } | Outcome::Skipped => None,
    })
}

#[async_trait]
impl Store for MemoryStore {
    async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        Ok(self.records().tasks.get(id).cloned())
    }

    async fn tasks(&self, ids: &[TaskId]) -> Result<Vec<Task>, StoreError> {
        let records = self.records();
        let mut found: Vec<&Task> = ids.iter().filter_map(|id| records.tasks.get(id)).collect();
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found.dedup_by(|one, other| one.id == other.id);
        Ok(found.into_iter().cloned().collect())
    }

    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        write::commit(&mut self.records(), writes)
    }

    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError> {
        self.records().blobs.insert(at.id, body.clone());
        Ok(())
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError> {
        Ok(self.records().blobs.get(id).cloned())
    }

    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError> {
        let records = self.records();
        let listing = Listing::Live { shard: range.shard };
        let within = range.from..=range.until;
        let places = records.places(listing).filter(|place| within.contains(&place.at)).collect();
        let Page { items, next } = page(places, listing, Order::Ascending, limit, cursor)?;
        let entry = |id: &TaskId| {
            let due = records.tasks.get(id)?.due?;
            Some(DueEntry { task: id.clone(), due_at: due.at, kind: due.kind })
        };
        Ok(Page { items: items.iter().filter_map(entry).collect(), next })
    }

    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        let order = match listing {
            Listing::Live { .. } | Listing::All => Order::Ascending,
            Listing::Dead => Order::Descending,
        };
        page(self.records().places(listing).collect(), listing, order, limit, cursor)
    }

    async fn queue(&self, name: &QueueName) -> Result<Option<QueueRecord>, StoreError> {
        Ok(self.records().queues.get(name).cloned())
    }

    async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        Ok(self.records().queues.values().cloned().collect())
    }

    async fn tick_record(&self) -> Result<Option<TickRecord>, StoreError> {
        Ok(self.records().tick.clone())
    }

    async fn key(&self, digest: &Fingerprint) -> Result<Option<KeyRecord>, StoreError> {
        Ok(self.records().keys.get(digest).cloned())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::conformance::store as conformance;

    #[tokio::test]
    async fn conforms() {
        conformance::run(|| async { Arc::new(MemoryStore::new()) as Arc<dyn Store> }).await;
    }
}
