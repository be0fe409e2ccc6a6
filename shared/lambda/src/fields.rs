//! The fields of a JSON object, with each value as raw text: envelopes are removed without parsing payloads.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use tickover_core::error::Reject;

/// An object's fields, in order. Repeated fields are kept, so that the next parser can reject them.
#[derive(Clone, Debug)]
pub struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Reads an object. Rejects one that is too large or nests too deep. `path` names it in errors.
    pub fn read(path: &str, text: &str) -> Result<Self, Reject> {
        tickover_api::check(text.as_bytes())?;
        if !text.trim_ascii_start().starts_with('{') {
            return Err(Reject::field(path, "expected a JSON object"));
        }
        let fields = serde_json::from_str(text);
        fields.map_err(|error| {
            Reject::instead_of(path, "expected one JSON object", format_args!("malformed JSON: {error}"))
        })
    }

    /// Whether a field exists and isn't null.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, value)| known == name && value.get() != "null")
    }

    /// Removes a field and returns it; `None` if it is absent or null.
    pub fn take(&mut self, name: &str) -> Result<Option<Box<RawValue>>, Reject> {
        let (mut taken, rest): (Vec<_>, Vec<_>) = self.0.drain(..).partition(|(known, _)| known == name);
        self.0 = rest;
        let value = taken.pop().map(|(_, value)| value).filter(|value| value.get() != "null");
        if taken.is_empty() { Ok(value) } else { Err(Reject::field(name, "is given more than once")) }
    }

    /// Removes a text field and returns it; `None` if it is absent or null.
    pub fn take_text(&mut self, name: &str) -> Result<Option<String>, Reject> {
        let Some(value) = self.take(name)? else { return Ok(None) };
        let text = serde_json::from_str(value.get());
        text.map(Some).map_err(|_| Reject::field(name, "expected a string"))
    }

    /// Adds a text field.
    pub fn put_text(&mut self, name: &str, text: &str) -> Result<(), Reject> {
        let value = to_raw_value(text).map_err(|error| Reject::field(name, error))?;
        self.0.push((name.to_owned(), value));
        Ok(())
    }

    /// The name of the first field.
    pub fn first(&self) -> Option<&str> {
        self.0.first().map(|(name, _)| name.as_str())
    }

    /// The remaining fields as one object.
    pub fn to_json(&self) -> Result<Box<RawValue>, Reject> {
        to_raw_value(self).map_err(|error| Reject::field("body", error))
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        Fields::read("body", text).unwrap()
    }

    #[test]
    fn what_is_left_is_as_it_was_written() {
        let mut fields = fields(r#"{"input": {"b":1.50, "a":1e400}, "id":"t\u0031", "queue":null}"#);
        assert_eq!(fields.take_text("id"), Ok(Some("t1".to_owned())));
        assert_eq!(fields.take_text("queue"), Ok(None));
        assert_eq!(fields.to_json().unwrap().get(), r#"{"input":{"b":1.50, "a":1e400}}"#);
    }

    #[test]
    fn a_field_that_is_wrong_is_named() {
        let twice = fields(r#"{"id":"a","id":"b"}"#).take_text("id").unwrap_err();
        assert_eq!(twice.to_string(), "id: is given more than once");
        let number = fields(r#"{"id":7}"#).take_text("id").unwrap_err();
        assert_eq!(number.to_string(), "id: expected a string");
    }

    #[test]
    fn size_and_depth_are_limited_before_anything_is_parsed() {
        let deep = format!("{{\"a\":{}", "[".repeat(1_000_000));
        let refused = Fields::read("body", &deep).unwrap_err();
        assert_eq!(refused, Reject::LimitExceeded { limit: "json_depth", value: 1_000_001, maximum: 64 });
        let large = format!("{{\"a\":\"{}", "x".repeat(6 * 1024 * 1024));
        let refused = Fields::read("body", &large).unwrap_err();
        assert!(matches!(refused, Reject::LimitExceeded { limit: "body_bytes", .. }), "{refused}");
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "[]", "7", "{", "{} {}"] {
            let refused = Fields::read("body", text).unwrap_err();
            assert!(refused.to_string().starts_with("body: expected"), "{refused}");
        }
    }
}
