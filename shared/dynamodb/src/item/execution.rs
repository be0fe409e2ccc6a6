//! An execution's control record as an item, and back.
//!
//! As with tasks, an item is the record's own serialised form, including the journal: lists and numbers take fewer
//! bytes in it than in a JSON text. The fields that the keys contain are left out: its id, its due slot, and, in the
//! key of its workflow's list, the workflow's name and when it was started.

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::execution::{Execution, FORMAT};
use tickover_core::id::ExecutionId;
use tickover_service::ports::{Listed, StoreError};

use crate::attribute::{ALL_KEY, LIST_AT, LIST_KEY, execution as own, task as field};
use crate::item::record::{self, from_item, to_item};
use crate::item::{Item, check_format, corrupt, head_attributes, millis, number, own_id, read_due, string};
use crate::key::Key;
use crate::page::list::{List, workflow_in};

/// The fields of an execution that are elsewhere in its item.
const IN_KEYS: [&str; 4] = [field::ID, field::DUE, own::WORKFLOW, own::CREATED_AT];

/// Its item in a store with a list of these executions of all workflows.
pub(crate) fn of_execution(execution: &Execution, listed: Listed) -> Result<Item, StoreError> {
    let id = &execution.id;
    let mut item = to_item(execution)
        .map_err(|_| corrupt(format!("the record of execution {id} can't be serialised")))?;
    for known in IN_KEYS {
        item.remove(known);
    }
    item.extend(Key::execution(id).attributes());
    item.extend(added(execution, listed));
    Ok(item)
}

/// The attributes of an execution's item for the fields that are in its keys.
fn added(execution: &Execution, listed: Listed) -> Item {
    let mut item = head_attributes(&execution.into());
    let list = List::Executions(&execution.workflow).key_of(execution.id.as_str());
    item.insert(LIST_KEY.to_owned(), AttributeValue::S(list));
    item.insert(LIST_AT.to_owned(), millis(execution.created_at));
    let of_all = match listed {
        Listed::Failed | Listed::All if execution.has_failed() => Some(List::Failed),
        Listed::All => Some(List::All),
        Listed::Failed => None,
    };
    if let Some(list) = of_all {
        item.insert(ALL_KEY.to_owned(), AttributeValue::S(list.key_of(execution.id.as_str())));
    }
    item
}

/// As [`crate::item::changes`]. The count of wakes is left out: other writers add to it without a decision.
///
/// The key in the list of all workflows is always written or removed, because the stored one may be from a process with
/// another setting. An index costs nothing if the key stays the same.
pub(crate) fn changes(
    before: &Execution,
    after: &Execution,
    listed: Listed,
) -> Result<(Item, Item), StoreError> {
    let [id, due, workflow, created_at] = IN_KEYS;
    let difference = record::difference(before, after, &[id, due, workflow, created_at, own::WAKES])
        .map_err(|_| corrupt(format!("the record of execution {} can't be serialised", after.id)))?;
    let mut old = added(before, listed);
    old.insert(ALL_KEY.to_owned(), AttributeValue::Null(true));
    Ok(difference.between(old, added(after, listed)))
}

/// Reads an execution. The format is checked before anything else.
pub(crate) fn to_execution(mut item: Item) -> Result<Execution, StoreError> {
    let id: ExecutionId = own_id(&item, "execution")?;
    check_format(&item, FORMAT, &format!("execution {id}"))?;
    let due = read_due(&item, &format!("execution {id}"))?;
    let workflow = string(&item, LIST_KEY).and_then(workflow_in).map(str::to_owned);
    let (Some(workflow), Some(created_at)) = (workflow, number(&item, LIST_AT)) else {
        return Err(corrupt(format!("execution {id} lies in no workflow's list")));
    };
    item.insert(field::ID.to_owned(), AttributeValue::S(id.to_string()));
    item.insert(own::WORKFLOW.to_owned(), AttributeValue::S(workflow));
    item.insert(own::CREATED_AT.to_owned(), AttributeValue::N(created_at.to_string()));
    // Serde's message for a value that it can't read quotes the value, which may be a payload.
    let mut execution: Execution = from_item(item)
        .map_err(|_| corrupt(format!("the item of execution {id} isn't of its own format")))?;
    execution.due = due;
    Ok(execution)
}

#[cfg(test)]
pub(crate) mod tests;
