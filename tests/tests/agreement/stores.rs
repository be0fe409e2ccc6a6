//! Both stores at their port, and the model's table, under the same writes.

use std::sync::Arc;

use tickover_core::command::{Command, Context, Key};
use tickover_core::decide::decide;
use tickover_core::decision::Write;
use tickover_core::due::Due;
use tickover_core::duration::Millis;
use tickover_core::id::{Incarnation, LeaseId, Nonce, TaskId};
use tickover_core::queue::{KeyRecord, QueueRecord};
use tickover_core::task::Task;
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;
use tickover_service::memory::MemoryStore;
use tickover_service::ports::{Store, StoreError};
use tickover_tests::model::{Change, Record, Verdict, write};
use tickover_tests::scene::{START, queue_name, task_id};

use crate::side::{dynamodb, limits};
use crate::writes::{IDS, KEYS, New, Stroke, What, digest};

/// The stores, and what was ever in them.
pub(crate) struct Stores {
    memory: Arc<dyn Store>,
    dynamo: Arc<dyn Store>,
    /// Every task's record there has been, oldest first.
    records: Vec<Task>,
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
    keys: Vec<KeyRecord>,
    queue: Option<QueueRecord>,
    tick: Option<TickRecord>,
}

/// What became of a commit.
#[derive(Debug, PartialEq)]
enum Fate {
    Written,
    Conflict(Option<Box<Task>>),
}

impl Stores {
    pub(crate) async fn new() -> Self {
        let memory = Arc::new(MemoryStore::new());
        let dynamo = dynamodb().await;
        Self { memory, dynamo, records: vec![], keys: vec![], commits: vec![], number: 0 }
    }

    /// Writes the same to both, and says what differs.
    pub(crate) async fn strike(&mut self, stroke: &Stroke) -> Result<(), String> {
        self.number += 1;
        let writes = self.writes(stroke).await;
        if writes.is_empty() {
            return Ok(());
        }
        let before = contents(&*self.memory).await?;
        if self.is_remembered(&writes, &before) {
            return Ok(());
        }
        let in_memory = fate(self.memory.commit(&writes).await)?;
        let on_dynamo = fate(self.dynamo.commit(&writes).await)?;
        if in_memory != on_dynamo {
            return Err(format!("in memory {in_memory:?}\non DynamoDB {on_dynamo:?}\nof {writes:?}"));
        }
        let (left, other) = (contents(&*self.memory).await?, contents(&*self.dynamo).await?);
        if left != other {
            return Err(format!("left in memory {left:?}\non DynamoDB {other:?}\nby {writes:?}"));
        }
        compare_model(&writes, &before, &left, &in_memory)?;
        remember(&mut self.records, left.tasks);
        remember(&mut self.keys, left.keys);
        self.commits.push((writes, in_memory == Fate::Written));
        Ok(())
    }

    /// Whether this was a transaction that left no trace: all it wrote has been written over. `DynamoDB` knows it by
    /// its token for ten minutes and calls it done; in memory it is a conflict, which leads to the same answer later.
    fn is_remembered(&self, writes: &[Write], before: &Contents) -> bool {
        let was_written = self.commits.iter().any(|(tried, written)| *written && tried == writes);
        let stored =
            before.tasks.iter().map(|task| task.nonce).chain(before.keys.iter().map(|key| key.nonce));
        let left: Vec<Nonce> = stored.collect();
        let traces = writes.iter().any(|write| match write {
            Write::CreateTask { task, .. } => left.contains(&task.nonce),
            Write::PutKey { record, .. } => left.contains(&record.nonce),
            Write::UpdateTask { .. }
            | Write::Rearm { .. }
            | Write::PutQueue { .. }
            | Write::PutTick { .. }
            | Write::ExtendBlob { .. }
            | Write::ExtendKey { .. } => false,
        });
        writes.len() > 1 && was_written && !traces
    }

    async fn writes(&self, stroke: &Stroke) -> Vec<Write> {
        let now = START.plus(Millis::new(stroke.at));
        let place = |at: i64| Timestamp::from_millis(START.as_millis() + at);
        match (&stroke.what, self.picked(stroke)) {
            (What::Schedule(new), _) => self.decided(None, &self.schedule(*new), now),
            (What::Again(_), _) if self.commits.is_empty() => vec![],
            (What::Again(index), _) => index.get(&self.commits).0.clone(),
            (What::Queue { ahead }, _) => {
                let stored = self.memory.queue(&queue_name("q")).await.ok().flatten();
                let version = (stored.map_or(0, |stored| stored.version) + ahead).max(1);
                let record = QueueRecord { version, ..QueueRecord::new(queue_name("q"), self.nonce()) };
                vec![Write::PutQueue { record }]
            }
            (What::Tick { ahead }, _) => {
                let stored = self.memory.tick_record().await.ok().flatten();
                let version = (stored.map_or(0, |stored| stored.version) + ahead).max(1);
                vec![Write::PutTick { record: TickRecord { version, ..TickRecord::new(self.nonce()) } }]
            }
            (What::ExtendKey(key), _) => {
                let expires_at = now.plus(Millis::from_secs(90 * 86_400));
                vec![Write::ExtendKey { key: digest(*key), expires_at }]
            }
            (What::Decided(_) | What::Insist { .. } | What::Rearm { .. }, None) => vec![],
            (What::Decided(ask), Some(task)) => {
                let own = task.running().map(|running| running.lease);
                let new = LeaseId::from_bytes(u128::from(self.number).to_be_bytes());
                self.decided(Some(&task), &ask.command(own, new), now)
            }
            (What::Insist { latest }, Some(task)) => {
                let after = Task { version: task.version + 1, nonce: self.nonce(), ..task.clone() };
                let due_no_later_than = Some(place(*latest));
                vec![Write::UpdateTask { before: Box::new(task), after: Box::new(after), due_no_later_than }]
            }
            // What lies nowhere is never moved: no rule asks for it.
            (What::Rearm { to, kind }, Some(task)) => task.due.map_or_else(Vec::new, |due| {
                let to = Due { at: place(*to), kind: *kind, shard: due.shard };
                vec![Write::Rearm { task: Box::new(task.clone()), to }]
            }),
        }
    }

    fn picked(&self, stroke: &Stroke) -> Option<Task> {
        let task = self.records.iter().rev().nth(stroke.ago).or(self.records.first())?.clone();
        let incarnation = if stroke.stranger { Incarnation::from_bytes([9; 8]) } else { task.incarnation };
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
        decide(task, command, &Context { now, nonce: self.nonce(), limits: &limits }).writes
    }

    fn nonce(&self) -> Nonce {
        Nonce::from_bytes(self.number.to_be_bytes())
    }
}

/// The model's table has only tasks, and one write at a time.
fn compare_model(writes: &[Write], before: &Contents, left: &Contents, fate: &Fate) -> Result<(), String> {
    let [only] = writes else { return Ok(()) };
    let (Some(change), Some(id)) = (Change::of(only, None), task_of(only)) else { return Ok(()) };
    let find = |contents: &Contents| contents.tasks.iter().find(|task| task.id == *id).cloned();
    let stored = find(before);
    let (model, expected) = match write(stored.clone().map(Record::new).as_ref(), &change, false) {
        Verdict::Written(record) => (Fate::Written, Some((*record).clone())),
        Verdict::Done => (Fate::Written, stored),
        Verdict::Conflict => (Fate::Conflict(stored.clone().map(Box::new)), stored),
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

async fn contents(store: &dyn Store) -> Result<Contents, String> {
    let mut tasks = store.tasks(&IDS.map(task_id)).await.map_err(|error| error.to_string())?;
    tasks.sort_by(|one, other| one.id.cmp(&other.id));
    let mut keys = Vec::new();
    for key in KEYS {
        keys.extend(store.key(&digest(key)).await.map_err(|error| error.to_string())?);
    }
    let queue = store.queue(&queue_name("q")).await.map_err(|error| error.to_string())?;
    let tick = store.tick_record().await.map_err(|error| error.to_string())?;
    Ok(Contents { tasks, keys, queue, tick })
}

fn fate(answer: Result<(), StoreError>) -> Result<Fate, String> {
    match answer {
        Ok(()) => Ok(Fate::Written),
        Err(StoreError::Conflict { current }) => Ok(Fate::Conflict(current)),
        Err(error) => Err(format!("{error:?}")),
    }
}

fn task_of(write: &Write) -> Option<&TaskId> {
    match write {
        Write::CreateTask { task, .. } | Write::Rearm { task, .. } => Some(&task.id),
        Write::UpdateTask { before, .. } => Some(&before.id),
        Write::PutKey { .. }
        | Write::PutQueue { .. }
        | Write::PutTick { .. }
        | Write::ExtendBlob { .. }
        | Write::ExtendKey { .. } => None,
    }
}
