//! The code of a typed error, by which retry policies and people distinguish errors.

use std::fmt;

use serde::Serialize;
use serde::ser::{self, Impossible, SerializeStruct, Serializer};
use tickover_core::limits::ERROR_CODE_MAX;

/// An error's code: the name of an enum's variant as serde writes it, or the first of a struct's fields `code`, `kind`
/// and `type`, which are common tags of internally tagged enums. `None` for other values, and for names that are too
/// long for a code.
pub(super) fn code_of(error: &impl Serialize) -> Option<String> {
    let code = match error.serialize(Probe) {
        Ok(()) => None,
        Err(Found(code)) => code,
    };
    code.filter(|code| (1..=ERROR_CODE_MAX).contains(&code.len()) && !code.contains(char::is_control))
}

/// Reads the outermost layer of a value. What it finds is returned as an error, which ends the serialisation at once.
struct Probe;

/// The code that was found; `None` if there is none.
#[derive(Debug)]
struct Found(Option<String>);

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.as_deref().unwrap_or("no code"))
    }
}

impl std::error::Error for Found {}

impl ser::Error for Found {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(None)
    }
}

fn found<T>(code: &str) -> Result<T, Found> {
    Err(Found(Some(code.to_owned())))
}

/// Reads the fields of a struct that may contain the code.
struct Fields;

const CODE_FIELDS: [&str; 3] = ["code", "kind", "type"];

impl SerializeStruct for Fields {
    type Ok = ();
    type Error = Found;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Found> {
        if CODE_FIELDS.contains(&key) { value.serialize(Text) } else { Ok(()) }
    }

    fn end(self) -> Result<(), Found> {
        Ok(())
    }
}

macro_rules! nothing {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, _: $type) -> Result<(), Found> { Ok(()) })*
    };
}

macro_rules! no_compounds {
    () => {
        type SerializeSeq = Impossible<(), Found>;
        type SerializeTuple = Impossible<(), Found>;
        type SerializeTupleStruct = Impossible<(), Found>;
        type SerializeTupleVariant = Impossible<(), Found>;
        type SerializeMap = Impossible<(), Found>;
        type SerializeStructVariant = Impossible<(), Found>;

        nothing! {
            serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
            serialize_i64: i64, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
            serialize_u64: u64, serialize_f32: f32, serialize_f64: f64, serialize_char: char,
            serialize_bytes: &[u8], serialize_unit_struct: &'static str,
        }

        fn serialize_none(self) -> Result<(), Found> {
            Ok(())
        }

        fn serialize_unit(self) -> Result<(), Found> {
            Ok(())
        }

        fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Found> {
            value.serialize(self)
        }

        fn serialize_newtype_struct<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            value: &T,
        ) -> Result<(), Found> {
            value.serialize(self)
        }

        fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Found> {
            Err(Found(None))
        }

        fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Found> {
            Err(Found(None))
        }

        fn serialize_tuple_struct(
            self,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleStruct, Found> {
            Err(Found(None))
        }

        fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Found> {
            Err(Found(None))
        }

        fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<(), Found> {
            found(name)
        }

        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            name: &'static str,
            _: &T,
        ) -> Result<(), Found> {
            found(name)
        }

        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            name: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleVariant, Found> {
            found(name)
        }

        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            name: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStructVariant, Found> {
            found(name)
        }
    };
}

impl Serializer for Probe {
    type Ok = ();
    type Error = Found;
    type SerializeStruct = Fields;

    no_compounds!();

    /// A text at the top level is a message, not a code.
    fn serialize_str(self, _: &str) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields, Found> {
        Ok(Fields)
    }
}

/// Reads the field that contains a code: a text, or a variant without data.
struct Text;

impl Serializer for Text {
    type Ok = ();
    type Error = Found;
    type SerializeStruct = Impossible<(), Found>;

    no_compounds!();

    fn serialize_str(self, text: &str) -> Result<(), Found> {
        found(text)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Found> {
        Err(Found(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum PaymentError {
        Declined,
        #[serde(rename = "net")]
        Network(String),
        OverLimit {
            limit: u32,
        },
    }

    #[derive(Serialize)]
    struct Coded {
        status: u16,
        code: &'static str,
    }

    #[derive(Serialize)]
    struct Message(String);

    #[derive(Serialize)]
    #[serde(tag = "type")]
    enum Tagged {
        Gone { at: u32 },
    }

    #[test]
    fn a_code_is_a_variants_name_or_a_field_of_that_name() {
        assert_eq!(code_of(&PaymentError::Declined).as_deref(), Some("declined"));
        assert_eq!(code_of(&PaymentError::Network("down".to_owned())).as_deref(), Some("net"));
        assert_eq!(code_of(&PaymentError::OverLimit { limit: 3 }).as_deref(), Some("over_limit"));
        assert_eq!(code_of(&Coded { status: 402, code: "declined" }).as_deref(), Some("declined"));
        assert_eq!(code_of(&Some(PaymentError::Declined)).as_deref(), Some("declined"));
        assert_eq!(code_of(&Tagged::Gone { at: 1 }).as_deref(), Some("Gone"));
    }

    #[test]
    fn what_has_no_code_gets_none() {
        assert_eq!(code_of(&"declined"), None);
        assert_eq!(code_of(&Message("declined".to_owned())), None);
        assert_eq!(code_of(&vec![PaymentError::Declined]), None);
        assert_eq!(code_of(&Coded { status: 1, code: "" }), None);
        assert_eq!(code_of(&()), None);
    }
}
