//! The records of a run: in the memory store, whose conditions are exact, and in some runs in `SQLite` as well.
//!
//! Then each call is made to both, and a run in which they ever differ fails. So `SQLite` is tested with what crashes,
//! frozen processes and late writes leave behind, and not only with calls made up at random.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures::FutureExt as _;
use tickover_core::decision::Write;
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Parent, Slot};
use tickover_core::gate::Waiter;
use tickover_core::id::{BlobId, ExecutionId, GateId, Incarnation, RecordId, TaskId, WorkflowName};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::record::Record;
use tickover_core::time::Timestamp;
use tickover_service::memory::MemoryStore;
use tickover_service::memory::store::Item;
use tickover_service::ports::{
    Collection, Consistency, DueEntry, DueRange, Listing, Page, Store, StoreError, StoreTraits,
};
use tickover_sqlite::SqliteStore;

/// After so many commits, all rows are compared with their records.
const ROWS_COMPARED_EACH: u64 = 20;

/// Both stores, or one.
pub struct Table {
    seed: u64,
    /// The exact one. What is written here alone, the other one doesn't have.
    pub memory: MemoryStore,
    sqlite: Option<SqliteStore>,
    commits: AtomicU64,
}

impl Table {
    /// An empty table.
    ///
    /// # Panics
    ///
    /// If there is no memory for a database.
    #[expect(clippy::expect_used, reason = "a database in memory can always be made")]
    pub fn new(seed: u64, with_sqlite: bool) -> Self {
        let sqlite = with_sqlite.then(|| SqliteStore::memory().expect("a database in memory"));
        Self { seed, memory: MemoryStore::new(), sqlite, commits: AtomicU64::new(0) }
    }

    /// Every item, with the instant from which it may be deleted; an item without an instant stays.
    pub fn expiries(&self) -> Vec<(Item, Option<Timestamp>)> {
        self.memory.expiries()
    }

    /// Deletes those expired items for which `goes` returns true. From `SQLite`, all expired ones are deleted.
    ///
    /// # Panics
    ///
    /// If the stores differ, as every call does.
    pub fn delete_expired(&self, now: Timestamp, goes: impl FnMut(&Item) -> bool) -> Vec<Item> {
        let deleted = self.memory.delete_expired(now, goes);
        if let Some(sqlite) = &self.sqlite {
            let count = sqlite.delete_expired(now).now_or_never().and_then(Result::ok);
            assert_eq!(count, Some(deleted.len()), "seed {}: of {deleted:?}, SQLite deleted", self.seed);
        }
        deleted
    }

    /// Looks now and then whether the columns of `SQLite` agree with the records.
    fn compare_rows(&self) {
        let Some(sqlite) = &self.sqlite else { return };
        if self.commits.fetch_add(1, Ordering::Relaxed).is_multiple_of(ROWS_COMPARED_EACH) {
            let deviations = sqlite.deviations();
            let agree = deviations.as_ref().is_ok_and(Vec::is_empty);
            assert!(agree, "seed {}: {deviations:?}", self.seed);
        }
    }

    /// The answer of both stores to a call.
    async fn both<'a, T: Debug + PartialEq>(
        &'a self,
        call: impl Fn(&'a dyn Store) -> futures::future::BoxFuture<'a, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let answer = call(&self.memory).await;
        if let Some(sqlite) = &self.sqlite {
            let other = call(sqlite).await;
            assert!(is_same(&answer, &other), "seed {}: memory {answer:?}\nSQLite {other:?}", self.seed);
        }
        answer
    }
}

/// Reasons are only for the log.
fn is_same<T: PartialEq>(one: &Result<T, StoreError>, other: &Result<T, StoreError>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one == other,
        (Err(StoreError::Conflict { current: one }), Err(StoreError::Conflict { current: other })) => {
            one.as_ref() == other.as_ref()
        }
        (Err(one), Err(other)) => std::mem::discriminant(one) == std::mem::discriminant(other),
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}

#[async_trait]
impl Store for Table {
    async fn record(&self, id: &RecordId, consistency: Consistency) -> Result<Option<Record>, StoreError> {
        self.both(|store| store.record(id, consistency)).await
    }

    async fn records(&self, ids: &[RecordId]) -> Result<Vec<Record>, StoreError> {
        self.both(|store| store.records(ids)).await
    }

    async fn collection(
        &self,
        of: Collection,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Record>, StoreError> {
        self.both(|store| store.collection(of, limit, cursor)).await
    }

    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        let answer = self.both(|store| store.commit(writes)).await;
        self.compare_rows();
        answer
    }

    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError> {
        self.both(|store| store.put_blob(at, body)).await
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError> {
        self.both(|store| store.blob(id)).await
    }

    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError> {
        self.both(|store| store.due(range, limit, cursor)).await
    }

    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        self.both(|store| store.list(listing, limit, cursor)).await
    }

    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        self.both(|store| store.list_executions(workflow, limit, cursor)).await
    }

    async fn put_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.both(|store| store.put_segment(id, key, segment, expires_at)).await
    }

    async fn segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
        after: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        // Those of one number, of which at most one is in the journal, are in no order.
        let sorted = |mut segments: Vec<(SegmentKey, Segment)>| {
            segments.sort_unstable_by_key(|(key, _)| *key);
            segments
        };
        self.both(|store| Box::pin(async { store.segments(id, incarnation, run, after).await.map(sorted) }))
            .await
    }

    async fn join(&self, parent: &Parent, slot: Slot, expires_at: Timestamp) -> Result<u16, StoreError> {
        self.both(|store| store.join(parent, slot, expires_at)).await
    }

    async fn waiters(&self, gate: &GateId, after: &str, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.both(|store| store.waiters(gate, after, limit)).await
    }

    async fn next_line(&self, part: u8, after: Option<&GateId>) -> Result<Option<GateId>, StoreError> {
        self.both(|store| store.next_line(part, after)).await
    }

    fn traits(&self) -> StoreTraits<'_> {
        StoreTraits::default()
    }
}
