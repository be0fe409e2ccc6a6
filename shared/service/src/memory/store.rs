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
use tickover_core::decision::Write;
use tickover_core::due::{Due, DueKind};
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Execution, Parent, Slot};
use tickover_core::gate::Waiter;
use tickover_core::id::{BlobId, ExecutionId, GateId, Incarnation, Nonce, RecordId, TaskId, WorkflowName};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::record::Record;
use tickover_core::task::{Outcome, Task};
use tickover_core::time::Timestamp;

use crate::cursor::{self, Position};
use crate::ports::{
    Collection, Consistency, DueEntry, DueRange, ExecutionLists, Listed, Listing, Page, Sleeper, Store,
    StoreError, StoreTraits,
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
    by_id: BTreeMap<RecordId, Record>,
    segments: BTreeMap<(ExecutionId, SegmentKey), Kept<Segment>>,
    joins: BTreeMap<Join, Kept<BTreeSet<u16>>>,
    blobs: BTreeMap<BlobId, Kept<Json>>,
    waiters: BTreeMap<(GateId, String), Kept<Waiter>>,
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
    fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.by_id
            .values()
            .filter_map(|record| if let Record::Task(task) = record { Some(&**task) } else { None })
    }

    fn executions(&self) -> impl Iterator<Item = &Execution> {
        self.by_id
            .values()
            .filter_map(|record| if let Record::Execution(one) = record { Some(&**one) } else { None })
    }

    /// The positions of a listing's tasks, in no order.
    fn positions(&self, listing: Listing) -> impl Iterator<Item = Position> {
        self.tasks().filter_map(move |task| {
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
        let is_within = |due: &Due| due.shard == range.shard && (range.from..=range.until).contains(&due.at);
        let position = |(id, record): (&RecordId, &Record)| {
            let due = record.head().due.filter(is_within);
            due.map(|due| Position { at: due.at, record: id.clone() })
        };
        self.by_id.iter().filter_map(position).collect()
    }

    /// A record's entry in the due index.
    fn due_entry(&self, id: RecordId) -> Option<DueEntry> {
        let record = self.by_id.get(&id)?;
        let due = record.head().due?;
        let mut entry = DueEntry { record: id, due_at: due.at, kind: due.kind, sleeper: None };
        if let (Record::Execution(execution), DueKind::Asleep) = (record, due.kind) {
            entry.sleeper = Some(Box::new(Sleeper::of(execution)));
        }
        Some(entry)
    }

    /// When a record of a collection was made: its place there.
    fn created_at(record: &Record, of: Collection) -> Option<Timestamp> {
        match (of, record) {
            (Collection::Crons, Record::Cron(cron)) => Some(cron.created_at).filter(|_| !cron.is_deleted()),
            (Collection::Operations, Record::Operation(operation)) => Some(operation.created_at),
            (Collection::Queues, Record::Queue(_)) => Some(Timestamp::EPOCH),
            (Collection::Crons | Collection::Operations | Collection::Queues, _) => None,
        }
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

/// Whether a task ended in a way of which operators should know.
fn is_dead(task: &Task) -> bool {
    task.ended().is_some_and(|ended| match ended.outcome {
        Outcome::Failed { .. } | Outcome::TimedOut { .. } => true,
        Outcome::Completed { .. } | Outcome::Cancelled { .. } | Outcome::Skipped => false,
    })
}

#[async_trait]
impl Store for MemoryStore {
    async fn record(&self, id: &RecordId, _: Consistency) -> Result<Option<Record>, StoreError> {
        Ok(self.records().by_id.get(id).cloned())
    }

    async fn records(&self, ids: &[RecordId]) -> Result<Vec<Record>, StoreError> {
        let records = self.records();
        let ids: BTreeSet<&RecordId> = ids.iter().collect();
        Ok(ids.into_iter().filter_map(|id| records.by_id.get(id)).cloned().collect())
    }

    async fn collection(
        &self,
        of: Collection,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Record>, StoreError> {
        let order = match of {
            Collection::Crons | Collection::Queues => Order::Ascending,
            Collection::Operations => Order::Descending,
        };
        let records = self.records();
        let position = |(id, record): (&RecordId, &Record)| {
            Records::created_at(record, of).map(|at| Position { at, record: id.clone() })
        };
        let positions = records.by_id.iter().filter_map(position).collect();
        let Page { items, next } = page(positions, &format!("{of:?}"), order, limit, cursor)?;
        Ok(Page { items: items.iter().filter_map(|id| records.by_id.get(id).cloned()).collect(), next })
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
        Ok(page(positions, &name(listing), order, limit, cursor)?.only())
    }

    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        let records = self.records();
        let of_workflow = records.executions().filter(|one| one.workflow == *workflow);
        let positions = of_workflow.map(|one| Position { at: one.created_at, record: one.id.clone().into() });
        let listing = format!("workflow {workflow}");
        Ok(page(positions.collect(), &listing, Order::Descending, limit, cursor)?.only())
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
        after: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        let records = self.records();
        let first = |run, number| {
            let mark = Nonce::from_bytes([0; 8]);
            (id.clone(), SegmentKey { incarnation, run, number, mark })
        };
        let of_run = records.segments.range(first(run, after.saturating_add(1))..first(run + 1, 0));
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
        let found = records.executions().filter(|one| listed == Listed::All || one.has_failed());
        let positions = found.map(|one| Position { at: one.created_at, record: one.id.clone().into() });
        let listing = format!("{listed:?} executions");
        Ok(page(positions.collect(), &listing, Order::Descending, limit, cursor)?.only())
    }
}
