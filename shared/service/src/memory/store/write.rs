//! Writes in memory: all conditions first, then all changes.

use tickover_core::decision::Write;
use tickover_core::execution::Execution;
use tickover_core::id::{ExecutionId, Incarnation};
use tickover_core::task::Task;

use super::{Kept, Records};
use crate::condition::{Condition, Ruling, Stored, Verdict};
use crate::ports::{Current, StoreError};

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
        Some(condition.verdict(records.stored(write).as_ref()))
    };
    let verdicts: Vec<Verdict> =
        decided.iter().map(|write| verdict(write).unwrap_or(Verdict::Holds)).collect();
    match Ruling::of(&verdicts) {
        Ruling::Done => {}
        // Of several that fail, the first whose record can be shown.
        Ruling::Conflict(failed) => {
            let current = failed.into_iter().find_map(|index| records.current(decided[index]));
            return Err(StoreError::Conflict { current });
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
    fn current(&self, write: &Write) -> Option<Current> {
        match write {
            Write::CreateTask { task, .. } | Write::Rearm { task, .. } => self.task(task),
            Write::UpdateTask { before, .. } => self.task(before),
            Write::CreateExecution { execution, .. } | Write::RearmExecution { execution, .. } => {
                self.execution(execution)
            }
            Write::UpdateExecution { before, .. } => self.execution(before),
            Write::Wake { .. }
            | Write::PutKey { .. }
            | Write::PutQueue { .. }
            | Write::PutOperation { .. }
            | Write::PutGate { .. }
            | Write::PutWaiter { .. }
            | Write::DeleteWaiter { .. }
            | Write::PutTick { .. }
            | Write::PutCron { .. }
            | Write::ExtendBlob { .. }
            | Write::ExtendSegment { .. }
            | Write::ExtendKey { .. } => None,
        }
    }

    fn task(&self, of: &Task) -> Option<Current> {
        self.tasks.get(&of.id).map(|task| Current::Task(Box::new(task.clone())))
    }

    fn execution(&self, of: &Execution) -> Option<Current> {
        self.executions.get(&of.id).map(|execution| Current::Execution(Box::new(execution.clone())))
    }

    /// What conditions ask of the record that a write is of.
    fn stored(&self, write: &Write) -> Option<Stored> {
        match write {
            Write::CreateTask { task, .. }
            | Write::UpdateTask { before: task, .. }
            | Write::Rearm { task, .. } => self.tasks.get(&task.id).map(Stored::from),
            Write::CreateExecution { execution, .. }
            | Write::UpdateExecution { before: execution, .. }
            | Write::RearmExecution { execution, .. } => self.executions.get(&execution.id).map(Stored::from),
            Write::PutKey { record, .. } => self.keys.get(&record.key).map(Stored::from),
            Write::PutQueue { record } => self.queues.get(&record.name).map(Stored::from),
            Write::PutOperation { record } => self.operations.get(&record.id).map(Stored::from),
            Write::PutGate { record, .. } => self.gates.get(&record.id).map(Stored::from),
            Write::PutCron { after, .. } => self.crons.get(&after.id).map(Stored::from),
            Write::PutTick { .. } => self.tick.as_ref().map(Stored::from),
            Write::Wake { .. }
            | Write::PutWaiter { .. }
            | Write::DeleteWaiter { .. }
            | Write::ExtendBlob { .. }
            | Write::ExtendSegment { .. }
            | Write::ExtendKey { .. } => None,
        }
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::CreateTask { task, .. } => {
                self.tasks.insert(task.id.clone(), (**task).clone());
            }
            Write::UpdateTask { before, after, .. } => {
                if let Some(stored) = self.tasks.get_mut(&before.id) {
                    let due = if before.due == after.due { stored.due } else { after.due };
                    *stored = Task { due, ..(**after).clone() };
                }
            }
            Write::Rearm { task, to } => {
                if let Some(stored) = self.tasks.get_mut(&task.id) {
                    stored.due = Some(*to);
                }
            }
            Write::CreateExecution { execution, .. } => {
                self.executions.insert(execution.id.clone(), (**execution).clone());
            }
            Write::UpdateExecution { before, after, .. } => {
                if let Some(stored) = self.executions.get_mut(&before.id) {
                    let due = if before.due == after.due { stored.due } else { after.due };
                    *stored = Execution { due, wakes: stored.wakes, ..(**after).clone() };
                }
            }
            Write::RearmExecution { execution, to } => {
                if let Some(stored) = self.executions.get_mut(&execution.id) {
                    stored.due = Some(*to);
                }
            }
            Write::Wake { id, incarnation } => self.wake(id, *incarnation),
            Write::PutKey { record, .. } => {
                self.keys.insert(record.key, record.clone());
            }
            Write::PutQueue { record } => {
                self.queues.insert(record.name.clone(), record.clone());
            }
            Write::PutOperation { record } => {
                self.operations.insert(record.id.clone(), (**record).clone());
            }
            Write::PutGate { record, .. } => {
                self.gates.insert(record.id.clone(), (**record).clone());
            }
            Write::PutWaiter { gate, waiter, expires_at } => {
                let kept = Kept { value: waiter.clone(), expires_at: Some(*expires_at) };
                self.waiters.insert((gate.clone(), waiter.sort_key()), kept);
            }
            Write::DeleteWaiter { gate, waiter } => {
                self.waiters.remove(&(gate.clone(), waiter.sort_key()));
            }
            Write::PutTick { record } => self.tick = Some(record.clone()),
            Write::PutCron { after, .. } => {
                self.crons.insert(after.id.clone(), (**after).clone());
            }
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
                if let Some(stored) = self.keys.get_mut(key) {
                    stored.expires_at = *expires_at;
                }
            }
        }
    }

    /// Only one that is open: another one has nothing to go on with.
    fn wake(&mut self, id: &ExecutionId, incarnation: Incarnation) {
        let stored = self.executions.get_mut(id).filter(|stored| stored.incarnation == incarnation);
        if let Some(stored) = stored.filter(|stored| stored.closed().is_none()) {
            stored.wakes += 1;
        }
    }
}
