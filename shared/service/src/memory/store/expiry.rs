//! Deletion by time to live, for tests: an item is deleted some time after its instant, and never before it.

use tickover_core::execution::journal::SegmentKey;
use tickover_core::id::{BlobId, ExecutionId, GateId, RecordId};
use tickover_core::time::Timestamp;

use super::{Join, MemoryStore, Records};

/// An item of the table that may have a time to live.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Record(RecordId),
    Segment(ExecutionId, SegmentKey),
    Join(Join),
    Blob(BlobId),
    /// A task that waits at a key, by the key of its item.
    Waiter(GateId, String),
}

impl MemoryStore {
    /// Every item, with the instant from which it may be deleted; an item without an instant stays.
    pub fn expiries(&self) -> Vec<(Item, Option<Timestamp>)> {
        self.records().expiries()
    }

    /// Deletes those expired items for which `goes` returns true: `DynamoDB` deletes expired items late and in any
    /// order.
    pub fn delete_expired(&self, now: Timestamp, mut goes: impl FnMut(&Item) -> bool) -> Vec<Item> {
        let mut records = self.records();
        let expired = records.expiries().into_iter().filter(|(_, at)| at.is_some_and(|at| at <= now));
        let gone: Vec<Item> = expired.map(|(item, _)| item).filter(|item| goes(item)).collect();
        for item in &gone {
            records.delete(item);
        }
        gone
    }
}

impl Records {
    fn expiries(&self) -> Vec<(Item, Option<Timestamp>)> {
        // Queues and ticks keep their records.
        let stays = |id: &RecordId| matches!(id, RecordId::Queue(_) | RecordId::Tick);
        let records = self.by_id.iter().filter(|(id, _)| !stays(id));
        let records = records.map(|(id, record)| (Item::Record(id.clone()), record.head().expires_at));
        // Idempotency keys come last, after the parts of records.
        let (keys, records): (Vec<_>, Vec<_>) =
            records.partition(|(item, _)| matches!(item, Item::Record(RecordId::Key(_))));
        let segments =
            self.segments.iter().map(|((id, key), kept)| (Item::Segment(id.clone(), *key), kept.expires_at));
        let joins = self.joins.iter().map(|(join, kept)| (Item::Join(join.clone()), kept.expires_at));
        let blobs = self.blobs.iter().map(|(id, kept)| (Item::Blob(*id), kept.expires_at));
        let waiters = self
            .waiters
            .iter()
            .map(|((gate, key), kept)| (Item::Waiter(gate.clone(), key.clone()), kept.expires_at));
        records.into_iter().chain(waiters).chain(segments).chain(joins).chain(blobs).chain(keys).collect()
    }

    fn delete(&mut self, item: &Item) {
        match item {
            Item::Record(id) => drop(self.by_id.remove(id)),
            Item::Segment(id, key) => drop(self.segments.remove(&(id.clone(), *key))),
            Item::Join(join) => drop(self.joins.remove(join)),
            Item::Blob(id) => drop(self.blobs.remove(id)),
            Item::Waiter(gate, key) => drop(self.waiters.remove(&(gate.clone(), key.clone()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use tickover_core::payload::{BlobRef, Json};

    use super::*;
    use crate::ports::Store as _;

    #[tokio::test]
    async fn an_item_is_deleted_after_its_instant_and_never_before() {
        let store = MemoryStore::new();
        let at = |ms| Timestamp::from_millis(ms);
        let blob = |byte: u8, expires_at| BlobRef {
            id: BlobId::from_bytes([byte; BlobId::LEN]),
            bytes: 1,
            expires_at,
        };
        let (soon, later) = (blob(1, at(1_000)), blob(2, at(5_000)));
        for one in [&soon, &later] {
            store.put_blob(one, &Json::string("x")).await.unwrap();
        }
        assert_eq!(store.delete_expired(at(999), |_| true), []);
        assert_eq!(store.delete_expired(at(1_000), |_| false), []);
        assert_eq!(store.delete_expired(at(1_000), |_| true), [Item::Blob(soon.id)]);
        assert_eq!(store.blob(&soon.id).await.unwrap(), None);
        assert_eq!(store.expiries(), [(Item::Blob(later.id), Some(later.expires_at))]);
    }
}
