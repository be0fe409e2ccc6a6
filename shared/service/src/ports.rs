//! What the service needs from the world. Adapters implement these; `tests/tests/conformance` holds them to it.

use async_trait::async_trait;
use futures::future::join_all;
use tickover_core::cron::Cron;
use tickover_core::decision::{NewPart, Write};
use tickover_core::due::DueKind;
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Execution, Parent, Slot};
use tickover_core::id::{
    BlobId, CronId, ExecutionId, Fingerprint, Incarnation, QueueName, RecordId, TaskId, WorkflowName,
};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::queue::{KeyRecord, QueueRecord};
use tickover_core::task::{Status, Task};
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;

/// Why a store didn't do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// A condition didn't hold, so nothing of the commit was written.
    #[error("the record has changed")]
    Conflict {
        /// The record as it stands now, where the store could tell: saves a read.
        current: Option<Current>,
    },
    /// Too much at once, or another write of the same item under way: the same call will work later. It wrote
    /// nothing.
    #[error("the store is throttling")]
    Throttled,
    /// No answer, or one that doesn't say whether it was done. Repeating the same write is safe.
    #[error("the store can't be reached: {reason}")]
    Unavailable {
        /// For the log; never parsed.
        reason: String,
    },
    /// A record that this build can't read, or a store that isn't set up as it should be. Nothing is rewritten.
    #[error("the store holds something unexpected: {reason}")]
    Corrupt {
        /// For the log; never parsed.
        reason: String,
    },
    /// The cursor isn't the `next` of an earlier answer to the same question.
    #[error("the cursor isn't one that this store gave out for this listing")]
    BadCursor,
}

/// A record as a refused write found it.
#[derive(Clone, Debug, PartialEq)]
pub enum Current {
    Task(Box<Task>),
    Execution(Box<Execution>),
}

impl Current {
    pub fn task(self) -> Option<Box<Task>> {
        match self {
            Self::Task(task) => Some(task),
            Self::Execution(_) => None,
        }
    }

    pub fn execution(self) -> Option<Box<Execution>> {
        match self {
            Self::Task(_) => None,
            Self::Execution(execution) => Some(execution),
        }
    }
}

/// An entry of the due index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueEntry {
    pub record: RecordId,
    /// Its place. The index may lag behind the record.
    pub due_at: Timestamp,
    /// What is due then.
    pub kind: DueKind,
}

/// A part of the due index: a shard's entries from one instant to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueRange {
    pub shard: u16,
    pub from: Timestamp,
    pub until: Timestamp,
}

impl DueRange {
    /// All of a shard that lies at or before an instant.
    pub const fn until(shard: u16, until: Timestamp) -> Self {
        Self { shard, from: Timestamp::from_millis(i64::MIN), until }
    }
}

/// A part of a longer answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where to go on; absent at the end.
    pub next: Option<String>,
}

/// Which tasks to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Those of a shard of the due index: live ones, earliest due first.
    Live { shard: u16 },
    /// Failed and timed-out ones, latest first.
    Dead,
    /// All there are, in no order: a walk over the whole table.
    All,
}

/// Where records live. Every method is one call to the store, or as few as its limits allow.
#[async_trait]
pub trait Store: Send + Sync {
    /// A task by id, read consistently. It may be past its retention: the caller looks.
    async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError>;

    /// Tasks by id, in any order, absent ones left out. At most 100 ids.
    async fn tasks(&self, ids: &[TaskId]) -> Result<Vec<Task>, StoreError>;

    /// Commits these writes together or not at all. A write that is found applied already, by its nonce, counts
    /// as done: so every commit can be repeated after a lost answer.
    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError>;

    /// Writes an item that a record is about to point to.
    async fn put_part(&self, part: &NewPart) -> Result<(), StoreError> {
        match part {
            NewPart::Blob { at, body } => self.put_blob(at, body).await,
            NewPart::Segment { of, key, segment, expires_at } => {
                self.put_segment(of, key, segment, *expires_at).await
            }
        }
    }

    /// Writes a payload under a key that nobody else has.
    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError>;

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError>;

    /// The entries of a part of the due index, earliest first.
    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError>;

    /// Ids of tasks for a listing. Whether each still fits is for the caller to see on the record.
    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError>;

    /// An execution by id, read consistently. It may be past its retention: the caller looks.
    async fn execution(&self, id: &ExecutionId) -> Result<Option<Execution>, StoreError>;

    /// An execution by id, read at half the price: it may be shown as it stood a moment ago, or not at all. Stores
    /// that have no such read answer consistently.
    async fn peek_execution(&self, id: &ExecutionId) -> Result<Option<Execution>, StoreError> {
        self.execution(id).await
    }

    /// Executions by id, in any order, absent ones left out. At most 100 ids.
    async fn executions(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>, StoreError>;

    /// Executions of a workflow, latest first, by the time of their start.
    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError>;

    /// Writes a segment of an execution's journal under a key that nobody else has. It may be deleted from
    /// `expires_at` on.
    async fn put_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError>;

    /// All segments there are of a run, read consistently, by number; among them those of writes that were refused.
    async fn segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError>;

    /// Marks a place of a join item, which is made if need be and may be deleted from `expires_at` on: how many of
    /// its places are marked now. Marking one again changes nothing.
    async fn join(&self, parent: &Parent, slot: Slot, expires_at: Timestamp) -> Result<u16, StoreError>;

    /// A cron by id, read consistently. It may have been deleted: the caller looks.
    async fn cron(&self, id: &CronId) -> Result<Option<Cron>, StoreError>;

    /// Crons, in the order in which they were made.
    async fn crons(&self, limit: usize, cursor: Option<&str>) -> Result<Page<Cron>, StoreError>;

    async fn queue(&self, name: &QueueName) -> Result<Option<QueueRecord>, StoreError>;

    /// All queues that have a record, by name.
    async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError>;

    async fn tick_record(&self) -> Result<Option<TickRecord>, StoreError>;

    async fn key(&self, digest: &Fingerprint) -> Result<Option<KeyRecord>, StoreError>;
}

/// Why a queue didn't do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QueueError {
    /// No such queue is configured.
    #[error("there is no queue named {queue:?}")]
    Unknown {
        /// The logical name.
        queue: String,
    },
    /// The receipt is not, or no longer, good for anything. The message will be seen again, or is gone.
    #[error("the receipt is no longer valid")]
    StaleReceipt,
    /// Too much at once.
    #[error("the queue is throttling")]
    Throttled,
    /// No answer, or a refusal by the service.
    #[error("the queue can't be reached: {reason}")]
    Unavailable {
        /// For the log; never parsed.
        reason: String,
    },
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub body: String,
    /// How long it stays hidden, at most 15 minutes. A queue that counts whole seconds rounds down.
    pub delay: Millis,
}

/// A message in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub body: String,
    /// What to delete it, or change its visibility, with.
    pub receipt: String,
    /// How often it has been received, this time included.
    pub receive_count: u32,
}

/// How many messages a queue holds, about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Waiting to be received.
    pub visible: u64,
    /// Received and neither deleted nor back.
    pub in_flight: u64,
    /// Not yet to be received.
    pub delayed: u64,
}

impl Depth {
    /// Whether nothing is in it at all.
    pub fn is_empty(&self) -> bool {
        self.visible + self.in_flight + self.delayed == 0
    }
}

/// Where hints travel: at least once, in no order.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Sends messages, in batches as large as the queue takes. One result a message, in order.
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError>;

    /// Receives up to `max` (1 to 10) messages, hidden from others for `visibility`; waits up to `wait` (at most
    /// 20 s) for the first one.
    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError>;

    /// Deletes a message. Repeating it is no error.
    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError>;

    /// Hides a message in flight for that long from now; zero shows it at once.
    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError>;

    /// Deletes messages. Repeating it is no error.
    async fn delete_all(&self, queue: &QueueName, receipts: &[String]) -> Result<(), QueueError> {
        let deleted = join_all(receipts.iter().map(|receipt| self.delete(queue, receipt))).await;
        deleted.into_iter().collect()
    }

    /// Hides messages in flight for that long from now; those whose receipt is stale are left alone.
    async fn hide_all(
        &self,
        queue: &QueueName,
        receipts: &[String],
        visibility: Millis,
    ) -> Result<(), QueueError> {
        let hide = receipts.iter().map(|receipt| self.change_visibility(queue, receipt, visibility));
        let hidden = join_all(hide).await.into_iter();
        hidden.filter(|hidden| !matches!(hidden, Err(QueueError::StaleReceipt))).collect()
    }

    /// Says that nothing will come of a record's messages any more. A queue that can find them takes them out, so that
    /// they don't count in its depth; in others, SQS among them, they stay until somebody receives them.
    fn forget(&self, _queue: &QueueName, _of: Incarnation) {}

    /// About how many messages there are.
    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError>;

    /// Makes a queue if this adapter can: whether it is there now.
    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError>;

    /// Whether the queue exists.
    fn knows(&self, queue: &QueueName) -> bool;

    /// All queues, by name.
    fn names(&self) -> Vec<QueueName>;
}

#[async_trait]
pub trait Clock: Send + Sync {
    /// Now, in UTC.
    fn now(&self) -> Timestamp;

    /// Returns once that instant has come.
    async fn sleep_until(&self, instant: Timestamp);
}

/// Random bits that nobody can guess.
pub trait Ids: Send + Sync {
    fn fill(&self, bytes: &mut [u8]);
}

/// A filter on tasks in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only of this queue.
    pub queue: Option<QueueName>,
    /// Only in these states; any when empty.
    pub statuses: Vec<Status>,
}
