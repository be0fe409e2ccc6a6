//! A JSON object with known fields: an unknown one, or one given twice, is an error that names it.

use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use tickover_core::error::Reject;

use super::excerpt;
use super::field::Field;

/// An object's fields, their values still text.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    path: String,
    fields: Vec<(String, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// `{}`.
    pub(crate) const fn empty() -> Self {
        Self { path: String::new(), fields: vec![] }
    }

    /// Reads an object that may have these fields only.
    pub(crate) fn read(path: &str, raw: &'a RawValue, known: &[&str]) -> Result<Self, Reject> {
        let object = Self { path: path.to_owned(), fields: vec![] };
        let mut fields: Vec<(String, &RawValue)> = Vec::new();
        for (name, value) in pairs(path, raw)? {
            if !known.contains(&name.as_str()) {
                return Err(Reject::field(object.path_of(&excerpt(&name)), unknown(known)));
            }
            if fields.iter().any(|(earlier, _)| *earlier == name) {
                return Err(twice(object.path_of(&name)));
            }
            fields.push((name, value));
        }
        Ok(Self { fields, ..object })
    }

    /// A field's value; `null` counts as no field.
    pub(crate) fn get(&self, name: &str) -> Option<Field<'a>> {
        self.get_with_null(name).filter(|field| !field.is_null())
    }

    /// A field's value, `null` included: for payloads, where it is a value like any other.
    pub(crate) fn get_with_null(&self, name: &str) -> Option<Field<'a>> {
        let (_, raw) = self.fields.iter().find(|(own, _)| own == name)?;
        Some(Field::new(self.path_of(name), raw))
    }

    /// The object as if it hadn't this field.
    pub(crate) fn without(&self, name: &str) -> Self {
        let fields = self.fields.iter().filter(|(own, _)| own != name).cloned().collect();
        Self { path: self.path.clone(), fields }
    }

    /// A field that must be there.
    pub(crate) fn require(&self, name: &str, expected: &str) -> Result<Field<'a>, Reject> {
        let missing = || Reject::field(self.path_of(name), format!("required; expected {expected}"));
        self.get(name).ok_or_else(missing)
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

fn unknown(known: &[&str]) -> String {
    if known.is_empty() {
        return "unknown field; expected none at all".to_owned();
    }
    format!("unknown field; expected only {}", known.join(", "))
}

/// The refusal of a field that is there twice: taking either value would be a guess.
pub(crate) fn twice(path: impl Into<String>) -> Reject {
    Reject::field(path, "expected once, found twice")
}

/// An object's names and values as they come, whatever the names are.
pub(crate) fn pairs<'a>(path: &str, raw: &'a RawValue) -> Result<Vec<(String, &'a RawValue)>, Reject> {
    if !raw.get().starts_with('{') {
        let path = if path.is_empty() { "body" } else { path };
        return Err(Field::new(path.to_owned(), raw).wrong("a JSON object"));
    }
    match serde_json::from_str::<Pairs<'a>>(raw.get()) {
        Ok(Pairs(pairs)) => Ok(pairs),
        // The text is JSON, so this is a name that isn't Unicode.
        Err(error) => Err(Reject::field(path, format!("expected names of valid Unicode: {error}"))),
    }
}

struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Pairs<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}
