//! A store of which each write is followed by something: its answer is lost, or a test looks at what is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use tickover_core::decision::Write;
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Parent, Slot};
use tickover_core::gate::Waiter;
use tickover_core::id::{BlobId, ExecutionId, GateId, Incarnation, RecordId, TaskId, WorkflowName};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::record::Record;
use tickover_core::time::Timestamp;
use tickover_service::ports::{
    Collection, Consistency, DueEntry, DueRange, Listing, Page, Store, StoreError, StoreTraits,
};

/// Applies every write, and calls a function after it with its number, counted from 0. If that returns false, the answer is
/// lost.
pub struct AfterEachWrite {
    inner: Arc<dyn Store>,
    writes: AtomicU64,
    is_answered: Box<dyn Fn(u64) -> bool + Send + Sync>,
}

impl AfterEachWrite {
    pub fn new(inner: Arc<dyn Store>, is_answered: impl Fn(u64) -> bool + Send + Sync + 'static) -> Self {
        Self { inner, writes: AtomicU64::new(0), is_answered: Box::new(is_answered) }
    }

    /// Loses the answers to the writes with these numbers.
    pub fn losing(inner: Arc<dyn Store>, lost: std::ops::Range<u64>) -> Self {
        Self::new(inner, move |number| !lost.contains(&number))
    }

    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }

    fn answer<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        let number = self.writes.fetch_add(1, Ordering::SeqCst);
        if !(self.is_answered)(number) {
            return Err(StoreError::Unavailable {
                reason: "the answer was lost".to_owned(),
                is_logged: false,
            });
        }
        answer
    }
}

#[async_trait]
impl Store for AfterEachWrite {
    async fn record(&self, id: &RecordId, consistency: Consistency) -> Result<Option<Record>, StoreError> {
        self.inner.record(id, consistency).await
    }

    async fn records(&self, ids: &[RecordId]) -> Result<Vec<Record>, StoreError> {
        self.inner.records(ids).await
    }

    async fn collection(
        &self,
        of: Collection,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Record>, StoreError> {
        self.inner.collection(of, limit, cursor).await
    }

    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        let answer = self.inner.commit(writes).await;
        self.answer(answer)
    }

    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError> {
        let answer = self.inner.put_blob(at, body).await;
        self.answer(answer)
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError> {
        self.inner.blob(id).await
    }

    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError> {
        self.inner.due(range, limit, cursor).await
    }

    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        self.inner.list(listing, limit, cursor).await
    }

    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        self.inner.list_executions(workflow, limit, cursor).await
    }

    async fn put_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let answer = self.inner.put_segment(id, key, segment, expires_at).await;
        self.answer(answer)
    }

    async fn segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
        after: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        self.inner.segments(id, incarnation, run, after).await
    }

    async fn join(&self, parent: &Parent, slot: Slot, expires_at: Timestamp) -> Result<u16, StoreError> {
        let answer = self.inner.join(parent, slot, expires_at).await;
        self.answer(answer)
    }

    async fn waiters(&self, gate: &GateId, after: &str, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.inner.waiters(gate, after, limit).await
    }

    async fn next_line(&self, part: u8, after: Option<&GateId>) -> Result<Option<GateId>, StoreError> {
        self.inner.next_line(part, after).await
    }

    fn traits(&self) -> StoreTraits<'_> {
        self.inner.traits()
    }
}
