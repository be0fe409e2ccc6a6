//! Writes of control records: tasks and executions with the same conditions.

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::decision::Condition;
use tickover_core::due::Due;
use tickover_core::execution::FORMAT as EXECUTION_FORMAT;
use tickover_core::id::{ExecutionId, Incarnation};
use tickover_core::record::Record;
use tickover_core::time::Timestamp;
use tickover_service::ports::{Listed, StoreError};

use crate::attribute::{DUE_AT, DUE_KIND, FORMAT, PK, execution as own, task as field};
use crate::expression::{Placeholders, Statement, assignment, difference};
use crate::item::{self, corrupt, due_attributes, execution, millis, of_record};
use crate::key::Key;

/// The statement of a [`Put`](tickover_core::decision::Write::Put): for [`Condition::Unchanged`] an [`update`], for
/// the others a whole item.
pub(super) fn put(
    before: Option<&Record>,
    after: &Record,
    condition: Condition,
    listed: Listed,
) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let condition = match (condition, before) {
        // No record can't be an unchanged one.
        (Condition::Unchanged { .. }, None) => return Err(StoreError::Conflict { current: None }),
        (Condition::Unchanged { due_no_later_than, wakes }, Some(before)) => {
            return update(before, after, listed, due_no_later_than, wakes);
        }
        (Condition::Free { now }, _) => absent_or_gone(now, &mut with),
        (Condition::Same | Condition::SameOrAbsent, None) => absent(&mut with),
        (Condition::Same, Some(before)) => written_by(before, &mut with),
        (Condition::SameOrAbsent, Some(before)) => {
            format!("{} OR {}", absent(&mut with), written_by(before, &mut with))
        }
        (Condition::Follows, _) => match after.head().version.saturating_sub(1) {
            0 => absent(&mut with),
            before => of_version(before, &mut with),
        },
    };
    Ok(Statement::put(of_record(after, listed)?, condition, with))
}

/// `attribute_not_exists(pk)`: there is no record of this id.
fn absent(with: &mut Placeholders) -> String {
    format!("attribute_not_exists({})", with.name(PK))
}

/// - `attribute_not_exists(pk)`: there is no record of this id;
/// - `OR st.e.x <= :now`: or its retention has passed, so that for readers there is none. The record's own instant is
///   compared, not `ttl`: that is rounded up to seconds, and for the rest of a second the id would be neither readable
///   nor free. A record that hasn't ended lacks this path, and then the clause is false.
fn absent_or_gone(now: Timestamp, with: &mut Placeholders) -> String {
    format!(
        "{absent} OR {state}.{ended}.{expires_at} <= {now}",
        absent = absent(with),
        state = with.name(field::STATE),
        ended = with.name(field::ENDED),
        expires_at = with.name(field::EXPIRES_AT),
        now = with.value("now", millis(now)),
    )
}

/// `non = :replaced`: it is still the very record that was decided on.
fn written_by(before: &Record, with: &mut Placeholders) -> String {
    let replaced = AttributeValue::S(before.head().nonce.to_string());
    format!("{} = {}", with.name(field::NONCE), with.value("replaced", replaced))
}

/// `ver = :before`: there was no decision since this version.
fn of_version(version: u64, with: &mut Placeholders) -> String {
    let before = AttributeValue::N(version.to_string());
    format!("{} = {}", with.name(field::VERSION), with.value("before", before))
}

/// Writes only the attributes that differ, so the due index isn't written, and costs nothing, unless the due slot
/// changes.
///
/// - `inc = :incarnation`: it is still the same record, not a later one of the same id;
/// - `AND ver = :before`: there was no decision since the record that this was decided on (I2);
/// - `AND non = :replaced`: the decision was on what is stored. A hint may be sent before the write of the record that it
///   has, and another write may have made that version;
/// - `AND v = :format`: and no newer build has rewritten it in a format that this one doesn't know;
/// - `AND due_at <= :latest`, where given: a tick may have moved it later meanwhile, which leaves the version as it is;
///   then the instant that this write creates would be found too late (I4);
/// - `AND wak = :wakes`, where given: the execution that this write suspends wasn't woken meanwhile. The count of wakes
///   is never written: other writers add to it without a decision.
fn update(
    before: &Record,
    after: &Record,
    listed: Listed,
    latest: Option<Timestamp>,
    wakes: Option<u64>,
) -> Result<Statement, StoreError> {
    let mut with = Placeholders::default();
    let (mut old, new) = match (before, after) {
        (Record::Task(before), Record::Task(after)) => item::changes(before, after)?,
        (Record::Execution(before), Record::Execution(after)) => execution::changes(before, after, listed)?,
        (_, _) => return Err(only_whole(before)),
    };
    let (from, to) = (before.head(), after.head());
    if let (Some(due), Some(_)) = (from.due, to.due)
        && from.due != to.due
    {
        // The due slot in the table may not be the one that was decided on, so the new one is written as a whole.
        for (name, _) in due_attributes(due) {
            old.remove(name);
        }
    }
    let expression = difference(&old, new, &mut with).unwrap_or_default();
    let mut condition = format!(
        "{} AND {} AND {}",
        same(before, &mut with)?,
        of_version(from.version, &mut with),
        written_by(before, &mut with)
    );
    if let Some(latest) = latest {
        let clause = format!(" AND {} <= {}", with.name(DUE_AT), with.value("latest", millis(latest)));
        condition.push_str(&clause);
    }
    if let Some(wakes) = wakes {
        let seen = with.value("wakes", AttributeValue::N(wakes.to_string()));
        let clause = format!(" AND {} = {seen}", with.name(own::WAKES));
        condition.push_str(&clause);
    }
    Ok(Statement::update(Key::of(&before.id()), expression, condition, with))
}

/// Writes the due slot alone: no version and no nonce, so hints of the record stay valid.
///
/// - `inc = :incarnation AND v = :format`: as for an update;
/// - `AND ver = :version`: there was no decision since. Most decisions leave the due slot as it is, and one of them may
///   have made an instant that comes before the due slot to which this would move it (I4);
/// - `AND due_at = :old_at AND due_kind = :old_kind`: and its due slot is unchanged. A record that has ended has no due
///   slot, so it doesn't get one.
pub(super) fn rearm(record: &Record, to: Due) -> Result<Statement, StoreError> {
    let head = record.head();
    let Some(from) = head.due else {
        // A record without a due slot can't have an unchanged one.
        return Err(StoreError::Conflict { current: None });
    };
    let mut with = Placeholders::default();
    let condition = format!(
        "{} AND {} = {} AND {} = {} AND {} = {}",
        same(record, &mut with)?,
        with.name(field::VERSION),
        with.value("version", AttributeValue::N(head.version.to_string())),
        with.name(DUE_AT),
        with.value("old_at", millis(from.at)),
        with.name(DUE_KIND),
        with.value("old_kind", AttributeValue::S(from.kind.letter().to_owned())),
    );
    let expression = format!(
        "SET {}, {}",
        assignment(DUE_AT, millis(to.at), &mut with),
        assignment(DUE_KIND, AttributeValue::S(to.kind.letter().to_owned()), &mut with),
    );
    Ok(Statement::update(Key::of(&record.id()), expression, condition, with))
}

/// Adds one to the count of wakes. It changes neither version nor nonce: many callers can do it at once, and no
/// decision conflicts with it. Repeated after a lost answer it counts twice, which has no other effect than counting
/// once.
///
/// - `inc = :incarnation AND v = :format`: as for an update;
/// - `AND attribute_not_exists(st.c) AND attribute_not_exists(st.e)`: it is neither closing nor ended.
pub(super) fn wake(id: &ExecutionId, incarnation: Incarnation) -> Statement {
    let mut with = Placeholders::default();
    let condition = format!(
        "{same} AND attribute_not_exists({state}.{closing}) AND attribute_not_exists({state}.{ended})",
        same = same_record(incarnation, EXECUTION_FORMAT, &mut with),
        state = with.name(field::STATE),
        closing = with.name(own::CLOSING),
        ended = with.name(field::ENDED),
    );
    let one = with.value("one", AttributeValue::N("1".to_owned()));
    let expression = format!("ADD {} {one}", with.name(own::WAKES));
    Statement::update(Key::execution(id), expression, condition, with)
}

fn same(record: &Record, with: &mut Placeholders) -> Result<String, StoreError> {
    match record {
        Record::Task(task) => Ok(same_record(task.incarnation, task.format, with)),
        Record::Execution(execution) => Ok(same_record(execution.incarnation, execution.format, with)),
        Record::Cron(_)
        | Record::Queue(_)
        | Record::Operation(_)
        | Record::Gate(_)
        | Record::Tick(_)
        | Record::Key(_) => Err(only_whole(record)),
    }
}

fn only_whole(record: &Record) -> StoreError {
    corrupt(format!("the record {} is only written as a whole", record.id()))
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
