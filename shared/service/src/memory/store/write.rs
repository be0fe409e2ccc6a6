//! Writes in memory: all conditions first, then all changes.

use tickover_core::decision::Write;
use tickover_core::execution::Execution;
use tickover_core::id::{ExecutionId, Incarnation, RecordId, TaskId};
use tickover_core::record::Record;
use tickover_core::task::Task;

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
    matches!(
        write,
        Write::ExtendBlob { .. }
            | Write::ExtendSegment { .. }
            | Write::ExtendKey { .. }
            | Write::PutWaiter { .. }
    )
}

const fn comes_last(write: &Write) -> bool {
    matches!(write, Write::Wake { .. } | Write::DeleteWaiter { .. })
}

impl Records {
    /// The record that a write is of, as it stands.
    fn current(&self, write: &Write) -> Option<&Record> {
        let id = match write {
            Write::CreateTask { task, .. }
            | Write::UpdateTask { before: task, .. }
            | Write::Rearm { task, .. } => RecordId::Task(task.id.clone()),
            Write::CreateExecution { execution, .. }
            | Write::UpdateExecution { before: execution, .. }
            | Write::RearmExecution { execution, .. } => RecordId::Execution(execution.id.clone()),
            Write::PutKey { record, .. } => RecordId::Key(record.key),
            Write::PutQueue { record } => RecordId::Queue(record.name.clone()),
            Write::PutOperation { record } => RecordId::Operation(record.id.clone()),
            Write::PutGate { record, .. } => RecordId::Gate(record.id.clone()),
            Write::PutCron { after, .. } => RecordId::Cron(after.id.clone()),
            Write::PutTick { .. } => RecordId::Tick,
            Write::Wake { .. }
            | Write::PutWaiter { .. }
            | Write::DeleteWaiter { .. }
            | Write::ExtendBlob { .. }
            | Write::ExtendSegment { .. }
            | Write::ExtendKey { .. } => return None,
        };
        self.by_id.get(&id)
    }

    fn put(&mut self, record: impl Into<Record>) {
        let record = record.into();
        self.by_id.insert(record.id(), record);
    }

    fn task(&mut self, id: &TaskId) -> Option<&mut Task> {
        let record = self.by_id.get_mut(&id.clone().into())?;
        if let Record::Task(task) = record { Some(task) } else { None }
    }

    fn execution(&mut self, id: &ExecutionId) -> Option<&mut Execution> {
        let record = self.by_id.get_mut(&id.clone().into())?;
        if let Record::Execution(execution) = record { Some(execution) } else { None }
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::CreateTask { task, .. } => self.put((**task).clone()),
            Write::UpdateTask { before, after, .. } => {
                if let Some(stored) = self.task(&before.id) {
                    let due = if before.due == after.due { stored.due } else { after.due };
                    *stored = Task { due, ..(**after).clone() };
                }
            }
            Write::Rearm { task, to } => {
                if let Some(stored) = self.task(&task.id) {
                    stored.due = Some(*to);
                }
            }
            Write::CreateExecution { execution, .. } => self.put((**execution).clone()),
            Write::UpdateExecution { before, after, .. } => {
                if let Some(stored) = self.execution(&before.id) {
                    let due = if before.due == after.due { stored.due } else { after.due };
                    *stored = Execution { due, wakes: stored.wakes, ..(**after).clone() };
                }
            }
            Write::RearmExecution { execution, to } => {
                if let Some(stored) = self.execution(&execution.id) {
                    stored.due = Some(*to);
                }
            }
            Write::Wake { id, incarnation } => self.wake(id, *incarnation),
            Write::PutKey { record, .. } => self.put(record.clone()),
            Write::PutQueue { record } => self.put(record.clone()),
            Write::PutOperation { record } => self.put((**record).clone()),
            Write::PutGate { record, .. } => self.put((**record).clone()),
            Write::PutWaiter { gate, waiter, expires_at } => {
                let kept = Kept { value: waiter.clone(), expires_at: Some(*expires_at) };
                self.waiters.insert((gate.clone(), waiter.sort_key()), kept);
            }
            Write::DeleteWaiter { gate, waiter } => {
                self.waiters.remove(&(gate.clone(), waiter.sort_key()));
            }
            Write::PutTick { record } => self.put(record.clone()),
            Write::PutCron { after, .. } => self.put((**after).clone()),
            Write::ExtendBlob { at } => {
                if let Some(kept) = self.blobs.get_mut(&at.id) {
                    kept.extend(at.expires_at);
                }
            }
            Write::ExtendSegment { id, key, expires_at } => {
                if let Some(kept) = self.segments.get_mut(&(id.clone(), *key)) {
                    kept.extend(*expires_at);
                }
            }
            Write::ExtendKey { key, expires_at } => {
                if let Some(Record::Key(stored)) = self.by_id.get_mut(&RecordId::Key(*key)) {
                    stored.expires_at = *expires_at;
                }
            }
        }
    }

    /// Only one that is open: another one has nothing to go on with.
    fn wake(&mut self, id: &ExecutionId, incarnation: Incarnation) {
        let stored = self.execution(id).filter(|stored| stored.incarnation == incarnation);
        if let Some(stored) = stored.filter(|stored| stored.closed().is_none()) {
            stored.wakes += 1;
        }
    }
}
