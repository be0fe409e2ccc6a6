//! The values that an execution's code publishes for others: the last one of each name, over all its runs.
//!
//! They are one document, a payload of the record: a value takes the place of the one before, and no entry of the journal
//! is needed. A replay publishes the same values again, so a turn writes the document only if it differs.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize};

use crate::execution::Execution;
use crate::id::{BlobId, StepName};
use crate::payload::{BlobRef, Json, Payload};
use crate::time::Timestamp;

/// How many names an execution publishes at most.
pub const VALUES_MAX: usize = 16;
/// About how many bytes a value that is in the record takes if it is a blob.
const POINTER_BYTES: usize = 90;

/// At most so many bytes of the document are for a value: with its name, version and instant.
pub fn bytes(name: &StepName, value: &Json) -> usize {
    name.as_str().len() + value.len() + 32
}

/// The published values by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    by_name: BTreeMap<StepName, Value>,
    /// The latest version of any name that had to make place. New names begin after it: it may be one of them, and who waits
    /// for a later version must not miss the next.
    dropped: u32,
}

/// The key of `dropped` in the document, which is no name.
const DROPPED: &str = "";

impl Serialize for Values {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.dropped > 0 {
            map.serialize_entry(DROPPED, &self.dropped)?;
        }
        self.by_name.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut values = Self::default();
        for (name, raw) in BTreeMap::<String, Box<serde_json::value::RawValue>>::deserialize(deserializer)? {
            if name == DROPPED {
                values.dropped = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
                continue;
            }
            let name = StepName::parse(name).map_err(D::Error::custom)?;
            let value = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
            values.by_name.insert(name, value);
        }
        Ok(values)
    }
}

/// A published value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// It grows with each change of the name's value, from 1, or from a later one if names had to make place.
    pub version: u32,
    /// When it was published.
    pub at: Timestamp,
    pub value: Json,
}

/// A value as it is stored: an array with its JSON as it is, because the record is small.
#[derive(Serialize, Deserialize)]
struct Fields<T>(u32, Timestamp, T);

impl Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &serde_json::value::RawValue =
            serde_json::from_str(self.value.as_str()).map_err(serde::ser::Error::custom)?;
        Fields(self.version, self.at, raw).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Fields(version, at, raw) = Fields::<Box<serde_json::value::RawValue>>::deserialize(deserializer)?;
        Ok(Self { version, at, value: raw.into() })
    }
}

impl Values {
    /// Reads the document of a record. `None` if it isn't one.
    pub fn parse(document: &Json) -> Option<Self> {
        serde_json::from_str(document.as_str()).ok()
    }

    /// The document for a record.
    pub fn document(&self) -> Option<Json> {
        serde_json::to_string(self).ok().and_then(Json::parse)
    }

    /// The value of this name.
    pub fn value(&self, name: &StepName) -> Option<&Value> {
        self.by_name.get(name)
    }

    /// All of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&StepName, &Value)> {
        self.by_name.iter()
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether nothing is published.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The same without those that were published longest ago and that the code of this run hasn't published, as far as
    /// there are too many of them, or too many bytes.
    #[must_use]
    pub fn with(&self, by_code: &BTreeMap<StepName, Json>, at: Timestamp, bytes_max: usize) -> Self {
        let mut merged = self.clone();
        for (name, value) in by_code {
            merged.publish(name, value, at);
        }
        while merged.len() > VALUES_MAX || merged.bytes() > bytes_max {
            let others = merged.by_name.iter().filter(|(name, _)| !by_code.contains_key(*name));
            let Some(oldest) = others.min_by_key(|(_, value)| value.at).map(|(name, _)| name.clone()) else {
                break;
            };
            let removed = merged.by_name.remove(&oldest);
            merged.dropped = merged.dropped.max(removed.map_or(0, |value| value.version));
        }
        merged
    }

    /// How many bytes its values take in the document at most. The version of dropped ones is a few bytes more.
    fn bytes(&self) -> usize {
        self.by_name.iter().map(|(name, value)| bytes(name, &value.value)).sum()
    }

    /// Publishes a value. The same value again changes nothing.
    pub fn publish(&mut self, name: &StepName, value: &Json, at: Timestamp) {
        let before = self.by_name.get(name);
        if before.is_some_and(|before| before.value == *value) {
            return;
        }
        let version = before.map_or(self.dropped, |before| before.version).saturating_add(1);
        self.by_name.insert(name.clone(), Value { version, at, value: value.clone() });
    }
}

/// Moves the values out of a record that has no space for them. Returns their item. Its key is that of this version alone.
pub(super) fn move_aside(execution: &mut Execution, expires_at: Timestamp) -> Option<(BlobRef, Json)> {
    let Some(Payload::Inline(body)) = &execution.values else { return None };
    if body.len() <= POINTER_BYTES {
        return None;
    }
    let mut key = [0; 16];
    let random = execution.nonce.as_bytes().iter().chain(execution.incarnation.as_bytes());
    key.iter_mut().zip(random).for_each(|(to, from)| *to = *from);
    let bytes = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let at = BlobRef { id: BlobId::from_bytes(key), bytes, expires_at };
    let body = body.clone();
    execution.values = Some(Payload::Blob(at.clone()));
    Some((at, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> StepName {
        StepName::parse(text).unwrap()
    }

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn a_value_counts_its_changes_and_keeps_its_text() {
        let mut values = Values::default();
        let at = Timestamp::from_millis;
        for (text, at_ms, version) in [("1.50", 10, 1), ("1.50", 20, 1), ("\"b\"", 30, 2), ("1.50", 40, 3)] {
            values.publish(&name("stage"), &json(text), at(at_ms));
            assert_eq!(values.value(&name("stage")).unwrap().version, version);
        }
        values.publish(&name("item[3]"), &json("null"), at(50));
        // The format that is in tables.
        let document = values.document().unwrap();
        assert_eq!(document.as_str(), r#"{"item[3]":[1,50,null],"stage":[3,40,1.50]}"#);
        assert_eq!(Values::parse(&document), Some(values));
        assert_eq!(Values::parse(&json("[1]")), None);
    }

    #[test]
    fn values_of_earlier_runs_make_place_for_those_of_this_one() {
        let mut values = Values::default();
        for number in 0..i64::try_from(VALUES_MAX).unwrap() {
            values.publish(&name(&format!("old-{number}")), &json("1"), Timestamp::from_millis(100 - number));
        }
        let by_code = BTreeMap::from([(name("old-15"), json("1")), (name("new"), json("2"))]);
        let now = Timestamp::from_millis(200);
        let merged = values.with(&by_code, now, 10_000);
        assert_eq!((merged.len(), merged.value(&name("old-14"))), (VALUES_MAX, None));
        assert_eq!(merged.value(&name("old-15")).unwrap().at.as_millis(), 85, "the same value again");
        // Who has seen the first version of a name that was dropped sees its next one.
        let merged = Values::parse(&merged.document().unwrap()).unwrap();
        let again = merged.with(&BTreeMap::from([(name("old-14"), json("3"))]), now, 10_000);
        assert_eq!(again.value(&name("old-14")).unwrap().version, 2);
        let few = values.with(&by_code, now, bytes(&name("old-15"), &json("1")) * 3);
        let names: Vec<_> = few.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["new", "old-0", "old-15"]);
    }
}
