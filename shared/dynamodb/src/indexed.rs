//! The keys of the table and its indexes that a write touches: to count how many writes each key takes.

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::decision::Write;
use tickover_service::ports::{Listed, StoreError};

use crate::attribute::{ALL_KEY, DUE_AT, DUE_KIND, DUE_SHARD, LIST_AT, LIST_KEY, PK};
use crate::expression::Action;
use crate::item::{Item, string};
use crate::write::statement;

/// The attributes of a record that the indexes have besides its own key.
const INDEXED: [&str; 6] = [DUE_SHARD, DUE_AT, DUE_KIND, LIST_KEY, LIST_AT, ALL_KEY];

/// The attributes that the indexes have of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Indexed {
    attributes: Item,
}

/// A record's entry in an index.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The index's partition key.
    pub key: String,
    /// Its sort key.
    at: AttributeValue,
    /// Its other attribute.
    rest: Option<AttributeValue>,
}

impl Entry {
    /// Whether both have the same keys, whatever their other attributes are.
    pub fn has_same_keys(&self, other: &Self) -> bool {
        (&self.key, &self.at) == (&other.key, &other.at)
    }
}

impl Indexed {
    /// The entry in the due index.
    pub fn due(&self) -> Option<Entry> {
        self.entry(DUE_SHARD, DUE_AT, Some(DUE_KIND))
    }

    /// The entry in the list index.
    pub fn list(&self) -> Option<Entry> {
        self.entry(LIST_KEY, LIST_AT, None)
    }

    /// The entry in the index of all workflows.
    pub fn all(&self) -> Option<Entry> {
        self.entry(ALL_KEY, LIST_AT, None)
    }

    /// The table's partition key that a write changes, and the attributes that the indexes have of that record
    /// afterwards, in a store with a list of these executions of
    /// all workflows.
    ///
    /// # Errors
    ///
    /// If the record can't be serialised as an item.
    pub fn after(&self, write: &Write, listed: Listed) -> Result<(String, Self), StoreError> {
        let statement = statement(write, listed)?;
        let (_, values) = statement.placeholders.into_maps();
        Ok(match statement.action {
            Action::Put(mut item) => {
                let pk = string(&item, PK).unwrap_or_default().to_owned();
                item.retain(|name, _| INDEXED.contains(&name.as_str()));
                (pk, Self { attributes: item })
            }
            Action::Delete { key } => (string(&key, PK).unwrap_or_default().to_owned(), Self::default()),
            Action::Update { key, expression } => {
                let pk = string(&key, PK).unwrap_or_default().to_owned();
                let mut attributes = self.attributes.clone();
                let values = values.unwrap_or_default();
                for name in INDEXED {
                    if expression.contains(&format!("#{name} = :{name}")) {
                        attributes.extend(
                            values.get(&format!(":{name}")).map(|value| (name.to_owned(), value.clone())),
                        );
                    } else if expression.split([' ', ',']).any(|word| word.strip_prefix('#') == Some(name)) {
                        attributes.remove(name);
                    }
                }
                (pk, Self { attributes })
            }
        })
    }

    fn entry(&self, key: &str, at: &str, rest: Option<&str>) -> Option<Entry> {
        Some(Entry {
            key: string(&self.attributes, key)?.to_owned(),
            at: self.attributes.get(at)?.clone(),
            rest: rest.and_then(|rest| self.attributes.get(rest)).cloned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use tickover_core::decision::Condition;
    use tickover_core::due::{Due, DueKind};
    use tickover_core::execution::Execution;
    use tickover_core::id::Nonce;
    use tickover_core::time::Timestamp;

    use super::*;
    use crate::item::execution::tests::pending;

    #[test]
    fn what_the_indexes_hold_follows_from_the_writes_as_they_are_sent() {
        let before = pending();
        let due = before.due.unwrap();
        let create = Write::put(before.clone(), Condition::Free { now: before.created_at });
        let (pk, created) = Indexed::default().after(&create, Listed::All).unwrap();
        assert_eq!(pk, "exec#order-7");
        assert_eq!(
            (created.due().unwrap().key, created.list().unwrap().key),
            ("3".into(), "wf#checkout#27".into())
        );

        let to = Due { kind: DueKind::Recheck, ..due };
        let rearm = Write::Rearm { record: before.clone().into(), to };
        let (_, rearmed) = created.after(&rearm, Listed::All).unwrap();
        assert_ne!(rearmed, created);
        assert!(rearmed.due().unwrap().has_same_keys(&created.due().unwrap()));

        let update = |due| {
            let after = Execution { version: 2, nonce: Nonce::from_bytes([8; 8]), due, ..before.clone() };
            Write::replace(before.clone(), after, Condition::UNCHANGED)
        };
        assert_eq!(created.after(&update(Some(due)), Listed::All).unwrap().1, created);
        let later = Due { at: Timestamp::from_millis(due.at.as_millis() + 1), ..due };
        let (_, moved) = created.after(&update(Some(later)), Listed::All).unwrap();
        assert!(!moved.due().unwrap().has_same_keys(&created.due().unwrap()));
        let (_, gone) = created.after(&update(None), Listed::All).unwrap();
        assert_eq!((gone.due(), gone.list(), gone.all()), (None, created.list(), created.all()));
        assert_eq!(created.all().unwrap().key, "rest#27");
        let (_, left) = created.after(&update(Some(due)), Listed::Failed).unwrap();
        assert_eq!((left.all(), left.list()), (None, created.list()));
    }
}
