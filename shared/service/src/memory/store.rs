//! A store in memory, for tests and simulation: small, and exact in every condition.
//!
//! It keeps no index: what is due is looked for among all records. It has no clock: what is old
//! is deleted when it is told to (`expiry`).

mod expiry;
mod page;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tickover_core::cron::Cron;
use tickover_core::decision::Write;
use tickover_core::due::{Due, DueKind};
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Execution, Parent, Slot};
use tickover_core::gate::{Gate, Waiter};
use tickover_core::id::{
    BlobId, CronId, ExecutionId, Fingerprint, GateId, Incarnation, Nonce, OperationId, QueueName, RecordId,
    TaskId, WorkflowName,
};
use tickover_core::operation::Operation;
use tickover_core::payload::{BlobRef, Json};
use tickover_core::queue::{KeyRecord, QueueRecord};
use tickover_core::task::{Outcome, Task};
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;

use crate::cursor::{self, Position};
use crate::ports::{
    DueEntry, DueRange, ExecutionLists, Listed, Listing, Page, Sleeper, Store, StoreError, StoreTraits,
};
use page::{Order, page};

pub use expiry::Item;

/// What is called with the writes of every commit that was done.
pub type Watch = Box<dyn Fn(&[Write]) + Send + Sync>;

/// Records in memory. Every call is atomic, and every read sees all writes before it.
#[derive(Default)]
pub struct MemoryStore {
    records: Mutex<Records>,
    watch: Option<Watch>,
    listed: Listed,
}

#[derive(Debug, Default)]
struct Records {
    tasks: BTreeMap<TaskId, Task>,
    executions: BTreeMap<ExecutionId, Execution>,
    crons: BTreeMap<CronId, Cron>,
    segments: BTreeMap<(ExecutionId, SegmentKey), Kept<Segment>>,
    joins: BTreeMap<Join, Kept<BTreeSet<u16>>>,
    blobs: BTreeMap<BlobId, Kept<Json>>,
    queues: BTreeMap<QueueName, QueueRecord>,
    operations: BTreeMap<OperationId, Operation>,
    gates: BTreeMap<GateId, Gate>,
    waiters: BTreeMap<(GateId, String), Kept<Waiter>>,
    keys: BTreeMap<Fingerprint, KeyRecord>,
    tick: Option<TickRecord>,
}

/// A part of something, with the instant from which on it may be deleted.
#[derive(Debug, Default)]
struct Kept<T> {
    value: T,
    expires_at: Option<Timestamp>,
}

impl<T> Kept<T> {
    /// Keeps it longer, never shorter.
    fn extend(&mut self, expires_at: Timestamp) {
        self.expires_at = self.expires_at.map(|at| at.max(expires_at));
    }
}

/// Whose join item: of which run of which execution, by what label and number.
pub type Join = (ExecutionId, Incarnation, u32, Nonce, u16);

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store that calls `watch` after every commit.
    pub fn watched(watch: Watch) -> Self {
        Self { watch: Some(watch), ..Self::default() }
    }

    /// The same store with a list of these executions of all workflows, instead of those that failed.
    #[must_use]
    pub fn listing(self, listed: Listed) -> Self {
        Self { listed, ..self }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("records", &self.records).finish_non_exhaustive()
    }
}

impl Records {
    /// The positions of a listing's tasks, in no order.
    fn positions(&self, listing: Listing) -> impl Iterator<Item = Position> {
        self.tasks.values().filter_map(move |task| {
            let at = match listing {
                Listing::Live { shard } => {
                    task.due.filter(|due| due.shard == shard).map(|_| Timestamp::EPOCH)
                }
                Listing::Dead => is_dead(task).then_some(task.created_at),
                Listing::All => Some(Timestamp::EPOCH),
            };
            at.map(|at| Position { at, record: task.id.clone().into() })
        })
    }

    /// The positions of everything in a range of the due index, in no order.
    fn due_positions(&self, range: DueRange) -> Vec<Position> {
        let tasks = self.tasks.values().map(|task| (RecordId::from(task.id.clone()), task.due));
        let executions = self.executions.values().map(|one| (RecordId::from(one.id.clone()), one.due));
        let crons = self.crons.values().map(|one| (RecordId::Cron(one.id.clone()), one.due));
        let queues = self.queues.values().map(|one| (RecordId::Queue(one.name.clone()), one.due()));
        let operations = self.operations.values();
        let operations = operations.map(|one| (RecordId::Operation(one.id.clone()), one.due));
        let is_within = |due: &Due| due.shard == range.shard && (range.from..=range.until).contains(&due.at);
        let position = |(record, due): (RecordId, Option<Due>)| {
            due.filter(is_within).map(|due| Position { at: due.at, record })
        };
        tasks.chain(executions).chain(crons).chain(queues).chain(operations).filter_map(position).collect()
    }

    /// A record's entry in the due index.
    fn due_entry(&self, record: RecordId) -> Option<DueEntry> {
        let due = match &record {
            RecordId::Task(id) => self.tasks.get(id)?.due?,
            RecordId::Execution(id) => self.executions.get(id)?.due?,
            RecordId::Cron(id) => self.crons.get(id)?.due?,
            RecordId::Queue(name) => self.queues.get(name)?.due()?,
            RecordId::Operation(id) => self.operations.get(id)?.due?,
        };
        let sleeper = match &record {
            RecordId::Execution(id) if due.kind == DueKind::Asleep => self.executions.get(id),
            RecordId::Execution(_)
            | RecordId::Task(_)
            | RecordId::Cron(_)
            | RecordId::Queue(_)
            | RecordId::Operation(_) => None,
        };
        let sleeper = sleeper.map(|execution| Box::new(Sleeper::of(execution)));
        Some(DueEntry { record, due_at: due.at, kind: due.kind, sleeper })
    }
}

/// A listing's name, for its cursors.
fn name(listing: Listing) -> String {
    match listing {
        Listing::Live { shard } => cursor::live(shard),
        Listing::Dead => "dead".to_owned(),
        Listing::All => "all".to_owned(),
    }
}

fn execution_of(record: RecordId) -> Option<ExecutionId> {
    match record {
        RecordId::Execution(id) => Some(id),
        RecordId::Task(_) | RecordId::Cron(_) | RecordId::Queue(_) | RecordId::Operation(_) => None,
    }
}

/// Whether a task ended in a way of which operators should know.
fn is_dead(task: &Task) -> bool {
    task.ended().is_some_and(|ended| match ended.outcome {
        Outcome::Failed { .. } | Outcome::TimedOut { .. } => true,
        Outcome::Completed { .. } | Outcome::Cancelled { .. } | Outcome::Skipped => false,
    })
}

#[async_trait]
impl Store for MemoryStore {
    async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        Ok(self.records().tasks.get(id).cloned())
    }

    async fn tasks(&self, ids: &[TaskId]) -> Result<Vec<Task>, StoreError> {
        let records = self.records();
        let mut found: Vec<&Task> = ids.iter().filter_map(|id| records.tasks.get(id)).collect();
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found.dedup_by(|one, other| one.id == other.id);
        Ok(found.into_iter().cloned().collect())
    }

    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        write::commit(&mut self.records(), writes)?;
        if let Some(watch) = &self.watch {
            watch(writes);
        }
        Ok(())
    }

    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError> {
        let kept = Kept { value: body.clone(), expires_at: Some(at.expires_at) };
        self.records().blobs.insert(at.id, kept);
        Ok(())
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError> {
        Ok(self.records().blobs.get(id).map(|kept| kept.value.clone()))
    }

    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError> {
        let records = self.records();
        let listing = format!("due/{}", range.shard);
        let positions = records.due_positions(range);
        let Page { items, next } = page(positions, &listing, Order::Ascending, limit, cursor)?;
        Ok(Page { items: items.into_iter().filter_map(|record| records.due_entry(record)).collect(), next })
    }

    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        let order = match listing {
            Listing::Live { .. } | Listing::All => Order::Ascending,
            Listing::Dead => Order::Descending,
        };
        let positions = self.records().positions(listing).collect();
        let Page { items, next } = page(positions, &name(listing), order, limit, cursor)?;
        let task = |record| match record {
            RecordId::Task(id) => Some(id),
            RecordId::Execution(_) | RecordId::Cron(_) | RecordId::Queue(_) | RecordId::Operation(_) => None,
        };
        Ok(Page { items: items.into_iter().filter_map(task).collect(), next })
    }

    async fn execution(&self, id: &ExecutionId) -> Result<Option<Execution>, StoreError> {
        Ok(self.records().executions.get(id).cloned())
    }

    async fn executions(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>, StoreError> {
        let records = self.records();
        let ids: BTreeSet<&ExecutionId> = ids.iter().collect();
        Ok(ids.into_iter().filter_map(|id| records.executions.get(id)).cloned().collect())
    }

    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        let records = self.records();
        let of_workflow = records.executions.values().filter(|one| one.workflow == *workflow);
        let positions = of_workflow.map(|one| Position { at: one.created_at, record: one.id.clone().into() });
        let listing = format!("workflow {workflow}");
        let Page { items, next } = page(positions.collect(), &listing, Order::Descending, limit, cursor)?;
        Ok(Page { items: items.into_iter().filter_map(execution_of).collect(), next })
    }

    async fn put_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let kept = Kept { value: segment.clone(), expires_at: Some(expires_at) };
        self.records().segments.insert((id.clone(), *key), kept);
        Ok(())
    }

    async fn segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        let records = self.records();
        let of_run = records
            .segments
            .iter()
            .filter(|((of, key), _)| of == id && key.incarnation == incarnation && key.run == run);
        Ok(of_run.map(|((_, key), kept)| (*key, kept.value.clone())).collect())
    }

    async fn join(&self, parent: &Parent, slot: Slot, expires_at: Timestamp) -> Result<u16, StoreError> {
        let join = (parent.execution.clone(), parent.incarnation, parent.run, slot.label, slot.item);
        let mut records = self.records();
        let kept = records.joins.entry(join).or_default();
        kept.expires_at = Some(expires_at);
        kept.value.insert(slot.place);
        Ok(u16::try_from(kept.value.len()).unwrap_or(u16::MAX))
    }

    async fn cron(&self, id: &CronId) -> Result<Option<Cron>, StoreError> {
        Ok(self.records().crons.get(id).cloned())
    }

    async fn crons(&self, limit: usize, cursor: Option<&str>) -> Result<Page<Cron>, StoreError> {
        let records = self.records();
        let live = records.crons.values().filter(|one| !one.is_deleted());
        let positions =
            live.map(|one| Position { at: one.created_at, record: RecordId::Cron(one.id.clone()) });
        let Page { items, next } = page(positions.collect(), "crons", Order::Ascending, limit, cursor)?;
        let cron = |record| match record {
            RecordId::Cron(id) => records.crons.get(&id).cloned(),
            RecordId::Task(_) | RecordId::Execution(_) | RecordId::Queue(_) | RecordId::Operation(_) => None,
        };
        Ok(Page { items: items.into_iter().filter_map(cron).collect(), next })
    }

    async fn queue(&self, name: &QueueName) -> Result<Option<QueueRecord>, StoreError> {
        Ok(self.records().queues.get(name).cloned())
    }

    async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        Ok(self.records().queues.values().cloned().collect())
    }

    async fn operation(&self, id: &OperationId) -> Result<Option<Operation>, StoreError> {
        Ok(self.records().operations.get(id).cloned())
    }

    async fn operations(&self, limit: usize, cursor: Option<&str>) -> Result<Page<Operation>, StoreError> {
        let records = self.records();
        let position =
            |one: &Operation| Position { at: one.created_at, record: RecordId::Operation(one.id.clone()) };
        let positions = records.operations.values().map(position).collect();
        let Page { items, next } = page(positions, "operations", Order::Descending, limit, cursor)?;
        let operation = |record| match record {
            RecordId::Operation(id) => records.operations.get(&id).cloned(),
            RecordId::Task(_) | RecordId::Execution(_) | RecordId::Cron(_) | RecordId::Queue(_) => None,
        };
        Ok(Page { items: items.into_iter().filter_map(operation).collect(), next })
    }

    async fn gate(&self, id: &GateId) -> Result<Option<Gate>, StoreError> {
        Ok(self.records().gates.get(id).cloned())
    }

    async fn waiters(&self, gate: &GateId, after: &str, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        let records = self.records();
        let from = (Bound::Excluded((gate.clone(), after.to_owned())), Bound::Unbounded);
        let of_gate = records.waiters.range(from).take_while(|((of, _), _)| of == gate).take(limit);
        Ok(of_gate.map(|(_, kept)| kept.value.clone()).collect())
    }

    async fn next_line(&self, part: u8, after: Option<&GateId>) -> Result<Option<GateId>, StoreError> {
        let records = self.records();
        let mut lines = records.waiters.keys().map(|(gate, _)| gate).filter(|_| part == 0);
        Ok(lines.find(|gate| after.is_none_or(|after| after < *gate)).cloned())
    }

    async fn tick_record(&self) -> Result<Option<TickRecord>, StoreError> {
        Ok(self.records().tick.clone())
    }

    async fn key(&self, digest: &Fingerprint) -> Result<Option<KeyRecord>, StoreError> {
        Ok(self.records().keys.get(digest).cloned())
    }

    fn traits(&self) -> StoreTraits<'_> {
        StoreTraits { lists: Some(self), ..StoreTraits::default() }
    }
}

#[async_trait]
impl ExecutionLists for MemoryStore {
    fn longest(&self) -> Listed {
        self.listed
    }

    async fn find(
        &self,
        listed: Listed,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        let records = self.records();
        let found = records.executions.values().filter(|one| listed == Listed::All || one.has_failed());
        let positions = found.map(|one| Position { at: one.created_at, record: one.id.clone().into() });
        let listing = format!("{listed:?} executions");
        let Page { items, next } = page(positions.collect(), &listing, Order::Descending, limit, cursor)?;
        Ok(Page { items: items.into_iter().filter_map(execution_of).collect(), next })
    }
}
