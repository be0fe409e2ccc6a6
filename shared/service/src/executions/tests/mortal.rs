//! A store whose process crashes: after a number of writes, all of its calls fail.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tickover_core::cron::Cron;
use tickover_core::decision::Write;
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Execution, Parent, Slot};
use tickover_core::gate::{Gate, Waiter};
use tickover_core::id::{
    BlobId, CronId, ExecutionId, Fingerprint, GateId, Incarnation, OperationId, QueueName, TaskId,
    WorkflowName,
};
use tickover_core::operation::Operation;
use tickover_core::payload::{BlobRef, Json};
use tickover_core::queue::{KeyRecord, QueueRecord};
use tickover_core::task::Task;
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;

use crate::memory::MemoryStore;
use crate::ports::{DueEntry, DueRange, Listing, Page, Store, StoreError, StoreTraits};

/// A number of writes that is never reached.
pub(crate) const NEVER: u64 = u64::MAX;

/// The store, and how many writes the process has made and may make.
pub(crate) struct CrashingStore {
    pub(crate) inner: Arc<MemoryStore>,
    pub(crate) writes: AtomicU64,
    pub(crate) last: AtomicU64,
    /// An execution whose record only a newer build can read.
    pub(crate) unreadable: Mutex<Option<ExecutionId>>,
    /// Whether other calls go on before each write.
    pub(crate) yields: AtomicBool,
    /// What the next reads of the ticks' record answer.
    pub(crate) stale_ticks: Mutex<Vec<Option<TickRecord>>>,
    /// The answer of all calls from then on.
    pub(crate) says: StoreError,
}

impl CrashingStore {
    fn lives(&self) -> Result<(), StoreError> {
        let is_dead = self.writes.load(Ordering::SeqCst) >= self.last.load(Ordering::SeqCst);
        if is_dead { Err(self.says.clone()) } else { Ok(()) }
    }

    fn can_read(&self, ids: &[ExecutionId]) -> Result<(), StoreError> {
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
    async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        self.lives()?;
        self.inner.task(id).await
    }

    async fn tasks(&self, ids: &[TaskId]) -> Result<Vec<Task>, StoreError> {
        self.lives()?;
        self.inner.tasks(ids).await
    }

    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        if self.yields.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        self.lives()?;
        let result = self.inner.commit(writes).await;
        self.wrote(result)
    }

    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError> {
        self.lives()?;
        let result = self.inner.put_blob(at, body).await;
        self.wrote(result)
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError> {
        self.lives()?;
        self.inner.blob(id).await
    }

    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError> {
        self.lives()?;
        self.inner.due(range, limit, cursor).await
    }

    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        self.lives()?;
        self.inner.list(listing, limit, cursor).await
    }

    async fn execution(&self, id: &ExecutionId) -> Result<Option<Execution>, StoreError> {
        self.lives()?;
        self.can_read(std::slice::from_ref(id))?;
        self.inner.execution(id).await
    }

    async fn executions(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>, StoreError> {
        self.lives()?;
        self.can_read(ids)?;
        self.inner.executions(ids).await
    }

    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        self.lives()?;
        self.inner.list_executions(workflow, limit, cursor).await
    }

    async fn put_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.lives()?;
        let result = self.inner.put_segment(id, key, segment, expires_at).await;
        self.wrote(result)
    }

    async fn segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        self.lives()?;
        self.inner.segments(id, incarnation, run).await
    }

    async fn join(&self, parent: &Parent, slot: Slot, expires_at: Timestamp) -> Result<u16, StoreError> {
        self.lives()?;
        let result = self.inner.join(parent, slot, expires_at).await;
        self.wrote(result)
    }

    async fn cron(&self, id: &CronId) -> Result<Option<Cron>, StoreError> {
        self.lives()?;
        self.inner.cron(id).await
    }

    async fn crons(&self, limit: usize, cursor: Option<&str>) -> Result<Page<Cron>, StoreError> {
        self.lives()?;
        self.inner.crons(limit, cursor).await
    }

    async fn queue(&self, name: &QueueName) -> Result<Option<QueueRecord>, StoreError> {
        self.lives()?;
        self.inner.queue(name).await
    }

    async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        self.lives()?;
        self.inner.queues().await
    }

    async fn gate(&self, id: &GateId) -> Result<Option<Gate>, StoreError> {
        self.lives()?;
        self.inner.gate(id).await
    }

    async fn waiters(&self, gate: &GateId, after: &str, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.lives()?;
        self.inner.waiters(gate, after, limit).await
    }

    async fn next_line(&self, part: u8, after: Option<&GateId>) -> Result<Option<GateId>, StoreError> {
        self.lives()?;
        self.inner.next_line(part, after).await
    }

    async fn operation(&self, id: &OperationId) -> Result<Option<Operation>, StoreError> {
        self.lives()?;
        self.inner.operation(id).await
    }

    async fn operations(&self, limit: usize, cursor: Option<&str>) -> Result<Page<Operation>, StoreError> {
        self.lives()?;
        self.inner.operations(limit, cursor).await
    }

    async fn tick_record(&self) -> Result<Option<TickRecord>, StoreError> {
        self.lives()?;
        if let Some(stale) = self.stale_ticks.lock().unwrap().pop() {
            return Ok(stale);
        }
        self.inner.tick_record().await
    }

    async fn key(&self, digest: &Fingerprint) -> Result<Option<KeyRecord>, StoreError> {
        self.lives()?;
        self.inner.key(digest).await
    }

    fn traits(&self) -> StoreTraits<'_> {
        self.inner.traits()
    }
}
