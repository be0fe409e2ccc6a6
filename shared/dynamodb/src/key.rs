//! Every key of the table is made, and read back, here.

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::id::{BlobId, Fingerprint, QueueName, TaskId};

use crate::attribute::{PK, SK};
use crate::item::Item;

const TASK: &str = "task";
const BLOB: &str = "blob";
const QUEUE: &str = "queue";
const KEY: &str = "key";
const TICK: &str = "tick";

/// The sort key of every task.
pub(crate) const TASK_SK: &str = TASK;

/// An item's primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) pk: String,
    pub(crate) sk: String,
}

impl Key {
    pub(crate) fn task(id: &TaskId) -> Self {
        Self::of(TASK, id.as_str())
    }

    pub(crate) fn blob(id: &BlobId) -> Self {
        Self::of(BLOB, &id.to_string())
    }

    pub(crate) fn queue(name: &QueueName) -> Self {
        Self::of(QUEUE, name.as_str())
    }

    pub(crate) fn idempotency(digest: &Fingerprint) -> Self {
        Self::of(KEY, &digest.to_string())
    }

    /// There is one record of all ticks.
    pub(crate) fn tick() -> Self {
        Self::of(TICK, "all")
    }

    fn of(what: &str, id: &str) -> Self {
        Self { pk: format!("{what}#{id}"), sk: what.to_owned() }
    }

    /// The key as the attributes of an item.
    pub(crate) fn attributes(self) -> Item {
        Item::from([(PK.to_owned(), AttributeValue::S(self.pk)), (SK.to_owned(), AttributeValue::S(self.sk))])
    }
}

/// The id in a task's partition key; `None` if it is another record's.
pub(crate) fn task_id(pk: &str) -> Option<TaskId> {
    TaskId::parse(suffix(pk, TASK)?).ok()
}

/// The name in a queue's partition key; `None` if it is another record's.
pub(crate) fn queue_name(pk: &str) -> Option<QueueName> {
    QueueName::parse(suffix(pk, QUEUE)?).ok()
}

fn suffix<'a>(pk: &'a str, what: &str) -> Option<&'a str> {
    pk.strip_prefix(what)?.strip_prefix('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_the_record_and_are_read_back() {
        let id = TaskId::parse("a:b").unwrap();
        let key = Key::task(&id);
        assert_eq!((key.pk.as_str(), key.sk.as_str()), ("task#a:b", "task"));
        assert_eq!(task_id(&key.pk), Some(id));
        let mail = QueueName::parse("mail").unwrap();
        assert_eq!(Key::queue(&mail), Key { pk: "queue#mail".into(), sk: "queue".into() });
        assert_eq!(queue_name("queue#mail"), Some(mail));
        assert_eq!(Key::blob(&BlobId::from_bytes([0; 16])).pk, "blob#AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(Key::idempotency(&Fingerprint::from_bytes([0; 16])).sk, "key");
    }

    #[test]
    fn another_records_key_is_no_tasks() {
        for pk in ["queue#mail", "task", "task#", "tasks#a", "task#a b"] {
            assert_eq!(task_id(pk), None, "{pk}");
        }
    }
}
