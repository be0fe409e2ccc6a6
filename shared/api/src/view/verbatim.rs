//! A payload in an answer: the very text that its sender wrote.

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tickover_core::payload::Json;

/// JSON text that becomes part of the answer as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verbatim(pub(crate) Json);

impl Serialize for Verbatim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.0.as_str()).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}
