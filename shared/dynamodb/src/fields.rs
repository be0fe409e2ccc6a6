//! What differs between two versions of a record, field by field: most of a record stays as it is from one version to
//! the next, and only what doesn't is made into attributes.

use std::fmt;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::ser::{Impossible, Serialize, SerializeStruct, Serializer};
use serde_dynamo::aws_sdk_dynamodb_1::to_attribute_value;

use crate::item::Item;

/// A record that isn't made of fields, or a field that can't be serialised.
#[derive(Debug)]
pub(crate) struct Unfit;

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a record")
    }
}

impl std::error::Error for Unfit {}

impl serde::ser::Error for Unfit {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// What became of a record's fields.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Difference {
    /// Those with another value, with that.
    pub(crate) changed: Item,
    /// Those that are gone.
    pub(crate) gone: Vec<&'static str>,
}

impl Difference {
    /// Both versions' attributes where they may differ, `old` and `new` being those beside the record's own.
    pub(crate) fn between(self, mut old: Item, mut new: Item) -> (Item, Item) {
        // Whatever it was: it is there no longer.
        old.extend(self.gone.into_iter().map(|name| (name.to_owned(), AttributeValue::Null(true))));
        new.extend(self.changed);
        (old, new)
    }
}

/// The difference between two versions of a record, `ignored` fields aside.
pub(crate) fn difference<T: Serialize>(before: &T, after: &T, ignored: &[&str]) -> Result<Difference, Unfit> {
    let texts = |record: &T| {
        let mut texts = Texts::default();
        record.serialize(Fields(&mut texts))?;
        Ok::<_, Unfit>(texts.0)
    };
    let (old, new) = (texts(before)?, texts(after)?);
    let find = |fields: &[(&str, Vec<u8>)], wanted: &str| fields.iter().position(|(name, _)| *name == wanted);
    let is_same = |name: &str, text: &[u8]| find(&old, name).is_some_and(|at| old[at].1 == text);
    let is_counted = |name: &&'static str| !ignored.contains(name);
    let changed = new.iter().filter(|(name, text)| !is_same(name, text)).map(|(name, _)| *name);
    let mut picked = Picked { wanted: changed.filter(is_counted).collect(), item: Item::new() };
    after.serialize(Fields(&mut picked))?;
    let gone = old.iter().map(|(name, _)| *name).filter(|name| find(&new, name).is_none());
    Ok(Difference { changed: picked.item, gone: gone.filter(is_counted).collect() })
}

/// Takes a record's fields one by one.
trait Sink {
    fn take<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Unfit>;
}

/// Each field's value as a text to compare.
#[derive(Default)]
struct Texts(Vec<(&'static str, Vec<u8>)>);

impl Sink for Texts {
    fn take<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Unfit> {
        self.0.push((name, serde_json::to_vec(value).map_err(|_| Unfit)?));
        Ok(())
    }
}

/// The wanted fields as attributes.
struct Picked {
    wanted: Vec<&'static str>,
    item: Item,
}

impl Sink for Picked {
    fn take<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Unfit> {
        if self.wanted.contains(&name) {
            self.item.insert(name.to_owned(), to_attribute_value(value).map_err(|_| Unfit)?);
        }
        Ok(())
    }
}

/// Hands a record's fields to a sink. Anything but a struct is refused.
struct Fields<'a, S>(&'a mut S);

impl<S: Sink> SerializeStruct for Fields<'_, S> {
    type Ok = ();
    type Error = Unfit;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Unfit> {
        self.0.take(name, value)
    }

    fn end(self) -> Result<(), Unfit> {
        Ok(())
    }
}

macro_rules! refused {
    ($($method:ident($($kind:ty),*) -> $answer:ty;)*) => {
        $(fn $method(self, $(_: $kind),*) -> Result<$answer, Unfit> {
            Err(Unfit)
        })*
    };
}

type No = Impossible<(), Unfit>;

impl<S: Sink> Serializer for Fields<'_, S> {
    type Ok = ();
    type Error = Unfit;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = No;
    type SerializeStruct = Self;
    type SerializeStructVariant = No;

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Unfit> {
        Ok(self)
    }

    refused! {
        serialize_bool(bool) -> ();
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_str(&str) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_none() -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_seq(Option<usize>) -> No;
        serialize_tuple(usize) -> No;
        serialize_tuple_struct(&'static str, usize) -> No;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> No;
        serialize_map(Option<usize>) -> No;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> No;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<(), Unfit> {
        Err(Unfit)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, _: &T) -> Result<(), Unfit> {
        Err(Unfit)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Unfit> {
        Err(Unfit)
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Clone, Serialize)]
    struct Record {
        #[serde(rename = "a")]
        one: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        two: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        three: Vec<bool>,
    }

    #[test]
    fn only_what_differs_is_made_into_attributes() {
        let full = Record { one: 1, two: Some("x".to_owned()), three: vec![true] };
        let other = Record { one: 2, two: None, ..full.clone() };
        let found = difference(&full, &other, &[]).unwrap();
        let changed = Item::from([("a".to_owned(), AttributeValue::N("2".to_owned()))]);
        assert_eq!(found, Difference { changed, gone: vec!["two"] });
        let back = difference(&other, &full, &["a"]).unwrap();
        let changed = Item::from([("two".to_owned(), AttributeValue::S("x".to_owned()))]);
        assert_eq!(back, Difference { changed, gone: vec![] });
        assert_eq!(difference(&full, &other, &["a", "two"]).unwrap(), Difference::default());
        assert_eq!(difference(&full, &full, &[]).unwrap(), Difference::default());
        assert!(difference(&1, &2, &[]).is_err());
    }
}
