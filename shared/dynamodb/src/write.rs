//! Each write of a decision as a statement: this is where the invariants become conditions.
//!
//! All conditions ask for the old item when they fail, so that a write whose answer was lost is recognised
//! (by its nonce), and a conflict comes with the record as it stands.

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::decision::Write;
use tickover_core::due::Due;
use tickover_core::id::{Fingerprint, Incarnation, Nonce};
use tickover_core::payload::BlobRef;
use tickover_core::queue::{KeyRecord, QueueRecord};
use tickover_core::task::Task;
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;
use tickover_service::ports::StoreError;

use crate::attribute::{DUE_AT, DUE_KIND, FORMAT, PK, TTL, row, task as field};
use crate::expression::{Placeholders, Statement, assignment, difference};
use crate::item::{Item, due_attributes, kind_name, millis, number, of_task, seconds, string};
use crate::key::Key;
use crate::row::{of_key, of_queue, of_tick};

/// The statement for a write.
pub(crate) fn statement(write: &Write) -> Result<Statement, StoreError> {
    match write {
        Write::CreateTask { task, now } => create_task(task, *now),
        Write::UpdateTask { before, after, due_no_later_than } => {
            update_task(before, after, *due_no_later_than)
        }
        Write::Rearm { task, to } => rearm(task, *to),
        Write::PutKey { record, replaces } => put_key(record, replaces.as_ref()),
        Write::PutQueue { record } => put_queue(record),
        Write::PutTick { record } => put_tick(record),
        Write::ExtendBlob { at } => Ok(extend_blob(at)),
        Write::ExtendKey { key, expires_at } => Ok(extend_key(key, *expires_at)),
    }
}

/// Whether the item a condition failed on shows that this very decision had been written before.
pub(crate) fn is_ours(write: &Write, old: &Item) -> bool {
    nonce(write).is_some_and(|nonce| string(old, field::NONCE) == Some(nonce.to_string().as_str()))
}

/// Whether the item a condition failed on is already what the write would make of it.
///
/// Only a re-arming is told by its outcome: it leaves no nonce behind, or every hint of the task would be stale.
/// That a tick beside this one wrote the same makes no difference.
pub(crate) fn is_as_wanted(write: &Write, old: &Item) -> bool {
    match write {
        Write::Rearm { task, to } => {
            string(old, field::INCARNATION) == Some(task.incarnation.to_string().as_str())
                && number(old, DUE_AT) == Some(to.at.as_millis())
                && string(old, DUE_KIND) == Some(kind_name(to.kind).as_str())
        }
        Write::CreateTask { .. }
        | Write::UpdateTask { .. }
        | Write::PutKey { .. }
        | Write::PutQueue { .. }
        | Write::PutTick { .. }
        | Write::ExtendBlob { .. }
        | Write::ExtendKey { .. } => false,
    }
}

/// The mark of the decision that a write belongs to, where it leaves one.
pub(crate) fn nonce(write: &Write) -> Option<Nonce> {
    match write {
        Write::CreateTask { task, .. } => Some(task.nonce),
        Write::UpdateTask { after, .. } => Some(after.nonce),
        Write::PutKey { record, .. } => Some(record.nonce),
        Write::PutQueue { record } => Some(record.nonce),
        Write::PutTick { record } => Some(record.nonce),
        Write::Rearm { .. } | Write::ExtendBlob { .. } | Write::ExtendKey { .. } => None,
    }
}

/// Whether the write is of a task, so that the item its condition failed on is one.
pub(crate) fn is_of_task(write: &Write) -> bool {
    match write {
        Write::CreateTask { .. } | Write::UpdateTask { .. } | Write::Rearm { .. } => true,
        Write::PutKey { .. }
        | Write::PutQueue { .. }
        | Write::PutTick { .. }
        | Write::ExtendBlob { .. }
        | Write::ExtendKey { .. } => false,
    }
}

/// - `attribute_not_exists(pk)`: there is no task of this id;
/// - `OR st.e.x <= :now`: or its retention has passed, so that for readers there is none. The record's own
///   instant is compared, not `ttl`: that is rounded up to seconds, and for the rest of a second the id would
///   be neither readable nor free. The path leads nowhere in a record that hasn't ended, and then this is false.
fn create_task(task: &Task, now: Timestamp) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let condition = format!(
        "attribute_not_exists({pk}) OR {state}.{ended}.{expires_at} <= {now}",
        pk = with.name(PK),
        state = with.name(field::STATE),
        ended = with.name(field::ENDED),
        expires_at = with.name(field::EXPIRES_AT),
        now = with.value("now", millis(now)),
    );
    Ok(Statement::put(of_task(task)?, condition, with))
}

/// Writes only the attributes that differ, so the due index is left alone, and costs nothing, unless the place
/// in it changes.
///
/// - `inc = :incarnation`: it is still the same task, not a later one of the same id;
/// - `AND ver = :before`: nobody has decided anything since the record that this was decided on (I2);
/// - `AND v = :format`: and no newer build has rewritten it in a form that this one doesn't know;
/// - `AND due_at <= :latest`, where given: a tick may have moved it later meanwhile, which leaves the version
///   as it is; then the instant that this write creates would be found too late (I4).
fn update_task(before: &Task, after: &Task, latest: Option<Timestamp>) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let mut old = of_task(before)?;
    if before.due != after.due {
        // The place as it was decided on may not be the one in the table: what comes is written whole.
        if let (Some(due), Some(_)) = (before.due, after.due) {
            for (name, _) in due_attributes(due) {
                old.remove(name);
            }
        }
    }
    let expression = difference(&old, of_task(after)?, &mut with).unwrap_or_default();
    let mut condition = format!(
        "{} AND {} = {}",
        same_record(before.incarnation, before.format, &mut with),
        with.name(field::VERSION),
        with.value("before", AttributeValue::N(before.version.to_string())),
    );
    if let Some(latest) = latest {
        let clause = format!(" AND {} <= {}", with.name(DUE_AT), with.value("latest", millis(latest)));
        condition.push_str(&clause);
    }
    Ok(Statement::update(Key::task(&before.id), expression, condition, with))
}

/// Writes the place in the due index alone: no version and no nonce, so hints of the task stay good.
///
/// - `inc = :incarnation AND v = :format`: as for an update;
/// - `AND ver = :version`: nobody has decided anything since. Most decisions leave the place as it is, and one of
///   them may have made an instant that comes before the place this would move it to (I4);
/// - `AND due_at = :old_at AND due_kind = :old_kind`: and it still lies where it was found. A record that has
///   ended lies nowhere, so it isn't woken.
fn rearm(task: &Task, to: Due) -> Result<Statement, StoreError> {
    let Some(from) = task.due else {
        // What lies nowhere can't still lie where it was found.
        return Err(StoreError::Conflict { current: None });
    };
    let mut with = Placeholders::default();
    let condition = format!(
        "{} AND {} = {} AND {} = {} AND {} = {}",
        same_record(task.incarnation, task.format, &mut with),
        with.name(field::VERSION),
        with.value("version", AttributeValue::N(task.version.to_string())),
        with.name(DUE_AT),
        with.value("old_at", millis(from.at)),
        with.name(DUE_KIND),
        with.value("old_kind", AttributeValue::S(kind_name(from.kind))),
    );
    let expression = format!(
        "SET {}, {}",
        assignment(DUE_AT, millis(to.at), &mut with),
        assignment(DUE_KIND, AttributeValue::S(kind_name(to.kind)), &mut with),
    );
    Ok(Statement::update(Key::task(&task.id), expression, condition, with))
}

fn same_record(incarnation: Incarnation, format: u8, with: &mut Placeholders) -> String {
    format!(
        "{} = {} AND {} = {}",
        with.name(field::INCARNATION),
        with.value("incarnation", AttributeValue::S(incarnation.to_string())),
        with.name(FORMAT),
        with.value("format", AttributeValue::N(format.to_string())),
    )
}

/// - `attribute_not_exists(pk)`: nobody has used the key, or its record is deleted;
/// - `OR non = :replaced`: or it is still the record that was found to stand for nothing any more.
fn put_key(record: &KeyRecord, replaces: Option<&KeyRecord>) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let none = format!("attribute_not_exists({})", with.name(PK));
    let condition = match replaces {
        None => none,
        Some(seen) => format!(
            "{none} OR {} = {}",
            with.name(field::NONCE),
            with.value("replaced", AttributeValue::S(seen.nonce.to_string())),
        ),
    };
    Ok(Statement::put(of_key(record)?, condition, with))
}

/// - `attribute_not_exists(pk)` for version 1: nobody has written a record of this queue;
/// - `ver = :before` for later ones: nobody has since.
fn put_queue(record: &QueueRecord) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let condition = follows(record.version, &mut with);
    Ok(Statement::put(of_queue(record)?, condition, with))
}

/// As for a queue.
fn put_tick(record: &TickRecord) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let condition = follows(record.version, &mut with);
    Ok(Statement::put(of_tick(record)?, condition, with))
}

fn follows(version: u64, with: &mut Placeholders) -> String {
    match version.checked_sub(1) {
        None | Some(0) => format!("attribute_not_exists({})", with.name(PK)),
        Some(before) => {
            let before = with.value("before", AttributeValue::N(before.to_string()));
            format!("{} = {before}", with.name(field::VERSION))
        }
    }
}

/// `attribute_exists(pk)`: an update would otherwise make an item that holds nothing but its expiry.
fn extend_blob(at: &BlobRef) -> Statement {
    let mut with = Placeholders::default();
    let condition = format!("attribute_exists({})", with.name(PK));
    let expression = format!("SET {}", assignment(TTL, seconds(at.expires_at), &mut with));
    Statement::update(Key::blob(&at.id), expression, condition, with)
}

/// As for a payload; the record's own instant moves with the attribute that the store deletes by.
fn extend_key(key: &Fingerprint, expires_at: Timestamp) -> Statement {
    let mut with = Placeholders::default();
    let condition = format!("attribute_exists({})", with.name(PK));
    let expression = format!(
        "SET {}, {}",
        assignment(TTL, seconds(expires_at), &mut with),
        assignment(row::EXPIRES_AT, millis(expires_at), &mut with),
    );
    Statement::update(Key::idempotency(key), expression, condition, with)
}

#[cfg(test)]
mod tests;
