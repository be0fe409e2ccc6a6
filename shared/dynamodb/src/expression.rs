//! A request to write one item: an action and a condition, with a placeholder for every name and value.
//!
//! [`crate::write`] defines the conditions.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeValue, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};

use crate::item::Item;
use crate::key::Key;

/// One write of one item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statement {
    pub(crate) action: Action,
    pub(crate) condition: String,
    pub(crate) placeholders: Placeholders,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Put(Item),
    Update { key: Item, expression: String },
    Delete { key: Item },
}

/// Attributes by their placeholders.
type Names = HashMap<String, String>;

/// The names and values behind the placeholders of expressions. All names need a placeholder, because some are reserved
/// words.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Placeholders {
    names: Names,
    values: Item,
}

impl Placeholders {
    /// The placeholder of an attribute.
    pub(crate) fn name(&mut self, attribute: &str) -> String {
        let placeholder = format!("#{attribute}");
        self.names.insert(placeholder.clone(), attribute.to_owned());
        placeholder
    }

    /// The placeholder of a value; the label must be new.
    pub(crate) fn value(&mut self, label: &str, value: AttributeValue) -> String {
        let placeholder = format!(":{label}");
        self.values.insert(placeholder.clone(), value);
        placeholder
    }

    /// The names and the values; `None` instead of an empty map, which `DynamoDB` refuses.
    pub(crate) fn into_maps(self) -> (Option<Names>, Option<Item>) {
        let Self { names, values } = self;
        ((!names.is_empty()).then_some(names), (!values.is_empty()).then_some(values))
    }
}

/// The update that turns `before` into `after`, sorted by name: the same change is always the same text, which a
/// transaction's token relies on. `None` if there is no difference.
pub(crate) fn difference(before: &Item, mut after: Item, placeholders: &mut Placeholders) -> Option<String> {
    let mut names: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
    names.sort_unstable();
    names.dedup();
    let (mut set, mut removed) = (Vec::new(), Vec::new());
    for name in names {
        match after.remove(&name) {
            Some(value) if before.get(&name) == Some(&value) => {}
            Some(value) => set.push(assignment(&name, value, placeholders)),
            None => removed.push(placeholders.name(&name)),
        }
    }
    let clause =
        |verb, parts: Vec<String>| (!parts.is_empty()).then(|| format!("{verb} {}", parts.join(", ")));
    let clauses: Vec<String> =
        [clause("SET", set), clause("REMOVE", removed)].into_iter().flatten().collect();
    (!clauses.is_empty()).then(|| clauses.join(" "))
}

/// `#name = :name`, for use after `SET`.
pub(crate) fn assignment(name: &str, value: AttributeValue, placeholders: &mut Placeholders) -> String {
    format!("{} = {}", placeholders.name(name), placeholders.value(name, value))
}

impl Statement {
    pub(crate) fn put(item: Item, condition: String, placeholders: Placeholders) -> Self {
        Self { action: Action::Put(item), condition, placeholders }
    }

    pub(crate) fn update(
        key: Key,
        expression: String,
        condition: String,
        placeholders: Placeholders,
    ) -> Self {
        Self { action: Action::Update { key: key.attributes(), expression }, condition, placeholders }
    }

    pub(crate) fn delete(key: Key, condition: String, placeholders: Placeholders) -> Self {
        Self { action: Action::Delete { key: key.attributes() }, condition, placeholders }
    }

    /// The same statement for a transaction.
    pub(crate) fn in_transaction(self, table: &str) -> Result<TransactWriteItem, BuildError> {
        let (names, values) = self.placeholders.into_maps();
        let all_old = ReturnValuesOnConditionCheckFailure::AllOld;
        Ok(match self.action {
            Action::Put(item) => {
                let put = Put::builder()
                    .table_name(table)
                    .set_item(Some(item))
                    .condition_expression(self.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(all_old);
                TransactWriteItem::builder().put(put.build()?).build()
            }
            Action::Update { key, expression } => {
                let update = Update::builder()
                    .table_name(table)
                    .set_key(Some(key))
                    .update_expression(expression)
                    .condition_expression(self.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(all_old);
                TransactWriteItem::builder().update(update.build()?).build()
            }
            Action::Delete { key } => {
                let delete = Delete::builder()
                    .table_name(table)
                    .set_key(Some(key))
                    .condition_expression(self.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(all_old);
                TransactWriteItem::builder().delete(delete.build()?).build()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(pairs: &[(&str, &str)]) -> Item {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), AttributeValue::S((*value).to_owned())))
            .collect()
    }

    #[test]
    fn only_what_differs_is_written_in_the_order_of_the_names() {
        let before = item(&[("a", "1"), ("b", "1"), ("c", "1"), ("due", "1")]);
        let after = item(&[("a", "1"), ("d", "2"), ("b", "2")]);
        let mut placeholders = Placeholders::default();
        let update = difference(&before, after, &mut placeholders);
        assert_eq!(update.as_deref(), Some("SET #b = :b, #d = :d REMOVE #c, #due"));
        let (names, values) = placeholders.into_maps();
        assert_eq!(names.map(|names| names.len()), Some(4));
        assert_eq!(values, Some(item(&[(":b", "2"), (":d", "2")])));
    }

    #[test]
    fn no_difference_is_no_update_and_no_empty_map() {
        let same = item(&[("a", "1")]);
        let mut placeholders = Placeholders::default();
        assert_eq!(difference(&same, same.clone(), &mut placeholders), None);
        assert_eq!(placeholders.into_maps(), (None, None));
    }
}
