//! Writes in memory: all conditions first, then all changes.

use tickover_core::decision::Write;
use tickover_core::task::Task;

use super::Records;
use crate::ports::StoreError;

/// What a condition came to.
enum Condition {
    Holds,
    /// It doesn't, because this very decision was written before.
    Ours,
    /// It doesn't, and the record is already as wanted: enough for a write by itself, no proof for its others.
    AsWanted,
    Fails,
}

pub(super) fn commit(records: &mut Records, writes: &[Write]) -> Result<(), StoreError> {
    let (extensions, decided): (Vec<&Write>, Vec<&Write>) =
        writes.iter().partition(|write| matches!(write, Write::ExtendBlob { .. } | Write::ExtendKey { .. }));
    for extension in extensions {
        records.apply(extension);
    }
    let conditions: Vec<Condition> = decided.iter().map(|write| records.condition(write)).collect();
    match conditions.as_slice() {
        [Condition::AsWanted] => return Ok(()),
        // Applied together: one that was is all that were.
        conditions if conditions.iter().any(|condition| matches!(condition, Condition::Ours)) => {
            return Ok(());
        }
        _ => {}
    }
    let failed = |condition: &Condition| matches!(condition, Condition::Fails | Condition::AsWanted);
    if conditions.iter().any(failed) {
        let mut losers = decided.iter().zip(&conditions).filter(|(_, condition)| failed(condition));
        let current = losers.find_map(|(write, _)| records.task_of(write)).cloned().map(Box::new);
        return Err(StoreError::Conflict { current });
    }
    for write in decided {
        records.apply(write);
    }
    Ok(())
}

impl Records {
    /// The task that a write is of, as it stands.
    fn task_of(&self, write: &Write) -> Option<&Task> {
        match write {
            Write::CreateTask { task, .. } | Write::Rearm { task, .. } => self.tasks.get(&task.id),
            Write::UpdateTask { before, .. } => self.tasks.get(&before.id),
            Write::PutKey { .. }
            | Write::PutQueue { .. }
            | Write::PutTick { .. }
            | Write::ExtendBlob { .. }
            | Write::ExtendKey { .. } => None,
        }
    }

    fn condition(&self, write: &Write) -> Condition {
        let stored = self.task_of(write);
        let (holds, written_by, writes) = match write {
            Write::CreateTask { task, now } => (
                stored.is_none_or(|stored| stored.is_gone(*now)),
                stored.map(|stored| stored.nonce),
                task.nonce,
            ),
            Write::UpdateTask { before, after, due_no_later_than } => (
                stored.is_some_and(|stored| {
                    let in_time = |latest| stored.due.is_some_and(|due| due.at <= latest);
                    stored.incarnation == before.incarnation
                        && stored.version == before.version
                        && due_no_later_than.is_none_or(in_time)
                }),
                stored.map(|stored| stored.nonce),
                after.nonce,
            ),
            Write::PutKey { record, replaces } => {
                let written_by = self.keys.get(&record.key).map(|stored| stored.nonce);
                let replaced = replaces.as_ref().map(|replaced| replaced.nonce);
                (written_by.is_none() || written_by == replaced, written_by, record.nonce)
            }
            Write::PutQueue { record } => {
                let stored = self.queues.get(&record.name);
                let version = stored.map_or(0, |stored| stored.version);
                (version + 1 == record.version, stored.map(|stored| stored.nonce), record.nonce)
            }
            Write::PutTick { record } => {
                let version = self.tick.as_ref().map_or(0, |stored| stored.version);
                let written_by = self.tick.as_ref().map(|stored| stored.nonce);
                (version + 1 == record.version, written_by, record.nonce)
            }
            Write::Rearm { task, to } => {
                let same = stored.filter(|stored| stored.incarnation == task.incarnation);
                let same_version = same.is_some_and(|stored| stored.version == task.version);
                return match same.and_then(|stored| stored.due) {
                    Some(due) if Some(due) == task.due && same_version => Condition::Holds,
                    Some(due) if due == *to => Condition::AsWanted,
                    Some(_) | None => Condition::Fails,
                };
            }
            Write::ExtendBlob { .. } | Write::ExtendKey { .. } => return Condition::Holds,
        };
        match (holds, written_by == Some(writes)) {
            (true, _) => Condition::Holds,
            (false, true) => Condition::Ours,
            (false, false) => Condition::Fails,
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
            Write::PutKey { record, .. } => {
                self.keys.insert(record.key, record.clone());
            }
            Write::PutQueue { record } => {
                self.queues.insert(record.name.clone(), record.clone());
            }
            Write::PutTick { record } => self.tick = Some(record.clone()),
            // Payloads are kept for good here.
            Write::ExtendBlob { .. } => {}
            Write::ExtendKey { key, expires_at } => {
                if let Some(stored) = self.keys.get_mut(key) {
                    stored.expires_at = *expires_at;
                }
            }
        }
    }
}
