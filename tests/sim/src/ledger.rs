//! The one table of a run, and the true history of its records.
//!
//! It records every change when it is applied, and its due index lags behind the table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use tickover_core::cron::Cron;
use tickover_core::decision::Write;
use tickover_core::due::{Due, DueKind};
use tickover_core::duration::Millis;
use tickover_core::execution::Execution;
use tickover_core::gate::{Gate, Waiter};
use tickover_core::id::{BlobId, CronId, ExecutionId, GateId, OperationId, QueueName, RecordId, TaskId};
use tickover_core::operation::Operation;
use tickover_core::payload::{BlobRef, Json};
use tickover_core::queue::QueueRecord;
use tickover_core::record::Record;
use tickover_core::task::Task;
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;
use tickover_service::memory::ManualClock;
use tickover_service::ports::{
    Clock as _, Consistency, DueEntry, DueRange, Page, Sleeper, Store, StoreError,
};

use super::dice::Dice;
use super::history::execution::{Change, Happening};
use super::history::{Actor, History, Stored, What};
use super::plan::Plan;
use super::table::Table;

/// A bug forgets an entry that is added to the index this long after its instant.
const BEHIND: Millis = Millis::from_secs(10);

/// What is due later than this is no work: a cron keeps its request from being deleted.
pub const FAR: Millis = Millis::from_days(10);

/// The table, its index, and its history.
pub struct Ledger {
    /// The records themselves.
    pub store: Table,
    /// The most entries in a page of the due index.
    page: usize,
    clock: Arc<ManualClock>,
    history: Arc<History>,
    dice: Dice,
    index: Mutex<BTreeMap<RecordId, Vec<IndexEntry>>>,
    open: Mutex<BTreeSet<ExecutionId>>,
    /// Every payload that ever existed: the checks read some that have been deleted since.
    bodies: Mutex<BTreeMap<BlobId, Json>>,
    /// The ticks' notes, and when they were written.
    noted: Mutex<Vec<(Timestamp, TickRecord)>>,
    /// The records of operations, after how many events each was written.
    operations: Mutex<Vec<(usize, Operation)>>,
    /// The records of crons, in the order in which they were written.
    crons: Mutex<Vec<NotedCron>>,
    /// The records of gates, and when each was written.
    gates: Mutex<Vec<NotedGate>>,
    /// What else the laws of lines need: items that were written or deleted, and the records of queues.
    lines: Mutex<Vec<(usize, LineNote)>>,
}

/// The due slot of a record from an instant on.
struct IndexEntry {
    from: Timestamp,
    due: Option<Due>,
    /// What the index has of an execution that sleeps.
    sleeper: Option<Box<Sleeper>>,
}

/// A record before a commit.
enum Known {
    Task(TaskId, Option<Task>),
    Execution(ExecutionId, Option<Execution>),
    Queue(QueueName, Option<Due>),
    Operation(OperationId, Option<Due>),
    Cron(CronId, Option<Cron>),
}

impl Ledger {
    pub fn new(seed: u64, plan: &Plan, clock: Arc<ManualClock>, history: Arc<History>) -> Self {
        let dice = Dice::new(seed, "ledger");
        let (index, open) = (Mutex::default(), Mutex::default());
        let (bodies, noted, operations) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (store, page) = (Table::new(seed, plan.has_sqlite), plan.page);
        let (crons, gates, lines) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self {
            store,
            page,
            clock,
            history,
            dice,
            index,
            open,
            bodies,
            noted,
            operations,
            crons,
            gates,
            lines,
        }
    }

    /// A record as it is now.
    pub fn read<R: TryFrom<Record>>(&self, id: impl Into<RecordId>) -> Option<R> {
        let found = self.store.record(&id.into(), Consistency::Strong).now_or_never()?;
        R::try_from(found.ok()??).ok()
    }

    /// The current record of a task.
    pub fn task(&self, id: &TaskId) -> Option<Task> {
        self.read(id.clone())
    }

    /// The current record of an execution.
    pub fn execution(&self, id: &ExecutionId) -> Option<Execution> {
        self.read(id.clone())
    }

    /// A payload as it was written.
    pub fn blob(&self, id: &BlobId) -> Option<Json> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    pub async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).insert(at.id, body.clone());
        self.store.put_blob(at, body).await
    }

    /// The ticks' notes, in order.
    pub fn noted(&self) -> Vec<(Timestamp, TickRecord)> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The records of operations, in the order in which they were written, and after how many events each was written.
    pub fn operations(&self) -> Vec<(usize, Operation)> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The records of crons, in the order in which they were written.
    pub fn crons(&self) -> Vec<NotedCron> {
        self.crons.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The current record of a cron.
    pub fn cron(&self, id: &CronId) -> Option<Cron> {
        self.read(id.clone())
    }

    /// The records of gates, in the order in which they were written. A refused write notes its record again.
    pub fn gates(&self) -> Vec<NotedGate> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The items of lines that were written and deleted, and the records of queues, after how many events each.
    pub fn lines(&self) -> Vec<(usize, LineNote)> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_line(&self, note: LineNote) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push((self.history.len(), note));
    }

    /// The current record of an operation.
    pub fn operation(&self, id: &OperationId) -> Option<Operation> {
        self.read(id.clone())
    }

    /// The current record of a gate.
    pub fn gate(&self, id: &GateId) -> Option<Gate> {
        self.read(id.clone())
    }

    /// Executions that haven't ended.
    pub fn open(&self) -> Vec<ExecutionId> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Whether no record has work left.
    pub fn all_have_ended(&self) -> bool {
        let none_before = self.clock.now().plus(FAR);
        let has_none = |due: Option<Due>| due.is_none_or(|due| due.at > none_before);
        let all_left =
            self.index().values().all(|entries| entries.last().is_none_or(|last| has_none(last.due)));
        all_left && self.open().is_empty()
    }

    /// Applies a commit at once; the index follows within `lag_ms`.
    pub fn commit(&self, actor: Actor, writes: &[Write], lag_ms: u64) -> Result<(), StoreError> {
        let ids: BTreeSet<RecordId> = writes.iter().filter_map(record_of).collect();
        let before: Vec<Known> = ids.into_iter().filter_map(|id| self.known(id)).collect();
        let unanswered =
            || StoreError::Unavailable { reason: "the memory store waited".to_owned(), is_logged: false };
        let answer = self.store.commit(writes).now_or_never().ok_or_else(unanswered)?;
        for write in writes {
            if let Write::PutWaiter { gate, waiter, .. } = write {
                self.note_line(LineNote::Entered(gate.clone(), waiter.clone()));
            }
        }
        if let ([Write::Put { after: Record::Tick(record), .. }], Ok(())) = (writes, &answer) {
            let noted = (self.clock.now(), (**record).clone());
            self.noted.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
        }
        for known in before {
            match known {
                Known::Task(id, before) => {
                    let Some(after) = self.task(&id).filter(|after| before.as_ref() != Some(after)) else {
                        continue;
                    };
                    self.follow(id.into(), before.as_ref().and_then(|task| task.due), after.due, lag_ms);
                    let stored = What::Stored(Box::new(Stored { before, after }));
                    self.history.note(self.clock.now(), actor, stored);
                }
                Known::Execution(id, before) => {
                    let Some(after) = self.execution(&id).filter(|after| before.as_ref() != Some(after))
                    else {
                        continue;
                    };
                    self.follow(id.into(), before.as_ref().and_then(|one| one.due), after.due, lag_ms);
                    self.note_open(&after);
                    let changed = Happening::Stored(Box::new(Change { before, after }));
                    self.history.note(self.clock.now(), actor, What::OfExecution(Box::new(changed)));
                }
                Known::Queue(name, before) => {
                    let after = self.queue_due(&name);
                    self.follow(RecordId::Queue(name), before, after, lag_ms);
                }
                Known::Cron(id, before) => {
                    let Some(after) = self.cron(&id).filter(|after| before.as_ref() != Some(after)) else {
                        continue;
                    };
                    let (was_due, due) = (before.and_then(|before| before.due), after.due);
                    let noted = NotedCron { number: self.history.len(), at: self.clock.now(), cron: after };
                    self.crons.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
                    self.follow(RecordId::Cron(id), was_due, due, lag_ms);
                }
                Known::Operation(id, before) => {
                    let Some(after) = self.operation(&id) else { continue };
                    let due = after.due;
                    let mut operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
                    if operations
                        .iter()
                        .rfind(|(_, last)| last.id == id)
                        .is_none_or(|(_, last)| *last != after)
                    {
                        operations.push((self.history.len(), after));
                    }
                    drop(operations);
                    self.follow(RecordId::Operation(id), before, due, lag_ms);
                }
            }
        }
        self.note_rest(writes, answer.is_ok());
        answer
    }

    /// Notes what comes after the records of a commit.
    fn note_rest(&self, writes: &[Write], is_done: bool) {
        for write in writes {
            match write {
                Write::Put { after: Record::Gate(record), .. } => {
                    let Some(gate) = self.gate(&record.id) else { continue };
                    let noted = NotedGate { number: self.history.len(), at: self.clock.now(), gate };
                    self.gates.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
                }
                Write::DeleteWaiter { gate, waiter } if is_done => {
                    self.note_line(LineNote::Left(gate.clone(), waiter.clone()));
                }
                Write::Put { after: Record::Queue(record), .. } if is_done => {
                    self.note_line(LineNote::Queue((**record).clone()));
                }
                _ => {}
            }
        }
    }

    fn known(&self, id: RecordId) -> Option<Known> {
        Some(match id {
            RecordId::Task(id) => {
                let before = self.task(&id);
                Known::Task(id, before)
            }
            RecordId::Execution(id) => {
                let before = self.execution(&id);
                Known::Execution(id, before)
            }
            RecordId::Queue(name) => {
                let before = self.queue_due(&name);
                Known::Queue(name, before)
            }
            RecordId::Operation(id) => {
                let before = self.operation(&id).and_then(|operation| operation.due);
                Known::Operation(id, before)
            }
            RecordId::Cron(id) => {
                let before = self.cron(&id);
                Known::Cron(id, before)
            }
            RecordId::Gate(_) | RecordId::Tick | RecordId::Key(_) => return None,
        })
    }

    /// The current due slot of a queue's record.
    fn queue_due(&self, name: &QueueName) -> Option<Due> {
        self.read::<QueueRecord>(name.clone())?.due()
    }

    fn note_open(&self, after: &Execution) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if after.closed().is_none() || after.due.is_some() {
            open.insert(after.id.clone());
        } else {
            open.remove(&after.id);
        }
    }

    /// A page of the index as it is now. A bug leaves out entries that were added after their instant, as if a tick
    /// never looked back.
    pub fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
        forgets_behind: bool,
    ) -> Page<DueEntry> {
        let now = self.clock.now();
        let index = self.index();
        let mut entries: Vec<(String, &RecordId, Due, Option<Box<Sleeper>>)> = index
            .iter()
            .filter_map(|(id, entries)| {
                let entry = entries.iter().rev().find(|entry| entry.from <= now)?;
                let due = entry.due.filter(|due| due.shard == range.shard)?;
                if forgets_behind && entry.from > due.at.plus(BEHIND) {
                    return None;
                }
                let is_in = (range.from..=range.until).contains(&due.at);
                is_in.then(|| (name(due.at, id), id, due, entry.sleeper.clone()))
            })
            .collect();
        entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        if let Some(cursor) = cursor {
            entries.retain(|(name, ..)| name.as_str() > cursor);
        }
        let limit = limit.min(self.page);
        let is_last = entries.len() <= limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| !is_last).map(|(name, ..)| name.clone());
        let items = entries.into_iter().map(|(_, id, due, sleeper)| DueEntry {
            record: id.clone(),
            due_at: due.at,
            kind: due.kind,
            sleeper,
        });
        Page { items: items.collect(), next }
    }

    fn follow(&self, id: RecordId, before: Option<Due>, after: Option<Due>, lag_ms: u64) {
        if before == after {
            return;
        }
        let sleeper = match &id {
            RecordId::Execution(id) if after.is_some_and(|due| due.kind == DueKind::Asleep) => {
                self.execution(id).map(|execution| Box::new(Sleeper::of(&execution)))
            }
            _ => None,
        };
        let now = self.clock.now();
        let mut index = self.index();
        let entries = index.entry(id).or_default();
        // A record's changes reach the index in their order.
        let earliest = entries.last().map_or(now, |last| last.from.max(now));
        let lag = if lag_ms == 0 { Millis::ZERO } else { self.dice.millis(0, lag_ms) };
        entries.push(IndexEntry { from: now.plus(lag).max(earliest), due: after, sleeper });
        let seen = entries.iter().rposition(|entry| entry.from <= now).unwrap_or(0);
        entries.drain(..seen);
    }

    fn index(&self) -> MutexGuard<'_, BTreeMap<RecordId, Vec<IndexEntry>>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happened in a line, or to those of it that are of a queue.
#[derive(Clone, Debug)]
pub enum LineNote {
    Entered(GateId, Waiter),
    Left(GateId, Waiter),
    /// A queue's record was written.
    Queue(QueueRecord),
}

/// A cron's record as it was written.
#[derive(Clone, Debug)]
pub struct NotedCron {
    /// After how many events.
    pub number: usize,
    pub at: Timestamp,
    pub cron: Cron,
}

/// A gate's record as it was written.
#[derive(Clone, Debug)]
pub struct NotedGate {
    /// After how many events.
    pub number: usize,
    pub at: Timestamp,
    pub gate: Gate,
}

/// The sort key of the index. Ids of different kinds may be equal.
fn name(at: Timestamp, id: &RecordId) -> String {
    let sort = match id {
        RecordId::Execution(_) => 'e',
        RecordId::Operation(_) => 'o',
        RecordId::Queue(_) => 'q',
        RecordId::Cron(_) => 'r',
        RecordId::Task(_) => 't',
        // They have no due slot.
        RecordId::Gate(_) | RecordId::Tick | RecordId::Key(_) => 'z',
    };
    format!("{:020}/{sort}/{id}", at.as_millis())
}

fn record_of(write: &Write) -> Option<RecordId> {
    match write {
        Write::Put { after: Record::Gate(_) | Record::Key(_) | Record::Tick(_), .. }
        | Write::PutWaiter { .. }
        | Write::DeleteWaiter { .. }
        | Write::Extend { .. } => None,
        Write::Put { after: record, .. } | Write::Rearm { record, .. } => Some(record.id()),
        Write::Wake { id, .. } => Some(id.clone().into()),
    }
}
