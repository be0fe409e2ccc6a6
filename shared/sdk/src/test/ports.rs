//! The store and the queue of a system that may die. They count writes. When the life is over, no call returns, so that
//! the caller never continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use tickover_core::decision::Write;
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Parent, Slot};
use tickover_core::flow::Priority;
use tickover_core::gate::Waiter;
use tickover_core::id::{
    BlobId, ExecutionId, GateId, Incarnation, QueueName, RecordId, TaskId, WorkflowName,
};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::record::Record;
use tickover_core::time::Timestamp;
use tickover_service::memory::MemoryQueue;
use tickover_service::ports::{
    ClassDepth, Collection, Consistency, Depth, DueEntry, DueRange, Ids, Listing, Outgoing, Page, Queue,
    QueueError, QueueTraits, Received, Store, StoreError, StoreTraits,
};

use super::ledger::{Ledger, Life};

/// The store of a life, or without one, of the test itself.
pub(super) struct Counted {
    pub(super) inner: Arc<dyn Store>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) life: Option<Arc<Life>>,
}

impl Counted {
    async fn pend_if_over(&self) {
        if let Some(life) = &self.life {
            life.pend_if_over().await;
        }
    }

    /// Counts a write. If the life ends with it, the call doesn't return.
    async fn wrote<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if result.is_ok() {
            self.ledger.written();
        }
        self.pend_if_over().await;
        result
    }
}

#[async_trait]
impl Store for Counted {
    async fn record(&self, id: &RecordId, consistency: Consistency) -> Result<Option<Record>, StoreError> {
        self.pend_if_over().await;
        self.inner.record(id, consistency).await
    }

    async fn records(&self, ids: &[RecordId]) -> Result<Vec<Record>, StoreError> {
        self.pend_if_over().await;
        self.inner.records(ids).await
    }

    async fn collection(
        &self,
        of: Collection,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Record>, StoreError> {
        self.pend_if_over().await;
        self.inner.collection(of, limit, cursor).await
    }

    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        self.pend_if_over().await;
        let result = self.inner.commit(writes).await;
        if result.is_ok() {
            self.ledger.committed(writes);
        }
        self.pend_if_over().await;
        result
    }

    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError> {
        self.pend_if_over().await;
        let result = self.inner.put_blob(at, body).await;
        self.wrote(result).await
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError> {
        self.pend_if_over().await;
        self.inner.blob(id).await
    }

    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError> {
        self.pend_if_over().await;
        self.inner.due(range, limit, cursor).await
    }

    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        self.pend_if_over().await;
        self.inner.list(listing, limit, cursor).await
    }

    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        self.pend_if_over().await;
        self.inner.list_executions(workflow, limit, cursor).await
    }

    async fn put_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.pend_if_over().await;
        let result = self.inner.put_segment(id, key, segment, expires_at).await;
        self.wrote(result).await
    }

    async fn segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
        after: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        self.pend_if_over().await;
        self.inner.segments(id, incarnation, run, after).await
    }

    async fn join(&self, parent: &Parent, slot: Slot, expires_at: Timestamp) -> Result<u16, StoreError> {
        self.pend_if_over().await;
        let result = self.inner.join(parent, slot, expires_at).await;
        self.wrote(result).await
    }

    async fn waiters(&self, gate: &GateId, after: &str, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.pend_if_over().await;
        self.inner.waiters(gate, after, limit).await
    }

    async fn next_line(&self, part: u8, after: Option<&GateId>) -> Result<Option<GateId>, StoreError> {
        self.pend_if_over().await;
        self.inner.next_line(part, after).await
    }

    fn traits(&self) -> StoreTraits<'_> {
        self.inner.traits()
    }
}

/// The queues of a life.
pub(super) struct Mortal {
    pub(super) inner: Arc<MemoryQueue>,
    pub(super) life: Arc<Life>,
}

#[async_trait]
impl Queue for Mortal {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        self.life.pend_if_over().await;
        self.inner.send(queue, messages).await
    }

    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        self.life.pend_if_over().await;
        self.inner.receive(queue, max, visibility, wait).await
    }

    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError> {
        self.life.pend_if_over().await;
        self.inner.delete(queue, receipt).await
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError> {
        self.life.pend_if_over().await;
        self.inner.change_visibility(queue, receipt, visibility).await
    }

    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError> {
        self.life.pend_if_over().await;
        self.inner.depth(queue).await
    }

    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError> {
        self.life.pend_if_over().await;
        self.inner.open(queue).await
    }

    fn class_of(&self, receipt: &str) -> Priority {
        self.inner.class_of(receipt)
    }

    fn traits(&self) -> QueueTraits {
        self.inner.traits()
    }

    fn knows(&self, queue: &QueueName) -> bool {
        self.inner.knows(queue)
    }

    fn names(&self) -> Vec<QueueName> {
        self.inner.names()
    }

    async fn class_depth(&self, queue: &QueueName, class: Priority) -> Result<ClassDepth, QueueError> {
        self.life.pend_if_over().await;
        self.inner.class_depth(queue, class).await
    }

    async fn discover(&self) -> Result<Vec<QueueName>, QueueError> {
        self.inner.discover().await
    }
}

/// Ids that are the same in every run of a test, so that the test is deterministic.
#[derive(Debug, Default)]
pub(super) struct Repeatable(AtomicU64);

impl Ids for Repeatable {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            // SplitMix64: well spread, and each number differs from all others.
            let mut bits = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            bits ^= bits >> 31;
            for (byte, from) in chunk.iter_mut().zip(bits.to_be_bytes()) {
                *byte = from;
            }
        }
    }
}
