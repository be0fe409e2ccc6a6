//! Writes in memory: first all conditions are checked, then all changes made.

use tickover_core::decision::Write;
use tickover_core::due::Due;
use tickover_core::execution::Execution;
use tickover_core::id::{ExecutionId, Incarnation, Nonce};
use tickover_core::task::Task;
use tickover_core::time::Timestamp;

use super::Records;
use crate::ports::{Current, StoreError};

/// The result of a condition.
enum Condition {
    Holds,
    /// It fails, because this very decision was written before.
    Ours,
    /// It fails, and the record already is as this write would make it. This is enough for a single write, but doesn't
    /// show that other writes of its commit were made.
    AsWanted,
    Fails,
}

/// The fields that conditions check, whatever the record's kind.
#[derive(Clone, Copy)]
struct Face {
    incarnation: Incarnation,
    version: u64,
    nonce: Nonce,
    due: Option<Due>,
}

impl From<&Task> for Face {
    fn from(task: &Task) -> Self {
        let Task { incarnation, version, nonce, due, .. } = *task;
        Self { incarnation, version, nonce, due }
    }
}

impl From<&Execution> for Face {
    fn from(execution: &Execution) -> Self {
        let Execution { incarnation, version, nonce, due, .. } = *execution;
        Self { incarnation, version, nonce, due }
    }
}

impl Condition {
    /// For a write that stores its decision's nonce.
    fn marked(holds: bool, written_by: Option<Nonce>, writes: Nonce) -> Self {
        match (holds, written_by == Some(writes)) {
            (true, _) => Self::Holds,
            (false, true) => Self::Ours,
            (false, false) => Self::Fails,
        }
    }

    /// For an update of a record whose version must be unchanged, and whose due slot must not be later than `latest`.
    fn updated(stored: Option<Face>, before: Face, after: Face, latest: Option<Timestamp>) -> Self {
        let holds = stored.is_some_and(|stored| {
            let in_time = |latest| stored.due.is_some_and(|due| due.at <= latest);
            stored.incarnation == before.incarnation
                && stored.version == before.version
                && latest.is_none_or(in_time)
        });
        Self::marked(holds, stored.map(|stored| stored.nonce), after.nonce)
    }

    /// For moving a record whose due slot must be unchanged.
    fn moved(stored: Option<Face>, before: Face, to: Due) -> Self {
        let same = stored.filter(|stored| stored.incarnation == before.incarnation);
        let same_version = same.is_some_and(|stored| stored.version == before.version);
        match same.and_then(|stored| stored.due) {
            Some(due) if Some(due) == before.due && same_version => Self::Holds,
            Some(due) if due == to => Self::AsWanted,
            Some(_) | None => Self::Fails,
        }
    }
}

pub(super) fn commit(records: &mut Records, writes: &[Write]) -> Result<(), StoreError> {
    for extension in writes.iter().filter(|write| is_extension(write)) {
        records.apply(extension);
    }
    let is_decided = |write: &&Write| !is_extension(write) && !is_wake(write);
    let decided: Vec<&Write> = writes.iter().filter(is_decided).collect();
    settle(records, &decided)?;
    // Last, because a woken execution must find the other writes.
    for wake in writes.iter().filter(|write| is_wake(write)) {
        records.apply(wake);
    }
    Ok(())
}

fn settle(records: &mut Records, decided: &[&Write]) -> Result<(), StoreError> {
    let conditions: Vec<Condition> = decided.iter().map(|write| records.condition(write)).collect();
    match conditions.as_slice() {
        [Condition::AsWanted] => return Ok(()),
        // Writes are applied together: if one was, all were.
        conditions if conditions.iter().any(|condition| matches!(condition, Condition::Ours)) => {
            return Ok(());
        }
        _ => {}
    }
    let failed = |condition: &Condition| matches!(condition, Condition::Fails | Condition::AsWanted);
    if conditions.iter().any(failed) {
        let mut losers = decided.iter().zip(&conditions).filter(|(_, condition)| failed(condition));
        return Err(StoreError::Conflict { current: losers.find_map(|(write, _)| records.current(write)) });
    }
    for write in decided {
        records.apply(write);
    }
    Ok(())
}

const fn is_extension(write: &Write) -> bool {
    matches!(write, Write::ExtendBlob { .. } | Write::ExtendSegment { .. } | Write::ExtendKey { .. })
}

const fn is_wake(write: &Write) -> bool {
    matches!(write, Write::Wake { .. })
}

impl Records {
    /// The current record of a write.
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

    fn condition(&self, write: &Write) -> Condition {
        match write {
            Write::CreateTask { task, now } => {
                let stored = self.tasks.get(&task.id);
                let is_free = stored.is_none_or(|stored| stored.is_gone(*now));
                Condition::marked(is_free, stored.map(|stored| stored.nonce), task.nonce)
            }
            Write::UpdateTask { before, after, due_no_later_than } => {
                let stored = self.tasks.get(&before.id).map(Face::from);
                Condition::updated(stored, (&**before).into(), (&**after).into(), *due_no_later_than)
            }
            Write::Rearm { task, to } => {
                Condition::moved(self.tasks.get(&task.id).map(Face::from), (&**task).into(), *to)
            }
            Write::CreateExecution { execution, now } => {
                let stored = self.executions.get(&execution.id);
                let is_free = stored.is_none_or(|stored| stored.is_gone(*now));
                Condition::marked(is_free, stored.map(|stored| stored.nonce), execution.nonce)
            }
            Write::UpdateExecution { before, after, due_no_later_than, wakes } => {
                let stored = self.executions.get(&before.id);
                let unseen = stored.filter(|stored| wakes.is_some_and(|seen| stored.wakes != seen));
                match unseen {
                    Some(stored) => Condition::marked(false, Some(stored.nonce), after.nonce),
                    None => Condition::updated(
                        stored.map(Face::from),
                        (&**before).into(),
                        (&**after).into(),
                        *due_no_later_than,
                    ),
                }
            }
            Write::RearmExecution { execution, to } => {
                let stored = self.executions.get(&execution.id).map(Face::from);
                Condition::moved(stored, (&**execution).into(), *to)
            }
            Write::PutKey { record, replaces } => {
                let written_by = self.keys.get(&record.key).map(|stored| stored.nonce);
                let replaced = replaces.as_ref().map(|replaced| replaced.nonce);
                let is_free = written_by.is_none() || written_by == replaced;
                Condition::marked(is_free, written_by, record.nonce)
            }
            Write::PutQueue { record } => {
                let stored = self.queues.get(&record.name);
                let follows = stored.map_or(0, |stored| stored.version) + 1 == record.version;
                Condition::marked(follows, stored.map(|stored| stored.nonce), record.nonce)
            }
            Write::PutCron { before, after } => {
                let written_by = self.crons.get(&after.id).map(|stored| stored.nonce);
                let replaced = before.as_ref().map(|before| before.nonce);
                Condition::marked(written_by == replaced, written_by, after.nonce)
            }
            Write::PutTick { record } => {
                let stored = self.tick.as_ref();
                let follows = stored.map_or(0, |stored| stored.version) + 1 == record.version;
                Condition::marked(follows, stored.map(|stored| stored.nonce), record.nonce)
            }
            Write::Wake { .. }
            | Write::ExtendBlob { .. }
            | Write::ExtendSegment { .. }
            | Write::ExtendKey { .. } => Condition::Holds,
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

    /// Only an open execution is woken: a closed one has nothing to continue.
    fn wake(&mut self, id: &ExecutionId, incarnation: Incarnation) {
        let stored = self.executions.get_mut(id).filter(|stored| stored.incarnation == incarnation);
        if let Some(stored) = stored.filter(|stored| stored.closed().is_none()) {
            stored.wakes += 1;
        }
    }
}
