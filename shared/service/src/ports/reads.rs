//! Calls that all stores make in the same way of those of the port: reads of one kind of record, and writes of new items.

use tickover_core::cron::Cron;
use tickover_core::decision::NewItem;
use tickover_core::execution::Execution;
use tickover_core::gate::Gate;
use tickover_core::id::{CronId, ExecutionId, Fingerprint, GateId, OperationId, QueueName, RecordId, TaskId};
use tickover_core::operation::Operation;
use tickover_core::payload::{BlobRef, Json};
use tickover_core::queue::{KeyRecord, QueueRecord};
use tickover_core::record::Record;
use tickover_core::task::Task;
use tickover_core::tick::TickRecord;

use super::{Collection, Consistency, Page, Store, StoreError};
use crate::executions::blob_of_event;

/// A read is consistent, unless its method says otherwise or reads a list.
impl dyn Store + '_ {
    /// The record of this id, whose kind the caller knows.
    pub(crate) async fn read<R: TryFrom<Record>>(
        &self,
        id: impl Into<RecordId>,
        consistency: Consistency,
    ) -> Result<Option<R>, StoreError> {
        let record = self.record(&id.into(), consistency).await?;
        record.map(of_kind).transpose()
    }

    async fn read_all<R: TryFrom<Record>>(
        &self,
        ids: impl Iterator<Item = RecordId> + Send,
    ) -> Result<Vec<R>, StoreError> {
        let ids: Vec<RecordId> = ids.collect();
        self.records(&ids).await?.into_iter().map(of_kind).collect()
    }

    pub async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        self.read(id.clone(), Consistency::Strong).await
    }

    pub async fn tasks(&self, ids: &[TaskId]) -> Result<Vec<Task>, StoreError> {
        self.read_all(ids.iter().cloned().map(RecordId::Task)).await
    }

    pub async fn execution(&self, id: &ExecutionId) -> Result<Option<Execution>, StoreError> {
        self.read(id.clone(), Consistency::Strong).await
    }

    /// The same, perhaps as it was a moment ago.
    pub async fn peek_execution(&self, id: &ExecutionId) -> Result<Option<Execution>, StoreError> {
        self.read(id.clone(), Consistency::Eventual).await
    }

    pub async fn executions(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>, StoreError> {
        self.read_all(ids.iter().cloned().map(RecordId::Execution)).await
    }

    pub async fn cron(&self, id: &CronId) -> Result<Option<Cron>, StoreError> {
        self.read(id.clone(), Consistency::Strong).await
    }

    pub async fn crons(&self, limit: usize, cursor: Option<&str>) -> Result<Page<Cron>, StoreError> {
        Ok(self.collection(Collection::Crons, limit, cursor).await?.only())
    }

    pub async fn queue(&self, name: &QueueName) -> Result<Option<QueueRecord>, StoreError> {
        self.read(name.clone(), Consistency::Strong).await
    }

    /// The same, perhaps as it was a moment ago.
    pub async fn recent_queue(&self, name: &QueueName) -> Result<Option<QueueRecord>, StoreError> {
        self.read(name.clone(), Consistency::Eventual).await
    }

    pub async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        Ok(self.collection(Collection::Queues, usize::MAX, None).await?.only().items)
    }

    pub async fn operation(&self, id: &OperationId) -> Result<Option<Operation>, StoreError> {
        self.read(id.clone(), Consistency::Strong).await
    }

    pub async fn operations(
        &self,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Operation>, StoreError> {
        Ok(self.collection(Collection::Operations, limit, cursor).await?.only())
    }

    pub async fn gate(&self, id: &GateId) -> Result<Option<Gate>, StoreError> {
        self.read(id.clone(), Consistency::Strong).await
    }

    pub async fn key(&self, digest: &Fingerprint) -> Result<Option<KeyRecord>, StoreError> {
        self.read(RecordId::Key(*digest), Consistency::Strong).await
    }

    /// Writes an item that a record will point to.
    pub async fn put_item(&self, item: &NewItem) -> Result<(), StoreError> {
        match item {
            NewItem::Blob { at, body } => self.put_blob(at, body).await,
            NewItem::Segment { of, key, segment, expires_at } => {
                self.put_segment(of, key, segment, *expires_at).await
            }
            NewItem::Event { of, incarnation, id, run, expires_at } => {
                let body = Json::number(*run);
                let id = blob_of_event(of, *incarnation, id);
                let bytes = u32::try_from(body.len()).unwrap_or(u32::MAX);
                self.put_blob(&BlobRef { id, bytes, expires_at: *expires_at }, &body).await
            }
        }
    }

    /// Perhaps as it was a moment ago: a stale answer only causes a repeated handover.
    pub async fn tick_record(&self) -> Result<Option<TickRecord>, StoreError> {
        self.read(RecordId::Tick, Consistency::Eventual).await
    }
}

fn of_kind<R: TryFrom<Record>>(record: Record) -> Result<R, StoreError> {
    let id = record.id();
    R::try_from(record).map_err(|_| StoreError::Corrupt { reason: format!("record {id} is of another kind") })
}
