//! Each write of a decision as a statement: here the invariants become conditions.
//!
//! All conditions ask for the old item when they fail. So a write whose answer was lost is recognised by its nonce, and
//! a conflict returns the current record.

mod record;

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::cron::Cron;
use tickover_core::decision::Write;
use tickover_core::gate::{Gate, Waiter};
use tickover_core::id::{Fingerprint, GateId, Nonce, RecordId};
use tickover_core::operation::Operation;
use tickover_core::queue::{KeyRecord, QueueRecord};
use tickover_core::record::Record;
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;
use tickover_service::ports::{Listed, StoreError};

use crate::attribute::{DUE_AT, DUE_KIND, PK, TTL, row, task as field};
use crate::expression::{Placeholders, Statement, assignment};
use crate::item::cron::of_cron;
use crate::item::execution::{of_execution, to_execution};
use crate::item::gate::{of_gate, of_waiter};
use crate::item::operation::of_operation;
use crate::item::row::{of_key, of_queue, of_tick};
use crate::item::{Item, millis, number, of_task, seconds, string, to_task};
use crate::key::Key;

/// The write's statement, for a store with a list of these executions of all workflows.
pub(crate) fn statement(write: &Write, listed: Listed) -> Result<Statement, StoreError> {
    match write {
        Write::CreateTask { task, now } => Ok(record::create(of_task(task)?, *now)),
        Write::UpdateTask { before, after, due_no_later_than } => {
            record::update_task(before, after, *due_no_later_than)
        }
        Write::Rearm { task, to } => record::rearm(&(&**task).into(), *to),
        Write::CreateExecution { execution, now } => {
            Ok(record::create(of_execution(execution, listed)?, *now))
        }
        Write::UpdateExecution { before, after, due_no_later_than, wakes } => {
            record::update_execution(before, after, listed, *due_no_later_than, *wakes)
        }
        Write::RearmExecution { execution, to } => record::rearm(&(&**execution).into(), *to),
        Write::Wake { id, incarnation } => Ok(record::wake(id, *incarnation)),
        Write::PutKey { record, replaces } => put_key(record, replaces.as_ref()),
        Write::PutQueue { record } => put_queue(record),
        Write::PutOperation { record } => put_operation(record),
        Write::PutGate { record, replaces } => put_gate(record, *replaces),
        Write::PutWaiter { gate, waiter, expires_at } => put_waiter(gate, waiter, *expires_at),
        Write::DeleteWaiter { gate, waiter } => {
            let mut with = Placeholders::default();
            let condition = format!("attribute_exists({})", with.name(PK));
            Ok(Statement::delete(Key::waiter(gate, waiter), condition, with))
        }
        Write::PutTick { record } => put_tick(record),
        Write::PutCron { before, after } => put_cron(after, before.as_ref().map(|before| before.nonce)),
        Write::ExtendBlob { at } => Ok(extend(Key::blob(&at.id), at.expires_at)),
        Write::ExtendSegment { id, key, expires_at } => Ok(extend(Key::segment(id, key), *expires_at)),
        Write::ExtendKey { key, expires_at } => Ok(extend_key(key, *expires_at)),
    }
}

/// Whether the item on which a condition failed shows that this very decision was written before.
pub(crate) fn is_ours(write: &Write, old: &Item) -> bool {
    nonce(write).is_some_and(|nonce| string(old, field::NONCE) == Some(nonce.to_string().as_str()))
}

/// Whether the item on which a condition failed already is as the write would make it.
///
/// Only a re-arm is recognised by its result: it writes no nonce, or every hint of the record would be stale. It makes
/// no difference if another tick wrote the same.
pub(crate) fn is_already_applied(write: &Write, old: &Item) -> bool {
    let (incarnation, to) = match write {
        Write::Rearm { task, to } => (task.incarnation, to),
        Write::RearmExecution { execution, to } => (execution.incarnation, to),
        Write::CreateTask { .. }
        | Write::UpdateTask { .. }
        | Write::CreateExecution { .. }
        | Write::UpdateExecution { .. }
        | Write::Wake { .. }
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
        | Write::ExtendKey { .. } => return false,
    };
    string(old, field::INCARNATION) == Some(incarnation.to_string().as_str())
        && number(old, DUE_AT) == Some(to.at.as_millis())
        && string(old, DUE_KIND) == Some(to.kind.letter())
}

/// The nonce of the decision that a write belongs to, if the write stores one.
pub(crate) fn nonce(write: &Write) -> Option<Nonce> {
    match write {
        Write::CreateTask { task, .. } => Some(task.nonce),
        Write::UpdateTask { after, .. } => Some(after.nonce),
        Write::CreateExecution { execution, .. } => Some(execution.nonce),
        Write::UpdateExecution { after, .. } => Some(after.nonce),
        Write::PutKey { record, .. } => Some(record.nonce),
        Write::PutQueue { record } => Some(record.nonce),
        Write::PutOperation { record } => Some(record.nonce),
        Write::PutGate { record, .. } => Some(record.nonce),
        Write::PutTick { record } => Some(record.nonce),
        Write::PutCron { after, .. } => Some(after.nonce),
        Write::Rearm { .. }
        | Write::RearmExecution { .. }
        | Write::Wake { .. }
        | Write::PutWaiter { .. }
        | Write::DeleteWaiter { .. }
        | Write::ExtendBlob { .. }
        | Write::ExtendSegment { .. }
        | Write::ExtendKey { .. } => None,
    }
}

/// The record in the item on which a write's condition failed; `None` if the write isn't of a record, or there was no
/// record. (Some emulators return an empty item then.)
pub(crate) fn current(write: &Write, old: Option<&Item>) -> Option<Result<Record, StoreError>> {
    let old = || old.filter(|old| !old.is_empty()).cloned();
    match write {
        Write::CreateTask { .. } | Write::UpdateTask { .. } | Write::Rearm { .. } => {
            old().map(|old| Ok(to_task(old)?.into()))
        }
        Write::CreateExecution { .. }
        | Write::UpdateExecution { .. }
        | Write::RearmExecution { .. }
        | Write::Wake { .. } => old().map(|old| Ok(to_execution(old)?.into())),
        Write::PutKey { .. }
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

/// - `attribute_not_exists(pk)`: the key wasn't used, or its record is deleted;
/// - `OR non = :replaced`: or it is still the record that was found to be no longer valid.
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

/// - `attribute_not_exists(pk)` for version 1: this queue has no record;
/// - `ver = :before` for later ones: the record hasn't changed since.
fn put_queue(record: &QueueRecord) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let condition = follows(record.version, &mut with);
    Ok(Statement::put(of_queue(record)?, condition, with))
}

/// As for a queue.
fn put_operation(record: &Operation) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let condition = follows(record.version, &mut with);
    Ok(Statement::put(of_operation(record)?, condition, with))
}

/// As for a queue.
fn put_tick(record: &TickRecord) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let condition = follows(record.version, &mut with);
    Ok(Statement::put(of_tick(record)?, condition, with))
}

/// See [`written_by`].
fn put_cron(record: &Cron, replaces: Option<Nonce>) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let condition = written_by(replaces, &mut with);
    Ok(Statement::put(of_cron(record)?, condition, with))
}

/// See [`written_by`].
fn put_gate(record: &Gate, replaces: Option<Nonce>) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let condition = written_by(replaces, &mut with);
    Ok(Statement::put(of_gate(record)?, condition, with))
}

/// - `attribute_not_exists(pk)` for the first: there is no record of this id;
/// - `non = :replaced` for later ones: it is still the very record that was decided on.
fn written_by(replaces: Option<Nonce>, with: &mut Placeholders) -> String {
    match replaces {
        None => format!("attribute_not_exists({})", with.name(PK)),
        Some(seen) => {
            let nonce = with.value("replaced", AttributeValue::S(seen.to_string()));
            format!("{} = {nonce}", with.name(field::NONCE))
        }
    }
}

/// - `attribute_not_exists(pk)`: it doesn't wait there yet;
/// - `OR ttl < :ttl`: or its item would expire sooner.
fn put_waiter(gate: &GateId, waiter: &Waiter, expires_at: Timestamp) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let condition = format!(
        "attribute_not_exists({}) OR {} < {}",
        with.name(PK),
        with.name(TTL),
        with.value(TTL, seconds(expires_at)),
    );
    Ok(Statement::put(of_waiter(gate, waiter, expires_at)?, condition, with))
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

/// - `attribute_exists(pk)`: otherwise an update would create an item with nothing but its expiry;
/// - `AND ttl < :ttl`: a late write must not shorten what a later one has set.
fn extend(key: Key, expires_at: Timestamp) -> Statement {
    let mut with = Placeholders::default();
    let exists = format!("attribute_exists({})", with.name(PK));
    let expression = format!("SET {}", assignment(TTL, seconds(expires_at), &mut with));
    Statement::update(key, expression, format!("{exists} AND #{TTL} < :{TTL}"), with)
}

/// As for a payload, but without the condition on the old expiry. The record's own instant changes together with the
/// attribute by which the store deletes.
fn extend_key(key: &Fingerprint, expires_at: Timestamp) -> Statement {
    let mut with = Placeholders::default();
    let condition = format!("attribute_exists({})", with.name(PK));
    let expression = format!(
        "SET {}, {}",
        assignment(TTL, seconds(expires_at), &mut with),
        assignment(row::EXPIRES_AT, millis(expires_at), &mut with),
    );
    Statement::update(Key::of(&RecordId::Key(*key)), expression, condition, with)
}

#[cfg(test)]
mod tests;
