//! The store port, method by method: each maps its arguments to a request, and the answer back.

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, TransactWriteItem};
use tickover_core::decision::Write;
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Parent, Slot};
use tickover_core::gate::Waiter;
use tickover_core::id::{BlobId, ExecutionId, GateId, Incarnation, RecordId, TaskId, WorkflowName};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::record::Record;
use tickover_core::time::Timestamp;
use tickover_service::ports::{
    Collection, Consistency, DueEntry, DueRange, ExecutionLists, Listed, Listing, Page, Store, StoreError,
    StoreTraits,
};

use crate::error::{Failure, unbuildable};
use crate::item::gate::to_waiter;
use crate::item::row::{of_blob, to_blob};
use crate::item::{Item, own_id, to_record};
use crate::key::Key;
use crate::usage::{Meter, Usage};
use crate::write::statement;

/// Records in a `DynamoDB` table, which [`crate::Table`] creates.
#[derive(Debug)]
pub struct DynamoStore {
    pub(crate) client: Client,
    pub(crate) table: String,
    pub(crate) meter: Meter,
    /// Which executions of all workflows it lists.
    pub(crate) listed: Listed,
}

impl DynamoStore {
    /// A store over this table. Sends nothing yet.
    ///
    /// The client has its own timeouts and retries (the SDK's standard mode is enough): every write of this store may
    /// be repeated.
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        Self { client, table: table.into(), meter: Meter::default(), listed: Listed::default() }
    }

    /// The same store with a list of these executions of all workflows, instead of those that failed. All processes that
    /// write to the table must agree: an execution enters or leaves the list with each write.
    #[must_use]
    pub fn listing(self, listed: Listed) -> Self {
        Self { listed, ..self }
    }

    /// Writes a whole item, without a condition.
    pub(crate) async fn put(&self, item: Item) -> Result<(), StoreError> {
        self.meter.request();
        let output = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
            .send()
            .await
            .map_err(|error| Failure::from(error).into_store_error())?;
        self.meter.written(&output.consumed_capacity);
        Ok(())
    }

    pub fn table(&self) -> &str {
        &self.table
    }

    /// The writes of prepared work as items of a `TransactWriteItems` that the user's own code sends: one item each, in
    /// their order. Each has its condition and asks for the item on which it fails. Of the hundred items that a
    /// transaction can have, an execution takes one, and a task with an idempotency key takes two.
    pub fn transact_items(&self, writes: &[Write]) -> Result<Vec<TransactWriteItem>, StoreError> {
        writes
            .iter()
            .map(|write| {
                statement(write, self.listed)?
                    .in_transaction(self.table())
                    .map_err(|error| unbuildable(&error))
            })
            .collect()
    }

    /// The capacity that this store has used so far.
    pub fn usage(&self) -> Usage {
        self.meter.usage()
    }
}

#[async_trait]
impl Store for DynamoStore {
    async fn record(&self, id: &RecordId, consistency: Consistency) -> Result<Option<Record>, StoreError> {
        self.read(Key::of(id), consistency).await?.map(|item| to_record(id, item)).transpose()
    }

    async fn records(&self, ids: &[RecordId]) -> Result<Vec<Record>, StoreError> {
        let items = self.read_all(ids.iter().map(Key::of)).await?;
        items.into_iter().map(|item| to_record(&own_id(&item, "of any kind")?, item)).collect()
    }

    async fn collection(
        &self,
        of: Collection,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Record>, StoreError> {
        self.collection_page(of, limit, cursor).await
    }

    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        self.commit_all(writes).await
    }

    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError> {
        // No condition: no other writer has the key, and a repeated write writes the same.
        self.put(of_blob(at, body)).await
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError> {
        // A payload never changes, so a stale read can only miss it: the cheap read comes first.
        let cheap = self.read(Key::blob(id), Consistency::Eventual).await?;
        let item = match cheap {
            Some(item) => Some(item),
            None => self.read(Key::blob(id), Consistency::Strong).await?,
        };
        item.map(|item| to_blob(id, item)).transpose()
    }

    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError> {
        self.due_page(range, limit, cursor).await
    }

    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        self.list_page(listing, limit, cursor).await
    }

    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        self.execution_page(workflow, limit, cursor).await
    }

    async fn put_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write_segment(id, key, segment, expires_at).await
    }

    async fn segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
        after: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        self.read_segments(id, incarnation, run, after).await
    }

    async fn join(&self, parent: &Parent, slot: Slot, expires_at: Timestamp) -> Result<u16, StoreError> {
        self.mark_slot(parent, slot, expires_at).await
    }

    async fn waiters(&self, gate: &GateId, after: &str, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.waiters_page(gate, after, limit).await?.iter().map(to_waiter).collect()
    }

    async fn next_line(&self, part: u8, after: Option<&GateId>) -> Result<Option<GateId>, StoreError> {
        self.line_after(part, after).await
    }

    fn traits(&self) -> StoreTraits<'_> {
        StoreTraits { lists: Some(self), ..StoreTraits::default() }
    }
}

#[async_trait]
impl ExecutionLists for DynamoStore {
    fn longest(&self) -> Listed {
        self.listed
    }

    async fn find(
        &self,
        listed: Listed,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        self.executions_page(listed, limit, cursor).await
    }
}
