//! A store whose process crashes: after a number of writes, all of its calls fail.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tickover_core::decision::Write;
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Parent, Slot};
use tickover_core::gate::Waiter;
use tickover_core::id::{BlobId, ExecutionId, GateId, Incarnation, RecordId, TaskId, WorkflowName};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::record::Record;
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;

use crate::memory::MemoryStore;
use crate::ports::{
    Clock, Collection, Consistency, DueEntry, DueRange, Listing, Page, Store, StoreError, StoreTraits,
};

/// A number of writes that is never reached.
pub(crate) const NEVER: u64 = u64::MAX;

/// The store, and how many writes the process has made and may make.
pub(crate) struct CrashingStore {
    pub(crate) inner: Arc<MemoryStore>,
    pub(crate) writes: AtomicU64,
    pub(crate) last: AtomicU64,
    /// An execution whose record only a newer build can read.
    pub(crate) unreadable: Mutex<Option<RecordId>>,
    pub(crate) calls: AtomicU64,
    /// How many segments were read.
    pub(crate) segments: AtomicU64,
    /// How long each call takes, by this clock.
    pub(crate) takes_ms: AtomicU64,
    clock: Arc<dyn Clock>,
    /// Whether other calls go on before each write.
    pub(crate) yields: AtomicBool,
    /// What the next reads of the ticks' record answer.
    pub(crate) stale_ticks: Mutex<Vec<Option<TickRecord>>>,
    /// The answer of all calls from then on.
    pub(crate) says: StoreError,
}

impl CrashingStore {
    pub(crate) fn new(clock: Arc<dyn Clock>, says: StoreError) -> Self {
        Self {
            inner: Arc::new(MemoryStore::new()),
            writes: AtomicU64::new(0),
            last: AtomicU64::new(NEVER),
            unreadable: Mutex::default(),
            calls: AtomicU64::new(0),
            segments: AtomicU64::new(0),
            takes_ms: AtomicU64::new(0),
            clock,
            yields: AtomicBool::new(false),
            stale_ticks: Mutex::default(),
            says,
        }
    }

    /// Counts a call, and waits for its time: calls at the same time wait together.
    async fn call(&self) -> Result<(), StoreError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let takes = Millis::new(self.takes_ms.load(Ordering::SeqCst));
        if !takes.is_zero() {
            let until = self.clock.now().plus(takes);
            tokio::task::yield_now().await;
            self.clock.sleep_until(until).await;
        }
        self.lives()
    }

    fn lives(&self) -> Result<(), StoreError> {
        let is_dead = self.writes.load(Ordering::SeqCst) >= self.last.load(Ordering::SeqCst);
        if is_dead { Err(self.says.clone()) } else { Ok(()) }
    }

    fn can_read(&self, ids: &[RecordId]) -> Result<(), StoreError> {
        match &*self.unreadable.lock().unwrap() {
            Some(id) if ids.contains(id) => Err(StoreError::Corrupt { reason: "a newer format".to_owned() }),
            Some(_) | None => Ok(()),
        }
    }

    fn wrote<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if result.is_ok() {
            self.writes.fetch_add(1, Ordering::SeqCst);
        }
        self.lives()?;
        result
    }
}

#[async_trait]
impl Store for CrashingStore {
    async fn record(&self, id: &RecordId, consistency: Consistency) -> Result<Option<Record>, StoreError> {
        self.call().await?;
        self.can_read(std::slice::from_ref(id))?;
        if *id == RecordId::Tick
            && let Some(stale) = self.stale_ticks.lock().unwrap().pop()
        {
            return Ok(stale.map(Record::from));
        }
        self.inner.record(id, consistency).await
    }

    async fn records(&self, ids: &[RecordId]) -> Result<Vec<Record>, StoreError> {
        self.call().await?;
        self.can_read(ids)?;
        self.inner.records(ids).await
    }

    async fn collection(
        &self,
        of: Collection,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Record>, StoreError> {
        self.call().await?;
        self.inner.collection(of, limit, cursor).await
    }

    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        if self.yields.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        self.call().await?;
        let result = self.inner.commit(writes).await;
        self.wrote(result)
    }

    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError> {
        self.call().await?;
        let result = self.inner.put_blob(at, body).await;
        self.wrote(result)
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError> {
        self.call().await?;
        self.inner.blob(id).await
    }

    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError> {
        self.call().await?;
        self.inner.due(range, limit, cursor).await
    }

    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        self.call().await?;
        self.inner.list(listing, limit, cursor).await
    }

    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        self.call().await?;
        self.inner.list_executions(workflow, limit, cursor).await
    }

    async fn put_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.call().await?;
        let result = self.inner.put_segment(id, key, segment, expires_at).await;
        self.wrote(result)
    }

    async fn segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
        after: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        self.call().await?;
        let found = self.inner.segments(id, incarnation, run, after).await?;
        self.segments.fetch_add(found.len() as u64, Ordering::SeqCst);
        Ok(found)
    }

    async fn join(&self, parent: &Parent, slot: Slot, expires_at: Timestamp) -> Result<u16, StoreError> {
        self.call().await?;
        let result = self.inner.join(parent, slot, expires_at).await;
        self.wrote(result)
    }

    async fn waiters(&self, gate: &GateId, after: &str, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.call().await?;
        self.inner.waiters(gate, after, limit).await
    }

    async fn next_line(&self, part: u8, after: Option<&GateId>) -> Result<Option<GateId>, StoreError> {
        self.call().await?;
        self.inner.next_line(part, after).await
    }

    fn traits(&self) -> StoreTraits<'_> {
        self.inner.traits()
    }
}
