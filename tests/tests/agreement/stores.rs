//! All stores at their port, and the model's table, under the same writes.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickover_core::command::Context;
use tickover_core::decision::{Condition, Expiring, Write};
use tickover_core::due::Due;
use tickover_core::duration::Millis;
use tickover_core::execution::Execution;
use tickover_core::flow::Priority;
use tickover_core::gate::line::part_of;
use tickover_core::gate::{Branch, Gate, Position, Waiter};
use tickover_core::id::{ExecutionId, Fingerprint, GateId, Incarnation, LeaseId, Nonce, OperationId};
use tickover_core::operation::{Action, Counts, HowEnded, NewOperation, Operation, Target};
use tickover_core::payload::{Json, Payload};
use tickover_core::queue::{KeyRecord, QueueRecord};
use tickover_core::task::Task;
use tickover_core::task::command::{Command, Key};
use tickover_core::task::decide;
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;
use tickover_service::memory::MemoryStore;
use tickover_service::ports::{DueEntry, DueRange, Store, StoreError};
use tickover_sim::model::{Change, Record, Verdict, write};
use tickover_sqlite::SqliteStore;
use tickover_tests::scene::{START, queue_name, task_id};

use crate::executions::{OfExecution, SHARD, execution_id, started, workflow};
use crate::side::{dynamodb, limits};
use crate::writes::{IDS, KEYS, New, RandomWrite, ToOperation, What, digest};

/// The stores, and what was ever in them.
pub(crate) struct Stores {
    memory: Arc<dyn Store>,
    /// The stores that must agree with it, by name.
    others: [(&'static str, Arc<dyn Store>); 2],
    /// Every task's record there has been, oldest first.
    records: Vec<Task>,
    /// Every execution's record there has been, oldest first.
    executions: Vec<Execution>,
    /// Every key's record there has been, oldest first.
    keys: Vec<KeyRecord>,
    /// Every commit that was tried, and whether it was written.
    commits: Vec<(Vec<Write>, bool)>,
    /// Makes the next nonce, lease and incarnation.
    number: u64,
}

/// What is in a store.
#[derive(Debug, PartialEq)]
struct Contents {
    tasks: Vec<Task>,
    executions: Vec<Execution>,
    keys: Vec<KeyRecord>,
    queue: Option<QueueRecord>,
    operation: Option<Operation>,
    gate: Option<Gate>,
    waiters: Vec<Waiter>,
    /// The gates that have a line.
    lines: BTreeSet<GateId>,
    tick: Option<TickRecord>,
}

/// What became of a commit.
#[derive(Debug, PartialEq)]
enum Fate {
    Written,
    Conflict(Option<tickover_core::record::Record>),
}

impl Stores {
    pub(crate) async fn new() -> Self {
        let memory = Arc::new(MemoryStore::new());
        let sqlite: Arc<dyn Store> = Arc::new(SqliteStore::memory().unwrap());
        let others = [("DynamoDB", dynamodb().await), ("SQLite", sqlite)];
        Self { memory, others, records: vec![], executions: vec![], keys: vec![], commits: vec![], number: 0 }
    }

    /// Writes the same to all, and says what differs.
    pub(crate) async fn apply_and_compare(&mut self, random_write: &RandomWrite) -> Result<(), String> {
        self.number += 1;
        let writes = self.writes(random_write).await;
        if writes.is_empty() {
            return Ok(());
        }
        let unread = |error: StoreError| error.to_string();
        let before = contents(&*self.memory).await.map_err(unread)?;
        if self.is_remembered(&writes, &before) {
            return Ok(());
        }
        let in_memory = fate(self.memory.commit(&writes).await)?;
        let left = contents(&*self.memory).await.map_err(unread)?;
        for (name, store) in &self.others {
            let there = fate(store.commit(&writes).await)?;
            if in_memory != there {
                return Err(format!("in memory {in_memory:?}\non {name} {there:?}\nof {writes:?}"));
            }
            let other = contents(&**store).await.map_err(unread)?;
            if left != other {
                return Err(format!("left in memory {left:?}\non {name} {other:?}\nby {writes:?}"));
            }
            if matches!(random_write.what, What::Execution(_) | What::Operation { .. } | What::Gate { .. }) {
                let left = shown(&*self.memory).await.map_err(unread)?;
                let other = shown(&**store).await.map_err(unread)?;
                if left != other {
                    return Err(format!("shown in memory {left:?}\non {name} {other:?}\nafter {writes:?}"));
                }
            }
        }
        compare_model(&writes, &before, &left, &in_memory)?;
        remember(&mut self.records, left.tasks);
        remember(&mut self.executions, left.executions);
        remember(&mut self.keys, left.keys);
        self.commits.push((writes, in_memory == Fate::Written));
        Ok(())
    }

    /// Whether this was a transaction that left no trace: all it wrote has been written over. `DynamoDB` knows it by
    /// its token for ten minutes and calls it done; in memory it is a conflict, which leads to the same answer later.
    fn is_remembered(&self, writes: &[Write], before: &Contents) -> bool {
        let was_written = self.commits.iter().any(|(tried, written)| *written && tried == writes);
        let tasks = before.tasks.iter().map(|task| task.nonce);
        let executions = before.executions.iter().map(|execution| execution.nonce);
        let stored = tasks.chain(executions).chain(before.keys.iter().map(|key| key.nonce));
        let left: Vec<Nonce> = stored.chain(before.tick.iter().map(|tick| tick.nonce)).collect();
        let traces = writes.iter().any(|write| match write {
            Write::Put { after, .. } => left.contains(&after.head().nonce),
            Write::Rearm { .. }
            | Write::Wake { .. }
            | Write::PutWaiter { .. }
            | Write::DeleteWaiter { .. }
            | Write::Extend { .. } => false,
        });
        writes.len() > 1 && was_written && !traces
    }

    async fn writes(&self, random_write: &RandomWrite) -> Vec<Write> {
        let now = START.plus(Millis::new(random_write.at));
        let place = |at: i64| Timestamp::from_millis(START.as_millis() + at);
        match (&random_write.what, self.picked(random_write)) {
            (What::Schedule(new), _) => self.decided(None, &self.schedule(*new), now),
            (What::Execution(of), _) => self.of_execution(*of, random_write, now).await,
            (What::Again(_), _) if self.commits.is_empty() => vec![],
            (What::Again(index), _) => index.get(&self.commits).0.clone(),
            (What::Queue { ahead }, _) => {
                let stored = self.memory.queue(&queue_name("q")).await.ok().flatten();
                let version = (stored.map_or(0, |stored| stored.version) + ahead).max(1);
                let record = QueueRecord { version, ..QueueRecord::new(queue_name("q"), self.nonce()) };
                vec![Write::put(record, Condition::Follows)]
            }
            (What::Tick { ahead }, _) => {
                let stored = self.memory.tick_record().await.ok().flatten();
                let version = (stored.map_or(0, |stored| stored.version) + ahead).max(1);
                let record = TickRecord { version, ..TickRecord::new(self.nonce()) };
                vec![Write::put(record, Condition::Follows)]
            }
            (What::Operation { ahead, does }, _) => {
                let stored = self.memory.operation(&operation_id()).await.ok().flatten();
                let record = self.operation(stored.as_ref(), *ahead, *does, now);
                vec![Write::put(record, Condition::Follows)]
            }
            (What::Gate { over_stored, enters }, _) => self.of_gate(*over_stored, *enters, now).await,
            (What::ExtendKey(key), _) => {
                let expires_at = now.plus(Millis::from_secs(90 * 86_400));
                vec![Write::Extend { item: Expiring::Key(digest(*key)), expires_at }]
            }
            (What::Decided(_) | What::WithDueCondition { .. } | What::Rearm { .. }, None) => vec![],
            (What::Decided(ask), Some(task)) => {
                let own = task.running().map(|running| running.lease);
                let new = LeaseId::from_bytes(u128::from(self.number).to_be_bytes());
                self.decided(Some(&task), &ask.command(own, new), now)
            }
            (What::WithDueCondition { latest }, Some(task)) => {
                let after = Task { version: task.version + 1, nonce: self.nonce(), ..task.clone() };
                let latest = Some(place(*latest));
                let condition = Condition::Unchanged { due_no_later_than: latest, wakes: None };
                vec![Write::replace(task, after, condition)]
            }
            // What lies nowhere is never moved: no rule asks for it.
            (What::Rearm { to, kind }, Some(task)) => task.due.map_or_else(Vec::new, |due| {
                let to = Due { at: place(*to), kind: *kind, shard: due.shard };
                vec![Write::Rearm { record: task.clone().into(), to }]
            }),
        }
    }

    async fn of_gate(&self, over_stored: bool, enters: Option<bool>, now: Timestamp) -> Vec<Write> {
        let stored = self.memory.gate(&gate_id()).await.ok().flatten();
        let before = stored.clone().filter(|_| over_stored).map(Into::into);
        let gate = stored.unwrap_or_else(|| Gate::new(gate_id(), "k".to_owned(), self.nonce(), now));
        let incarnation = Incarnation::from_bytes([6; 8]);
        let waiter = Waiter {
            owner: task_id(IDS[0]).into(),
            incarnation,
            branch: Branch { queue: queue_name("q"), others: vec![], required: 0 },
            priority: Priority::Normal,
            position: Position { since: START, version: 2 },
            written_at: START,
            home: None,
        };
        let after = Gate { version: gate.version + 1, nonce: self.nonce(), ..gate }.into();
        let mut writes = vec![Write::Put { before, after, condition: Condition::Same }];
        let expires_at = now.plus(Millis::from_secs(3_600));
        writes.extend(enters.map(|enters| {
            if enters {
                Write::PutWaiter { gate: gate_id(), waiter, expires_at }
            } else {
                Write::DeleteWaiter { gate: gate_id(), waiter }
            }
        }));
        writes
    }

    fn operation(
        &self,
        stored: Option<&Operation>,
        ahead: u64,
        does: ToOperation,
        now: Timestamp,
    ) -> Operation {
        let version = (stored.map_or(0, |stored| stored.version) + ahead).max(1);
        let new = || {
            let new = NewOperation {
                id: operation_id(),
                fingerprint: Fingerprint::from_bytes([4; 16]),
                action: Action::Retry,
                target: Target::Tasks,
                dry_run: false,
                details: Payload::Inline(Json::null()),
                by: None,
            };
            Operation::new(new, stored, self.nonce(), now, 1)
        };
        let changed = stored.and_then(|stored| match does {
            ToOperation::Start => None,
            ToOperation::Page { cursor } => {
                let counts = Counts { matched: 9, changed: ahead, ..Counts::default() };
                stored.note_page(stored.pages, counts, cursor.map(|bytes| "c".repeat(bytes)), now)
            }
            ToOperation::Stop => stored.ended(HowEnded::Stopped, now),
        });
        Operation { version, nonce: self.nonce(), ..changed.unwrap_or_else(new) }
    }

    async fn of_execution(&self, of: OfExecution, random_write: &RandomWrite, now: Timestamp) -> Vec<Write> {
        let place = |at: i64| Timestamp::from_millis(START.as_millis() + at);
        if let OfExecution::Start { id } = of {
            return vec![Write::put(started(id, self.number, now), Condition::Free { now })];
        }
        let known = self.executions.iter().rev().nth(random_write.ago).or(self.executions.first());
        let Some(known) = known else { return vec![] };
        let other = Incarnation::from_bytes([9; 8]);
        let incarnation = if random_write.other_incarnation { other } else { known.incarnation };
        let known = Execution { incarnation, ..known.clone() };
        let wake = Write::Wake { id: known.id.clone(), incarnation };
        match of {
            OfExecution::Start { .. } => vec![],
            OfExecution::Wake => vec![wake],
            OfExecution::Turn(turned) => {
                let write = turned.write(&known, self.nonce(), now, place);
                if !turned.is_together() {
                    return vec![write];
                }
                let stored = self.memory.tick_record().await.ok().flatten();
                let version = stored.map_or(0, |stored| stored.version) + 1;
                let record = TickRecord { version, ..TickRecord::new(self.nonce()) };
                vec![wake, Write::put(record, Condition::Follows), write]
            }
            OfExecution::Rearm { to, kind } => known.due.map_or_else(Vec::new, |due| {
                let to = Due { at: place(to), kind, shard: due.shard };
                vec![Write::Rearm { record: known.clone().into(), to }]
            }),
        }
    }

    fn picked(&self, random_write: &RandomWrite) -> Option<Task> {
        let task = self.records.iter().rev().nth(random_write.ago).or(self.records.first())?.clone();
        let incarnation =
            if random_write.other_incarnation { Incarnation::from_bytes([9; 8]) } else { task.incarnation };
        Some(Task { incarnation, ..task })
    }

    fn schedule(&self, new: New) -> Command {
        let key = new.key.map(|key| {
            let mut known = self.keys.iter().rev().filter(|record| record.key == digest(key));
            let replaces = new.replaces.and_then(|ago| known.nth(ago).cloned());
            Key { digest: digest(key), replaces }
        });
        new.command(Incarnation::from_bytes(self.number.to_be_bytes()), key)
    }

    fn decided(&self, task: Option<&Task>, command: &Command, now: Timestamp) -> Vec<Write> {
        let limits = limits();
        decide(task, command, &Context { now, nonce: self.nonce(), limits: &limits, by: None }).writes
    }

    fn nonce(&self) -> Nonce {
        Nonce::from_bytes(self.number.to_be_bytes())
    }
}

/// The model's table has only tasks, and one write at a time.
fn compare_model(writes: &[Write], before: &Contents, left: &Contents, fate: &Fate) -> Result<(), String> {
    let [only] = writes else { return Ok(()) };
    let Some(change) = Change::of(only, None) else { return Ok(()) };
    let id = &change.after().id;
    let find = |contents: &Contents| contents.tasks.iter().find(|task| task.id == *id).cloned();
    let stored = find(before);
    let (model, expected) = match write(stored.clone().map(Record::new).as_ref(), &change, false) {
        Verdict::Written(record) => (Fate::Written, Some((*record).clone())),
        Verdict::Done => (Fate::Written, stored),
        Verdict::Conflict => (Fate::Conflict(stored.clone().map(Into::into)), stored),
    };
    let real = find(left);
    if model == *fate && expected == real {
        return Ok(());
    }
    Err(format!("the model {model:?}, leaving {expected:?}\nin memory {fate:?}, leaving {real:?}"))
}

fn remember<T: PartialEq>(known: &mut Vec<T>, found: Vec<T>) {
    for one in found {
        if !known.contains(&one) {
            known.push(one);
        }
    }
}

async fn contents(store: &dyn Store) -> Result<Contents, StoreError> {
    let mut tasks = store.tasks(&IDS.map(task_id)).await?;
    tasks.sort_by(|one, other| one.id.cmp(&other.id));
    let mut executions = store.executions(&IDS.map(execution_id)).await?;
    executions.sort_by(|one, other| one.id.cmp(&other.id));
    let mut keys = Vec::new();
    for key in KEYS {
        keys.extend(store.key(&digest(key)).await?);
    }
    let queue = store.queue(&queue_name("q")).await?;
    let operation = store.operation(&operation_id()).await?;
    let tick = store.tick_record().await?;
    let (gate, waiters) = (store.gate(&gate_id()).await?, store.waiters(&gate_id(), "", 10).await?);
    // A store that isn't divided has all lines in its first part.
    let mut lines = BTreeSet::new();
    for part in [0, part_of(&gate_id())] {
        lines.extend(store.next_line(part, None).await?);
    }
    Ok(Contents { tasks, executions, keys, queue, operation, gate, waiters, lines, tick })
}

fn gate_id() -> GateId {
    GateId::from(&Fingerprint::from_bytes([5; 16]))
}

fn operation_id() -> OperationId {
    OperationId::parse("a").unwrap()
}

/// What the indexes show of executions and operations. Which of two at the same instant comes first is nobody's business.
async fn shown(store: &dyn Store) -> Result<(Vec<ExecutionId>, Vec<DueEntry>, Vec<Operation>), StoreError> {
    let mut listed = store.list_executions(&workflow(), 100, None).await?.items;
    listed.sort();
    let range = DueRange::until(SHARD, Timestamp::from_millis(i64::MAX));
    let mut due = store.due(range, 100, None).await?.items;
    due.sort_by(|one, other| (one.due_at, &one.record).cmp(&(other.due_at, &other.record)));
    Ok((listed, due, store.operations(100, None).await?.items))
}

fn fate(answer: Result<(), StoreError>) -> Result<Fate, String> {
    match answer {
        Ok(()) => Ok(Fate::Written),
        Err(StoreError::Conflict { current }) => Ok(Fate::Conflict(current)),
        Err(error) => Err(format!("{error:?}")),
    }
}
