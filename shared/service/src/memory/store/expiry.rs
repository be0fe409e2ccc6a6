//! Deletion by time to live, for tests: an item is deleted some time after its instant, and never before it.

use tickover_core::execution::ExecutionState;
use tickover_core::execution::journal::SegmentKey;
use tickover_core::id::{BlobId, CronId, ExecutionId, Fingerprint, GateId, OperationId, TaskId};
use tickover_core::time::Timestamp;

use super::{Join, MemoryStore, Records};

/// An item of the table that may have a time to live.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Task(TaskId),
    Execution(ExecutionId),
    Cron(CronId),
    Segment(ExecutionId, SegmentKey),
    Join(Join),
    Blob(BlobId),
    Key(Fingerprint),
    Operation(OperationId),
    Gate(GateId),
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
        let tasks = self.tasks.values().map(|task| {
            let at = task.ended().map(|ended| ended.expires_at);
            (Item::Task(task.id.clone()), at)
        });
        let executions = self.executions.values().map(|execution| {
            let at = match &execution.state {
                ExecutionState::Ended(closed) => Some(closed.expires_at),
                ExecutionState::Pending(_)
                | ExecutionState::Running(_)
                | ExecutionState::Waiting(_)
                | ExecutionState::Closing(_) => None,
            };
            (Item::Execution(execution.id.clone()), at)
        });
        let crons = self.crons.values().map(|one| (Item::Cron(one.id.clone()), one.expires_at()));
        let segments =
            self.segments.iter().map(|((id, key), kept)| (Item::Segment(id.clone(), *key), kept.expires_at));
        let joins = self.joins.iter().map(|(join, kept)| (Item::Join(join.clone()), kept.expires_at));
        let blobs = self.blobs.iter().map(|(id, kept)| (Item::Blob(*id), kept.expires_at));
        let keys = self.keys.iter().map(|(digest, key)| (Item::Key(*digest), Some(key.expires_at)));
        let operations =
            self.operations.iter().map(|(id, one)| (Item::Operation(id.clone()), one.expires_at()));
        let gates = self.gates.iter().map(|(id, one)| (Item::Gate(id.clone()), one.expires_at()));
        let waiters = self
            .waiters
            .iter()
            .map(|((gate, key), kept)| (Item::Waiter(gate.clone(), key.clone()), kept.expires_at));
        let records = tasks.chain(executions).chain(crons).chain(operations).chain(gates).chain(waiters);
        records.chain(segments).chain(joins).chain(blobs).chain(keys).collect()
    }

    fn delete(&mut self, item: &Item) {
        match item {
            Item::Task(id) => drop(self.tasks.remove(id)),
            Item::Execution(id) => drop(self.executions.remove(id)),
            Item::Cron(id) => drop(self.crons.remove(id)),
            Item::Segment(id, key) => drop(self.segments.remove(&(id.clone(), *key))),
            Item::Join(join) => drop(self.joins.remove(join)),
            Item::Blob(id) => drop(self.blobs.remove(id)),
            Item::Operation(id) => drop(self.operations.remove(id)),
            Item::Gate(id) => drop(self.gates.remove(id)),
            Item::Waiter(gate, key) => drop(self.waiters.remove(&(gate.clone(), key.clone()))),
            Item::Key(digest) => drop(self.keys.remove(digest)),
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
