//! A JSON value together with its text, for errors and for payloads.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IntoDeserializer as _, MapAccess, SeqAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::value::RawValue;

use super::fault::{Fault, quote};
use super::spelling::{field_and_unit, only_one_each, spelled};
use crate::verbatim;

/// Whole numbers up to this one are exact as floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

#[derive(Clone, Copy)]
pub(super) struct Node<'de> {
    raw: &'de RawValue,
    /// The unit of a length of time that is a whole number by the name of its field, in milliseconds.
    unit: Option<u64>,
}

impl<'de> Node<'de> {
    pub(super) fn new(raw: &'de RawValue) -> Self {
        Self { raw, unit: None }
    }

    /// An object's names and values. A repeated name is refused.
    pub(super) fn fields(self) -> Result<Vec<(String, &'de RawValue)>, Fault> {
        if !self.raw.get().starts_with('{') {
            return Err(Fault::expected("a JSON object", quote(self.raw.get())));
        }
        let Pairs(fields) = serde_json::from_str(self.raw.get())
            .map_err(|error| Fault::expected("names of valid Unicode", error.to_string()))?;
        let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if let Some([name, _]) = names.array_windows().find(|[one, next]| one == next) {
            return Err(Fault::twice(name));
        }
        Ok(fields)
    }

    fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(Fields::new(self.fields()?))
    }

    /// A whole number of a unit, as milliseconds.
    fn counted<V: Visitor<'de>>(self, unit: u64, visitor: V) -> Result<V::Value, Fault> {
        let text = self.raw.get();
        let count: Result<f64, _> = text.parse();
        match (text.parse::<u64>(), count) {
            (Ok(count), _) => visitor.visit_u64(count.saturating_mul(unit)),
            // JSON's numbers have no bounds: this one is refused as a length of time.
            (Err(_), Ok(count)) if count > EXACT => visitor.visit_f64(count),
            (Err(_), Ok(count)) if count >= 0.0 && count.fract() == 0.0 => {
                let count = format!("{count:.0}").parse().unwrap_or(u64::MAX);
                visitor.visit_u64(u64::saturating_mul(count, unit))
            }
            (Err(_), _) => Err(Fault::custom("a whole number, not negative")),
        }
    }

    fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let entries: Vec<&'de RawValue> = serde_json::from_str(self.raw.get())
            .map_err(|_| Fault::expected("a list", quote(self.raw.get())))?;
        visitor.visit_seq(Entries { rest: entries.into_iter(), next: 0 })
    }

    fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let text: String = serde_json::from_str(self.raw.get())
            .map_err(|error| Fault::expected("a string of valid Unicode", error.to_string()))?;
        visitor.visit_string(text)
    }

    /// A whole number may be written as `1` or `1.0`: JSON doesn't distinguish them.
    fn number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let text = self.raw.get();
        if let Ok(number) = text.parse() {
            return visitor.visit_u64(number);
        }
        if let Ok(number) = text.parse() {
            return visitor.visit_i64(number);
        }
        let number: f64 = text.parse().map_err(|_| Fault::expected("a number", quote(text)))?;
        if number.fract() == 0.0 && number.abs() <= EXACT {
            let whole: Result<i64, _> = format!("{number:.0}").parse();
            return match whole.map(|whole| (whole, u64::try_from(whole))) {
                Ok((_, Ok(whole))) => visitor.visit_u64(whole),
                Ok((whole, Err(_))) => visitor.visit_i64(whole),
                Err(_) => visitor.visit_f64(number),
            };
        }
        visitor.visit_f64(number)
    }
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if let Some(unit) = self.unit {
            return self.counted(unit, visitor);
        }
        match self.raw.get().as_bytes().first() {
            Some(b'{') => self.object(visitor),
            Some(b'[') => self.list(visitor),
            Some(b'"') => self.text(visitor),
            Some(b't') => visitor.visit_bool(true),
            Some(b'f') => visitor.visit_bool(false),
            Some(b'n') => visitor.visit_unit(),
            Some(_) | None => self.number(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.raw.get() == "null" { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    /// A string's bytes, also if its escapes make no valid Unicode: a half of a surrogate pair has its three bytes.
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if !self.raw.get().starts_with('"') {
            return self.deserialize_any(visitor);
        }
        let mut text = serde_json::Deserializer::from_str(self.raw.get());
        text.deserialize_bytes(visitor).map_err(|error| Fault::expected("a string", error.to_string()))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if name == verbatim::NAME {
            return visitor.visit_borrowed_str(self.raw.get());
        }
        visitor.visit_newtype_struct(self)
    }

    // A list isn't accepted as the fields of an object.

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.object(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        Fields::new(self.fields()?).deserialize_struct(name, known, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string byte_buf unit unit_struct seq tuple tuple_struct
        enum identifier ignored_any
    }
}

/// An object's fields, one after the other.
pub(super) struct Fields<'de> {
    rest: std::vec::IntoIter<(String, &'de RawValue)>,
    /// The field whose name was read, and whose value is next.
    current: Option<(String, &'de RawValue)>,
    /// Those that have three spellings.
    spelled: &'static [&'static str],
}

impl<'de> Fields<'de> {
    pub(super) fn new(fields: Vec<(String, &'de RawValue)>) -> Self {
        Self { rest: fields.into_iter(), current: None, spelled: &[] }
    }
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.current = self.rest.next();
        let Some((name, _)) = &self.current else { return Ok(None) };
        let field = field_and_unit(name, self.spelled).map_or(name.as_str(), |(field, _)| field);
        let name: StrDeserializer<'_, Fault> = field.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (name, raw) = self.current.take().ok_or_else(|| Fault::custom("a name before its value"))?;
        let unit = field_and_unit(&name, self.spelled).map(|(_, unit)| unit);
        seed.deserialize(Node { raw, unit }).map_err(|fault| fault.under(&name, raw))
    }
}

impl<'de> Deserializer<'de> for Fields<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        _known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.spelled = spelled(name);
        only_one_each(self.rest.as_slice(), self.spelled)?;
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct Entries<'de> {
    rest: std::vec::IntoIter<&'de RawValue>,
    next: usize,
}

impl<'de> SeqAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(raw) = self.rest.next() else { return Ok(None) };
        let place = format!("[{}]", self.next);
        self.next += 1;
        seed.deserialize(Node::new(raw)).map(Some).map_err(|fault| fault.under(&place, raw))
    }
}

/// An object's names and values in their order, with any names.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
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
