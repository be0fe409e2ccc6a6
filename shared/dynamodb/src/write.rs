//! Each write of a decision as a statement: here the invariants become conditions.
//!
//! All conditions ask for the old item when they fail. So a write whose answer was lost is recognised by its nonce, and
//! a conflict returns the current record.

mod record;

use tickover_core::decision::{Expiring, Write};
use tickover_core::gate::Waiter;
use tickover_core::id::{Fingerprint, GateId, Nonce, RecordId};
use tickover_core::record::Record;
use tickover_core::time::Timestamp;
use tickover_service::ports::{Listed, StoreError};

use crate::attribute::{DUE_AT, DUE_KIND, PK, TTL, row, task as field};
use crate::expression::{Placeholders, Statement, assignment};
use crate::item::gate::of_waiter;
use crate::item::{Item, millis, number, seconds, string, to_record};
use crate::key::Key;

/// The write's statement, for a store with a list of these executions of all workflows.
pub(crate) fn statement(write: &Write, listed: Listed) -> Result<Statement, StoreError> {
    match write {
        Write::Put { before, after, condition } => record::put(before.as_ref(), after, *condition, listed),
        Write::Rearm { record, to } => record::rearm(record, *to),
        Write::Wake { id, incarnation } => Ok(record::wake(id, *incarnation)),
        Write::PutWaiter { gate, waiter, expires_at } => put_waiter(gate, waiter, *expires_at),
        Write::DeleteWaiter { gate, waiter } => {
            let mut with = Placeholders::default();
            let condition = format!("attribute_exists({})", with.name(PK));
            Ok(Statement::delete(Key::waiter(gate, waiter), condition, with))
        }
        Write::Extend { item, expires_at } => Ok(match item {
            Expiring::Blob(id) => extend(Key::blob(id), *expires_at),
            Expiring::Segment(id, key) => extend(Key::segment(id, key), *expires_at),
            Expiring::Key(key) => extend_key(key, *expires_at),
        }),
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
    let Write::Rearm { record, to } = write else { return false };
    let incarnation = record.head().incarnation.map(|incarnation| incarnation.to_string());
    string(old, field::INCARNATION) == incarnation.as_deref()
        && number(old, DUE_AT) == Some(to.at.as_millis())
        && string(old, DUE_KIND) == Some(to.kind.letter())
}

/// The nonce of the decision that a write belongs to, if the write stores one.
pub(crate) fn nonce(write: &Write) -> Option<Nonce> {
    if let Write::Put { after, .. } = write { Some(after.head().nonce) } else { None }
}

/// The task or execution in the item on which a write's condition failed; `None` if the write is of no such record, or
/// there was none. (Some emulators return an empty item then.)
pub(crate) fn current(write: &Write, old: Option<&Item>) -> Option<Result<Record, StoreError>> {
    let id = match write {
        Write::Put { after: record, .. } | Write::Rearm { record, .. } => record.id(),
        Write::Wake { id, .. } => id.clone().into(),
        Write::PutWaiter { .. } | Write::DeleteWaiter { .. } | Write::Extend { .. } => return None,
    };
    let is_shown = matches!(id, RecordId::Task(_) | RecordId::Execution(_));
    let old = old.filter(|old| is_shown && !old.is_empty())?;
    Some(to_record(&id, old.clone()))
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
