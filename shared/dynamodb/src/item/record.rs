//! Records as attributes, and back: through `serde_json`'s values, so that each record's type is serialised in one way
//! only. A second way would add code to every function's archive.

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use crate::item::Item;

/// A record that isn't a struct, or attributes that don't fit the record. Has no details: serde would quote values,
/// which may be payloads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfit;

/// A record's item: each field is an attribute.
pub(crate) fn to_item<T: Serialize>(record: &T) -> Result<Item, Unfit> {
    Ok(fields(record)?.into_iter().map(|(name, value)| (name, attribute(value))).collect())
}

/// The record of an item. Unknown attributes are ignored, whatever their type: bytes and sets, which no record has,
/// come from a later build or an operator.
pub(crate) fn from_item<T: DeserializeOwned>(mut item: Item) -> Result<T, Unfit> {
    item.retain(|_, attribute| !is_foreign(attribute));
    serde_json::from_value(object(item)?).map_err(|_| Unfit)
}

/// The differences between two versions of a record.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Difference {
    /// The fields with another value, with the new value.
    pub(crate) changed: Item,
    /// The fields that were removed.
    pub(crate) gone: Vec<String>,
}

impl Difference {
    /// The attributes of both versions that may differ. `old` and `new` are the attributes that aren't fields of the
    /// record.
    pub(crate) fn between(self, mut old: Item, mut new: Item) -> (Item, Item) {
        // The old value doesn't matter: the attribute is removed.
        old.extend(self.gone.into_iter().map(|name| (name, AttributeValue::Null(true))));
        new.extend(self.changed);
        (old, new)
    }
}

/// The difference between two versions of a record, without the `ignored` fields. Most fields stay the same: only the
/// others are turned into attributes.
pub(crate) fn difference<T: Serialize>(before: &T, after: &T, ignored: &[&str]) -> Result<Difference, Unfit> {
    let (mut old, mut new) = (fields(before)?, fields(after)?);
    for name in ignored {
        old.remove(*name);
        new.remove(*name);
    }
    let gone = old.keys().filter(|name| !new.contains_key(*name)).cloned().collect();
    let changed = new.into_iter().filter(|(name, value)| old.get(name) != Some(value));
    Ok(Difference { changed: changed.map(|(name, value)| (name, attribute(value))).collect(), gone })
}

fn fields<T: Serialize>(record: &T) -> Result<Map<String, Value>, Unfit> {
    match serde_json::to_value(record) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) | Err(_) => Err(Unfit),
    }
}

fn attribute(value: Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(value) => AttributeValue::Bool(value),
        Value::Number(value) => AttributeValue::N(value.to_string()),
        Value::String(value) => AttributeValue::S(value),
        Value::Array(values) => AttributeValue::L(values.into_iter().map(attribute).collect()),
        Value::Object(fields) => {
            AttributeValue::M(fields.into_iter().map(|(name, value)| (name, attribute(value))).collect())
        }
    }
}

fn value(attribute: AttributeValue) -> Result<Value, Unfit> {
    Ok(match attribute {
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::Bool(value) => Value::Bool(value),
        AttributeValue::N(text) => Value::Number(number(&text).ok_or(Unfit)?),
        AttributeValue::S(text) => Value::String(text),
        AttributeValue::L(values) => Value::Array(values.into_iter().map(value).collect::<Result<_, _>>()?),
        AttributeValue::M(fields) => object(fields)?,
        _ => return Err(Unfit),
    })
}

fn is_foreign(attribute: &AttributeValue) -> bool {
    attribute.is_b() || attribute.is_bs() || attribute.is_ns() || attribute.is_ss()
}

fn object(item: Item) -> Result<Value, Unfit> {
    let mut fields = Map::new();
    for (name, attribute) in item {
        fields.insert(name, value(attribute)?);
    }
    Ok(Value::Object(fields))
}

/// A number that fits 64 bits; an integer if it is written as one.
fn number(text: &str) -> Option<Number> {
    let unsigned = text.parse::<u64>().ok().map(Number::from);
    let whole = unsigned.or_else(|| text.parse::<i64>().ok().map(Number::from));
    whole.or_else(|| text.parse().ok().and_then(Number::from_f64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Record {
        #[serde(rename = "a")]
        one: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        two: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        three: Vec<bool>,
    }

    #[test]
    fn only_what_differs_is_made_into_attributes() {
        let full = Record { one: 1, two: Some("x".to_owned()), three: vec![true] };
        let other = Record { one: 2, two: None, ..full.clone() };
        let found = difference(&full, &other, &[]).unwrap();
        let changed = Item::from([("a".to_owned(), AttributeValue::N("2".to_owned()))]);
        assert_eq!(found, Difference { changed, gone: vec!["two".to_owned()] });
        let back = difference(&other, &full, &["a"]).unwrap();
        let changed = Item::from([("two".to_owned(), AttributeValue::S("x".to_owned()))]);
        assert_eq!(back, Difference { changed, gone: vec![] });
        assert_eq!(difference(&full, &other, &["a", "two"]).unwrap(), Difference::default());
        assert_eq!(difference(&full, &full, &[]).unwrap(), Difference::default());
        assert_eq!(difference(&1, &2, &[]), Err(Unfit));
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Everything {
        greatest: u64,
        least: i64,
        large: f64,
        third: f64,
        round: f64,
        nothing: Option<u8>,
        pairs: Vec<(u16, bool)>,
        map: BTreeMap<String, Choice>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Choice {
        Plain,
        Of(String),
        With { field: i32 },
    }

    #[test]
    fn every_kind_of_value_is_read_back_unchanged() {
        let choices = [Choice::Plain, Choice::Of(String::new()), Choice::With { field: -1 }];
        let record = Everything {
            greatest: u64::MAX,
            least: i64::MIN,
            large: 1e30,
            third: 1.0 / 3.0,
            round: 2.0,
            nothing: None,
            pairs: vec![(1, true), (2, false)],
            map: ["a", "b", "c"].map(str::to_owned).into_iter().zip(choices).collect(),
        };
        let mut item = to_item(&record).unwrap();
        assert_eq!(item["greatest"], AttributeValue::N("18446744073709551615".to_owned()));
        assert_eq!(item["nothing"], AttributeValue::Null(true));
        // As DynamoDB returns them.
        item.insert("large".to_owned(), AttributeValue::N(format!("1{}", "0".repeat(30))));
        item.insert("round".to_owned(), AttributeValue::N("2".to_owned()));
        item.insert("unknown".to_owned(), AttributeValue::S("x".to_owned()));
        assert_eq!(from_item(item), Ok(record));
    }

    #[test]
    fn unsupported_attribute_types_are_refused() {
        let number = AttributeValue::N("one".to_owned());
        let set = AttributeValue::Ss(vec!["a".to_owned()]);
        for attribute in [number, set, AttributeValue::N("1e999".to_owned())] {
            let item = Item::from([("a".to_owned(), attribute.clone())]);
            assert_eq!(from_item::<Record>(item), Err(Unfit), "{attribute:?}");
        }
    }

    #[test]
    fn stored_items_are_readable_and_unknown_attributes_ignored() {
        let n = |text: &str| AttributeValue::N(text.to_owned());
        let s = |text: &str| AttributeValue::S(text.to_owned());
        let only = |name: &str, value| AttributeValue::M(Item::from([(name.to_owned(), value)]));
        let map = AttributeValue::M(Item::from([
            ("a".to_owned(), s("Plain")),
            ("b".to_owned(), only("Of", s("x"))),
            ("c".to_owned(), only("With", only("field", n("-7")))),
        ]));
        let item = [
            ("greatest", n("0")),
            ("least", n("-1")),
            ("large", n("0.1")),
            ("third", n("-3")),
            ("round", n("1500")),
            ("pairs", AttributeValue::L(vec![AttributeValue::L(vec![n("5"), AttributeValue::Bool(true)])])),
            ("map", map),
            ("owner", AttributeValue::Ss(vec!["team".to_owned()])),
        ];
        let item = item.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let choices = [Choice::Plain, Choice::Of("x".to_owned()), Choice::With { field: -7 }];
        let record = Everything {
            greatest: 0,
            least: -1,
            large: 0.1,
            third: -3.0,
            round: 1500.0,
            nothing: None,
            pairs: vec![(5, true)],
            map: ["a", "b", "c"].map(str::to_owned).into_iter().zip(choices).collect(),
        };
        assert_eq!(from_item(item), Ok(record));
    }
}
