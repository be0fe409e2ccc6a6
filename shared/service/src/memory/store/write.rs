//! Writes in memory: all conditions first, then all changes.

use tickover_core::decision::{Expiring, Write};
use tickover_core::id::{ExecutionId, Incarnation, RecordId};
use tickover_core::record::Record;

use super::{Kept, Records};
use crate::condition::{Condition, Ruling, Verdict};
use crate::ports::StoreError;

pub(super) fn commit(records: &mut Records, writes: &[Write]) -> Result<(), StoreError> {
    for extension in writes.iter().filter(|write| comes_first(write)) {
        records.apply(extension);
    }
    let is_decided = |write: &&Write| !comes_first(write) && !comes_last(write);
    let decided: Vec<&Write> = writes.iter().filter(is_decided).collect();
    apply_decided(records, &decided)?;
    // A woken execution must find what it is woken for.
    for wake in writes.iter().filter(|write| comes_last(write)) {
        records.apply(wake);
    }
    Ok(())
}

fn apply_decided(records: &mut Records, decided: &[&Write]) -> Result<(), StoreError> {
    let verdict = |write: &&Write| {
        let condition = Condition::of(write)?;
        Some(condition.verdict(records.current(write).map(Record::head).as_ref()))
    };
    let verdicts: Vec<Verdict> =
        decided.iter().map(|write| verdict(write).unwrap_or(Verdict::Holds)).collect();
    match Ruling::of(&verdicts) {
        Ruling::Done => {}
        // Of several that fail, the first whose record is shown: a task's or an execution's.
        Ruling::Conflict(failed) => {
            let is_shown = |record: &&Record| matches!(record, Record::Task(_) | Record::Execution(_));
            let shown = |index: usize| records.current(decided[index]).filter(is_shown);
            return Err(StoreError::Conflict { current: failed.into_iter().find_map(shown).cloned() });
        }
        Ruling::Write => decided.iter().for_each(|write| records.apply(write)),
    }
    Ok(())
}

const fn comes_first(write: &Write) -> bool {
    matches!(write, Write::Extend { .. } | Write::PutWaiter { .. })
}

const fn comes_last(write: &Write) -> bool {
    matches!(write, Write::Wake { .. } | Write::DeleteWaiter { .. })
}

impl Records {
    /// The record that a write is of, as it stands.
    fn current(&self, write: &Write) -> Option<&Record> {
        self.by_id.get(&write.record()?.id())
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::Put { before, after, .. } => self.put(before.as_ref(), after.clone()),
            Write::Rearm { record, to } => {
                if let Some(stored) = self.by_id.get_mut(&record.id()) {
                    stored.set_due(Some(*to));
                }
            }
            Write::Wake { id, incarnation } => self.wake(id, *incarnation),
            Write::PutWaiter { gate, waiter, expires_at } => {
                let kept = Kept { value: waiter.clone(), expires_at: Some(*expires_at) };
                self.waiters.insert((gate.clone(), waiter.sort_key()), kept);
            }
            Write::DeleteWaiter { gate, waiter } => {
                self.waiters.remove(&(gate.clone(), waiter.sort_key()));
            }
            Write::Extend { item: Expiring::Blob(id), expires_at } => {
                if let Some(kept) = self.blobs.get_mut(id) {
                    kept.extend(*expires_at);
                }
            }
            Write::Extend { item: Expiring::Segment(id, key), expires_at } => {
                if let Some(kept) = self.segments.get_mut(&(id.clone(), *key)) {
                    kept.extend(*expires_at);
                }
            }
            Write::Extend { item: Expiring::Key(key), expires_at } => {
                if let Some(Record::Key(stored)) = self.by_id.get_mut(&RecordId::Key(*key)) {
                    stored.expires_at = *expires_at;
                }
            }
        }
    }

    /// Without a decision, the stored record may have been moved in the due index, and woken.
    fn put(&mut self, before: Option<&Record>, mut after: Record) {
        if let (Some(stored), Some(before)) = (self.by_id.get(&after.id()), before) {
            let (stored, before, head) = (stored.head(), before.head(), after.head());
            if before.due == head.due {
                after.set_due(stored.due);
            }
            if let Record::Execution(after) = &mut after {
                after.wakes = stored.wakes;
            }
        }
        self.by_id.insert(after.id(), after);
    }

    /// Only one that is open: another one has nothing to go on with.
    fn wake(&mut self, id: &ExecutionId, incarnation: Incarnation) {
        if let Some(Record::Execution(stored)) = self.by_id.get_mut(&RecordId::Execution(id.clone()))
            && stored.incarnation == incarnation
            && stored.closed().is_none()
        {
            stored.wakes += 1;
        }
    }
}
