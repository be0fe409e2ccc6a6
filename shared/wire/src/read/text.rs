//! A query. Its values are texts.

use std::collections::{BTreeMap, btree_map};

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::fault::{Fault, excerpt};

/// The parameter that may be repeated. Its values are one list.
const REPEATABLE: &str = "status";

/// A query's names and values.
pub(super) struct Query {
    rest: btree_map::IntoIter<String, String>,
    /// The parameter whose name was read, and whose value is next.
    current: Option<(String, String)>,
}

impl Query {
    pub(super) fn new(pairs: &[(String, String)]) -> Result<Self, Fault> {
        let mut merged: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in pairs {
            match merged.get_mut(name) {
                Some(list) if name == REPEATABLE => {
                    list.push(',');
                    list.push_str(value);
                }
                Some(_) => return Err(Fault::twice(name)),
                None => drop(merged.insert(name.clone(), value.clone())),
            }
        }
        Ok(Self { rest: merged.into_iter(), current: None })
    }
}

impl<'de> MapAccess<'de> for Query {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.current = self.rest.next();
        let Some((name, _)) = &self.current else { return Ok(None) };
        let name: StrDeserializer<'_, Fault> = name.as_str().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (name, value) = self.current.take().ok_or_else(|| Fault::custom("a name before its value"))?;
        let found = || format!("`{}`", excerpt(&value));
        seed.deserialize(Text(&value)).map_err(|fault| fault.or_found(found).inside(&excerpt(&name)))
    }
}

impl<'de> Deserializer<'de> for Query {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A value: a text. It is parsed as a number or a boolean if the type needs one.
struct Text<'a>(&'a str);

impl<'de> Deserializer<'de> for Text<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.parse() {
            Ok(flag) => visitor.visit_bool(flag),
            Err(_) => self.deserialize_any(visitor),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.parse() {
            Ok(number) => visitor.visit_u64(number),
            Err(_) => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}
