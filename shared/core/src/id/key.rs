//! Keys of flow control, which may be any text.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::{FLOW_KEY_MAX, NameError, read_name};

/// A key of flow control: any text, such as a customer's name. Tasks with the same key share a limit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub struct FlowKey(String);

impl FlowKey {
    /// The most bytes of UTF-8 that it may have.
    pub const MAX: usize = FLOW_KEY_MAX;

    /// Checks that the text isn't empty, nor longer than [`FLOW_KEY_MAX`] bytes.
    pub fn parse(text: impl Into<String>) -> Result<Self, NameError> {
        let text = text.into();
        match text.len() {
            0 => Err(NameError::Empty),
            length if length > Self::MAX => Err(NameError::TooLong { length, maximum: Self::MAX }),
            _ => Ok(Self(text)),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<FlowKey> for String {
    fn from(key: FlowKey) -> Self {
        key.0
    }
}

impl<'de> Deserialize<'de> for FlowKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_name(deserializer, Self::parse)
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(feature = "schema")]
impl utoipa::PartialSchema for FlowKey {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        let text = utoipa::openapi::ObjectBuilder::new().schema_type(utoipa::openapi::Type::String);
        text.min_length(Some(1)).max_length(Some(Self::MAX)).pattern(Some(r"^[\s\S]+$")).build().into()
    }
}

#[cfg(feature = "schema")]
impl utoipa::ToSchema for FlowKey {}
