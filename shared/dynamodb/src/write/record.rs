//! Writes of control records: tasks and executions with the same conditions.

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::due::Due;
use tickover_core::execution::{Execution, FORMAT as EXECUTION_FORMAT};
use tickover_core::id::{ExecutionId, Incarnation};
use tickover_core::task::Task;
use tickover_core::time::Timestamp;
use tickover_service::ports::{Listed, StoreError};

use crate::attribute::{DUE_AT, DUE_KIND, FORMAT, PK, execution as own, task as field};
use crate::expression::{Placeholders, Statement, assignment, difference};
use crate::item::execution;
use crate::item::{self, Item, due_attributes, millis};
use crate::key::Key;

/// The fields for a write's conditions, from the record that was decided on.
pub(super) struct Decided {
    key: Key,
    incarnation: Incarnation,
    format: u8,
    version: u64,
    due: Option<Due>,
}

impl From<&Task> for Decided {
    fn from(task: &Task) -> Self {
        let Task { incarnation, format, version, due, .. } = *task;
        Self { key: Key::of(&task.id.clone().into()), incarnation, format, version, due }
    }
}

impl From<&Execution> for Decided {
    fn from(execution: &Execution) -> Self {
        let Execution { incarnation, format, version, due, .. } = *execution;
        Self { key: Key::execution(&execution.id), incarnation, format, version, due }
    }
}

/// - `attribute_not_exists(pk)`: there is no record of this id;
/// - `OR st.e.x <= :now`: or its retention has passed, so that for readers there is none. The record's own instant is
///   compared, not `ttl`: that is rounded up to seconds, and for the rest of a second the id would be neither readable
///   nor free. A record that hasn't ended lacks this path, and then the clause is false.
pub(super) fn create(item: Item, now: Timestamp) -> Statement {
    let mut with = Placeholders::default();
    let condition = format!(
        "attribute_not_exists({pk}) OR {state}.{ended}.{expires_at} <= {now}",
        pk = with.name(PK),
        state = with.name(field::STATE),
        ended = with.name(field::ENDED),
        expires_at = with.name(field::EXPIRES_AT),
        now = with.value("now", millis(now)),
    );
    Statement::put(item, condition, with)
}

/// See [`update`].
pub(super) fn update_task(
    before: &Task,
    after: &Task,
    latest: Option<Timestamp>,
) -> Result<Statement, StoreError> {
    let changed = Changed { items: item::changes(before, after)?, due: after.due };
    Ok(update(before.into(), changed, latest, None))
}

/// See [`update`]. The count of wakes is never written: other writers add to it without a decision.
pub(super) fn update_execution(
    before: &Execution,
    after: &Execution,
    listed: Listed,
    latest: Option<Timestamp>,
    wakes: Option<u64>,
) -> Result<Statement, StoreError> {
    let changed = Changed { items: execution::changes(before, after, listed)?, due: after.due };
    Ok(update(before.into(), changed, latest, wakes))
}

/// What an update changes in a record.
struct Changed {
    /// Its attributes before and after, if they may differ.
    items: (Item, Item),
    /// Its new due slot.
    due: Option<Due>,
}

/// Writes only the attributes that differ, so the due index isn't written, and costs nothing, unless the due slot
/// changes.
///
/// - `inc = :incarnation`: it is still the same record, not a later one of the same id;
/// - `AND ver = :before`: there was no decision since the record that this was decided on (I2);
/// - `AND v = :format`: and no newer build has rewritten it in a format that this one doesn't know;
/// - `AND due_at <= :latest`, where given: a tick may have moved it later meanwhile, which leaves the version as it is;
///   then the instant that this write creates would be found too late (I4);
/// - `AND wak = :wakes`, where given: the execution that this write suspends wasn't woken meanwhile.
fn update(decided: Decided, changed: Changed, latest: Option<Timestamp>, wakes: Option<u64>) -> Statement {
    let mut with = Placeholders::default();
    let Changed { items: (mut old, after), due } = changed;
    if decided.due != due {
        // The due slot in the table may not be the one that was decided on, so the new one is written as a whole.
        if let (Some(from), Some(_)) = (decided.due, due) {
            for (name, _) in due_attributes(from) {
                old.remove(name);
            }
        }
    }
    let expression = difference(&old, after, &mut with).unwrap_or_default();
    let mut condition = format!(
        "{} AND {} = {}",
        same_record(decided.incarnation, decided.format, &mut with),
        with.name(field::VERSION),
        with.value("before", AttributeValue::N(decided.version.to_string())),
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
    Statement::update(decided.key, expression, condition, with)
}

/// Writes the due slot alone: no version and no nonce, so hints of the record stay valid.
///
/// - `inc = :incarnation AND v = :format`: as for an update;
/// - `AND ver = :version`: there was no decision since. Most decisions leave the due slot as it is, and one of them may
///   have made an instant that comes before the due slot to which this would move it (I4);
/// - `AND due_at = :old_at AND due_kind = :old_kind`: and its due slot is unchanged. A record that has ended has no due
///   slot, so it doesn't get one.
pub(super) fn rearm(decided: &Decided, to: Due) -> Result<Statement, StoreError> {
    let Some(from) = decided.due else {
        // A record without a due slot can't have an unchanged one.
        return Err(StoreError::Conflict { current: None });
    };
    let mut with = Placeholders::default();
    let condition = format!(
        "{} AND {} = {} AND {} = {} AND {} = {}",
        same_record(decided.incarnation, decided.format, &mut with),
        with.name(field::VERSION),
        with.value("version", AttributeValue::N(decided.version.to_string())),
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
    Ok(Statement::update(decided.key.clone(), expression, condition, with))
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

fn same_record(incarnation: Incarnation, format: u8, with: &mut Placeholders) -> String {
    format!(
        "{} = {} AND {} = {}",
        with.name(field::INCARNATION),
        with.value("incarnation", AttributeValue::S(incarnation.to_string())),
        with.name(FORMAT),
        with.value("format", AttributeValue::N(format.to_string())),
    )
}
