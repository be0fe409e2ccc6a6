//! Payloads. They are kept as they were sent, including number formats, the order of keys and white space.

use std::fmt;

use serde::de::{Error as _, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use tickover_core::payload::Json;

/// Any JSON. It is kept as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verbatim(pub Json);

/// [`read`](crate::read) passes the text itself to a type with this name.
pub(crate) const NAME: &str = "tickover::Verbatim";

impl Verbatim {
    /// Its name in the API's document.
    pub const SCHEMA: &str = "AnyJson";
}

impl From<Json> for Verbatim {
    fn from(json: Json) -> Self {
        Self(json)
    }
}

impl From<Verbatim> for Json {
    fn from(verbatim: Verbatim) -> Self {
        verbatim.0
    }
}

impl Serialize for Verbatim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.0.as_str()).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Verbatim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Verbatim;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("JSON")
            }

            /// From the reader of this crate: the text of one value.
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Verbatim, E> {
                Json::parse(text).map(Verbatim).ok_or_else(|| E::custom("one JSON value"))
            }

            /// From the reader of `serde_json`.
            fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<Verbatim, D::Error> {
                let raw = Box::<RawValue>::deserialize(value).map_err(D::Error::custom)?;
                Ok(Verbatim(raw.into()))
            }
        }

        deserializer.deserialize_newtype_struct(NAME, Text)
    }
}

/// Reads a payload that may be absent. `null` is a payload like any other.
pub(crate) fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Verbatim>, D::Error> {
    Verbatim::deserialize(value).map(Some)
}
