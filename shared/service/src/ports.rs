//! What the service needs from the outside. Adapters implement these traits; `tests/tests/conformance` tests them.

mod failed;
mod filter;
mod queue;
mod reads;

use async_trait::async_trait;
use tickover_core::decision::Write;
use tickover_core::due::DueKind;
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::message::TurnHint;
use tickover_core::execution::{Execution, ExecutionStatus, Parent, Slot};
use tickover_core::gate::Waiter;
use tickover_core::id::{
    BlobId, ExecutionId, GateId, Incarnation, QueueName, RecordId, TaskId, WorkflowName,
};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::record::Record;
use tickover_core::time::Timestamp;

pub use failed::Failed;
pub use filter::{ExecutionFilter, Listed, Period, TaskFilter};
pub use queue::{ClassDepth, Depth, Outgoing, Queue, QueueError, QueueTraits, Received};

/// Why a call to a store failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// A condition didn't hold, so nothing of the commit was written.
    #[error("the record has changed")]
    Conflict {
        /// The current record, if the store returns it: saves a read.
        current: Option<Record>,
    },
    /// Too many calls at once, or another write of the same item in progress. Nothing was written; the same call will
    /// succeed later.
    #[error("the store is throttling")]
    Throttled,
    /// No answer, or an answer that doesn't say whether the call was carried out. Repeating the same write is safe.
    #[error("the store can't be reached: {reason}")]
    Unavailable {
        /// For the log; never parsed.
        reason: String,
        /// Whether the store has logged the cause, once for all calls that fail for it. Callers then log nothing at
        /// `warn`.
        is_logged: bool,
    },
    /// A record that this build can't read, or a store that isn't set up correctly. Nothing is rewritten.
    #[error("the store has unexpected data: {reason}")]
    Corrupt {
        /// For the log; never parsed.
        reason: String,
    },
    /// The cursor isn't the `next` of an earlier answer to the same query.
    #[error("this store didn't return this cursor for this listing")]
    BadCursor,
}

impl StoreError {
    /// Whether the store has logged the cause. See [`warn_unless_logged!`](crate::warn_unless_logged).
    pub const fn is_logged(&self) -> bool {
        matches!(self, Self::Unavailable { is_logged: true, .. })
    }
}

/// An entry of the due index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueEntry {
    pub record: RecordId,
    /// Its instant in the index. The index may lag behind the record.
    pub due_at: Timestamp,
    /// What happens at that instant.
    pub kind: DueKind,
    /// The hint of an execution that sleeps ([`DueKind::Asleep`]), if the index has it.
    pub sleeper: Option<Box<Sleeper>>,
}

/// What an entry of the due index has of an execution that sleeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleeper {
    pub queue: QueueName,
    pub hint: TurnHint,
}

impl Sleeper {
    pub fn of(execution: &Execution) -> Self {
        Self { queue: execution.queue.clone(), hint: TurnHint::of(execution) }
    }
}

/// A range of the due index: a shard's entries from one instant to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueRange {
    pub shard: u16,
    pub from: Timestamp,
    pub until: Timestamp,
}

impl DueRange {
    /// All entries of a shard at or before an instant.
    pub const fn until(shard: u16, until: Timestamp) -> Self {
        Self { shard, from: Timestamp::from_millis(i64::MIN), until }
    }
}

/// A page of a longer answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The cursor of the next page; absent at the end.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// The page with those items that are of another type, such as the ids of one kind of record.
    #[must_use]
    pub fn only<U: TryFrom<T>>(self) -> Page<U> {
        let Self { items, next } = self;
        Page { items: items.into_iter().filter_map(|item| U::try_from(item).ok()).collect(), next }
    }
}

/// Which tasks to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Tasks in a shard of the due index: live ones, by id.
    Live { shard: u16 },
    /// Failed and timed-out tasks, latest scheduled first.
    Dead,
    /// All tasks, in no order: a scan of the whole table.
    All,
}

/// A kind of record of which there are few: they are listed whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// Crons that aren't deleted, in the order of their creation.
    Crons,
    /// Queues that have a record, by name. They come in one page, whatever its limit.
    Queues,
    /// Operations, latest first.
    Operations,
}

/// Whether a read must see every write acknowledged before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    Strong,
    /// The answer may be out of date by a moment, or lack a new record. A store for which that is cheaper answers so.
    Eventual,
}

/// The storage of records. Every method is one call to the store, or as few as the store's limits allow. No method has
/// a default, so that no decorator forgets to pass one on. The methods of `dyn Store` that read one kind of record are in
/// `ports/reads.rs`.
#[async_trait]
pub trait Store: Send + Sync {
    /// A record by id. Its retention may have passed, or it may be marked as deleted: the caller checks.
    async fn record(&self, id: &RecordId, consistency: Consistency) -> Result<Option<Record>, StoreError>;

    /// Records by id, read consistently, in any order, absent ones left out. At most 100 ids.
    async fn records(&self, ids: &[RecordId]) -> Result<Vec<Record>, StoreError>;

    /// Records of a kind of which there are few.
    async fn collection(
        &self,
        of: Collection,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Record>, StoreError>;

    /// Commits these writes together or not at all. A write that is already applied, which its nonce shows, counts as
    /// done. So every commit can be repeated after a lost answer.
    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError>;

    /// Writes a payload under a key that no other item has.
    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError>;

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError>;

    /// The entries of a range of the due index, earliest first.
    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError>;

    /// Ids of tasks for a listing, each at a place that no change of the task moves. The caller checks on the record
    /// whether it still belongs to the listing. Cursors of live tasks are those of [`crate::cursor::live`].
    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError>;

    /// Executions of a workflow, latest start first.
    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError>;

    /// Writes a segment of an execution's journal under a key that no other item has. It may be deleted from
    /// `expires_at` on.
    async fn put_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError>;

    /// All segments of a run that exist with numbers above `after`, read consistently, by number. Segments of refused
    /// writes are among them.
    async fn segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
        after: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError>;

    /// Marks a slot of a join item, and returns how many of its slots are marked. Marking a slot twice changes nothing.
    /// Creates the item if there is none; it may be deleted from `expires_at` on.
    async fn join(&self, parent: &Parent, slot: Slot, expires_at: Timestamp) -> Result<u16, StoreError>;

    /// Those that wait in the line of a key: the first whose sort keys come after this text, in the order of these (see
    /// [`Waiter::sort_key`]), read consistently.
    async fn waiters(&self, gate: &GateId, after: &str, limit: usize) -> Result<Vec<Waiter>, StoreError>;

    /// The first key after this one, in the order of their ids, that has a line in a part of the store; perhaps as it was a
    /// second ago. A store may have all lines in part 0; there are [`tickover_core::gate::line::PARTS`] parts.
    async fn next_line(&self, part: u8, after: Option<&GateId>) -> Result<Option<GateId>, StoreError>;

    /// What its callers must know of it.
    fn traits(&self) -> StoreTraits<'_>;
}

/// What differs between stores, apart from what each of them does.
#[derive(Clone, Copy, Default)]
pub struct StoreTraits<'a> {
    /// Its index of tasks by queue and status, if it has one.
    pub tasks: Option<&'a dyn TaskIndex>,
    /// Its index of executions of all workflows, if it has one.
    pub executions: Option<&'a dyn ExecutionIndex>,
    /// Its lists of executions of all workflows, if it has some and no index of all executions.
    pub lists: Option<&'a dyn ExecutionLists>,
    /// What it keeps of the last day, if it does.
    pub history: Option<&'a dyn History>,
    /// Why it refuses writes now, in a short sentence for people. Only of stores that can tell without a call.
    pub trouble: Option<&'static str>,
}

/// An index of tasks by queue and status. `DynamoDB` has none, because it would cost each task several writes.
pub trait TaskIndex: Send + Sync {
    /// Ids of tasks with the queue, one of the statuses, the instants, the label and the error of a filter, latest
    /// scheduled first, then by id. Some may not fit the rest of it, or be past their retention.
    fn find(
        &self,
        filter: &TaskFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError>;

    /// Calls with each task that has failed or timed out. Those past their retention count until they are deleted.
    fn failed(&self, each: &mut dyn FnMut(Failed<'_>)) -> Result<(), StoreError>;

    /// From when on a worker could have had the oldest task that is ready at `now`.
    fn oldest(&self, queue: &QueueName, now: Timestamp) -> Result<Option<Timestamp>, StoreError>;

    /// How many tasks of each queue run. Its cost grows with them, not with those that wait.
    fn running(&self) -> Result<Vec<(QueueName, u64)>, StoreError>;

    /// How many tasks of each queue that has some are open. A task is late if a worker could have had it at `late_from` or
    /// before.
    fn counts(&self, late_from: Timestamp) -> Result<Vec<TaskCount>, StoreError>;
}

/// How many tasks of a queue are open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCount {
    pub queue: QueueName,
    pub pending: u64,
    pub running: u64,
    /// Those that are pending and late.
    pub late: u64,
}

/// Lists of executions of all workflows.
#[async_trait]
pub trait ExecutionLists: Send + Sync {
    /// The longest list that it has. It has the shorter ones too.
    fn longest(&self) -> Listed;

    /// The ids in a list, latest start first. Some may be past their retention, and those of failed ones may have been
    /// started again. One that fails while a page is read may be left out of it.
    async fn find(
        &self,
        listed: Listed,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError>;
}

/// An index of executions of all workflows. `DynamoDB` has none, because it would cost each execution several writes.
pub trait ExecutionIndex: Send + Sync {
    /// Ids of executions that fit a filter, latest start first. Some may be past their retention.
    fn find(
        &self,
        filter: &ExecutionFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError>;

    /// Calls with each execution that has failed or timed out. Those past their retention count until they are deleted.
    fn failed(&self, each: &mut dyn FnMut(Failed<'_>)) -> Result<(), StoreError>;

    /// How many executions there are of each workflow and status, by workflow. Those past their retention count until
    /// they are deleted.
    fn counts(&self) -> Result<Vec<ExecutionCount>, StoreError>;
}

/// How many executions of a workflow have a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionCount {
    pub workflow: WorkflowName,
    pub status: ExecutionStatus,
    pub count: u64,
}

/// What a queue did in a part of the day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The beginning of that part.
    pub at: Timestamp,
    /// The queue; of several queues together, the first of them.
    pub queue: QueueName,
    /// Tasks and executions that completed.
    pub completed: u64,
    /// Those that failed or timed out.
    pub failed: u64,
    /// How late a worker took work, at most.
    pub late: Millis,
    /// The most messages that waited.
    pub depth: u64,
    /// How long the oldest task had waited, at most.
    pub oldest: Millis,
    /// The most messages that workers had.
    pub running: u64,
}

/// The history of a day. `DynamoDB` has none.
#[async_trait]
pub trait History: Send + Sync {
    /// Adds samples to those of the same part of the day and queue, and deletes what is older than `keep_from`.
    async fn add(&self, samples: &[Sample], keep_from: Timestamp) -> Result<(), StoreError>;

    /// The samples from an instant on, of one queue or of all together, the earliest first.
    fn since(&self, from: Timestamp, queue: Option<&QueueName>) -> Result<Vec<Sample>, StoreError>;
}

#[async_trait]
pub trait Clock: Send + Sync {
    /// Now, in UTC.
    fn now(&self) -> Timestamp;

    /// Returns once that instant has passed.
    async fn sleep_until(&self, instant: Timestamp);
}

/// Random bits that can't be guessed.
pub trait Ids: Send + Sync {
    fn fill(&self, bytes: &mut [u8]);
}
