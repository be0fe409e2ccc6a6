//! The one table of a run, and the record of what really happened to it.
//!
//! Underneath is the memory store, whose conditions are exact. On top of it: every change is noted as it is
//! applied, and the due index lags behind the table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use tickover_core::decision::Write;
use tickover_core::due::Due;
use tickover_core::duration::Millis;
use tickover_core::id::{BlobId, TaskId};
use tickover_core::payload::Json;
use tickover_core::task::Task;
use tickover_core::time::Timestamp;
use tickover_service::memory::{ManualClock, MemoryStore};
use tickover_service::ports::{Clock as _, DueEntry, DueRange, Page, Store, StoreError};

use super::dice::Dice;
use super::history::{Actor, History, Stored, What};

/// Entries of a page: few, so that a handful of tasks already takes several.
const PAGE: usize = 4;

/// The table, its index, and its history.
pub struct Ledger {
    /// The records themselves.
    pub store: MemoryStore,
    clock: Arc<ManualClock>,
    history: Arc<History>,
    dice: Dice,
    index: Mutex<BTreeMap<TaskId, Vec<Place>>>,
}

/// Where a record lies in the due index from an instant on.
struct Place {
    from: Timestamp,
    due: Option<Due>,
}

impl Ledger {
    /// An empty table.
    pub fn new(seed: u64, clock: Arc<ManualClock>, history: Arc<History>) -> Self {
        let dice = Dice::new(seed, "ledger");
        Self { store: MemoryStore::new(), clock, history, dice, index: Mutex::default() }
    }

    /// A record as it really is now.
    pub fn task(&self, id: &TaskId) -> Option<Task> {
        self.store.task(id).now_or_never()?.ok()?
    }

    /// A payload as it really is now.
    pub fn blob(&self, id: &BlobId) -> Option<Json> {
        self.store.blob(id).now_or_never()?.ok()?
    }

    /// Whether nothing is left to be done for any task.
    pub fn all_have_ended(&self) -> bool {
        let index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.values().all(|places| places.last().is_none_or(|last| last.due.is_none()))
    }

    /// Applies a commit, at once and for all to see; the index follows within `lag`.
    pub fn commit(&self, actor: Actor, writes: &[Write], lag_ms: u64) -> Result<(), StoreError> {
        let ids: BTreeSet<&TaskId> = writes.iter().filter_map(task_of).collect();
        let before: Vec<Option<Task>> = ids.iter().map(|id| self.task(id)).collect();
        let unanswered = || StoreError::Unavailable { reason: "the memory store waited".to_owned() };
        let answer = self.store.commit(writes).now_or_never().ok_or_else(unanswered)?;
        for (id, before) in ids.into_iter().zip(before) {
            let Some(after) = self.task(id).filter(|after| before.as_ref() != Some(after)) else { continue };
            if before.as_ref().and_then(|task| task.due) != after.due {
                self.move_in_index(&after, lag_ms);
            }
            let stored = Box::new(Stored { before, after });
            self.history.note(self.clock.now(), actor, What::Stored(stored));
        }
        answer
    }

    /// A part of the index as it is now, a page at a time.
    pub fn due(&self, range: DueRange, limit: usize, cursor: Option<&str>) -> Page<DueEntry> {
        let now = self.clock.now();
        let index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries: Vec<(Timestamp, &TaskId, Due)> = index
            .iter()
            .filter_map(|(id, places)| {
                let place = places.iter().rev().find(|place| place.from <= now)?;
                let due = place.due.filter(|due| due.shard == range.shard)?;
                (range.from..=range.until).contains(&due.at).then_some((due.at, id, due))
            })
            .collect();
        entries.sort_unstable_by_key(|(at, id, _)| (*at, *id));
        let name = |at: Timestamp, id: &TaskId| format!("{:020}/{id}", at.as_millis());
        if let Some(cursor) = cursor {
            entries.retain(|(at, id, _)| name(*at, id).as_str() > cursor);
        }
        let is_last = entries.len() <= limit.min(PAGE);
        entries.truncate(limit.min(PAGE));
        let next = entries.last().filter(|_| !is_last).map(|(at, id, _)| name(*at, id));
        let entry = |(at, id, due): (Timestamp, &TaskId, Due)| DueEntry {
            task: id.clone(),
            due_at: at,
            kind: due.kind,
        };
        Page { items: entries.into_iter().map(entry).collect(), next }
    }

    fn move_in_index(&self, task: &Task, lag_ms: u64) {
        let now = self.clock.now();
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let places = index.entry(task.id.clone()).or_default();
        // A record's changes reach the index in their order.
        let earliest = places.last().map_or(now, |last| last.from.max(now));
        let lag = if lag_ms == 0 { Millis::ZERO } else { self.dice.millis(0, lag_ms) };
        places.push(Place { from: now.plus(lag).max(earliest), due: task.due });
        let seen = places.iter().rposition(|place| place.from <= now).unwrap_or(0);
        places.drain(..seen);
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
