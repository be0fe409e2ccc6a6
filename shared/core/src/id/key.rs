//! Keys of flow control, which may be any text.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Deserializer, Serialize};

use super::{FLOW_KEY_MAX, NameError, read_name};

/// What an escaped byte of a key begins with, in a path.
const ESCAPE: char = '~';

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

    /// The key as a segment of a path, which stays the same if it is percent-decoded, however often: each byte that isn't
    /// of `[A-Za-z0-9._:@-]` is `~` and two hexadecimal digits, and so are the dots of a key that is only dots. Gateways
    /// such as API Gateway's HTTP APIs pass on a path that they have decoded.
    pub fn to_path(&self) -> String {
        let are_dots = self.0.bytes().all(|byte| byte == b'.');
        let mut path = String::with_capacity(self.0.len());
        for byte in self.0.bytes() {
            let is_plain = byte.is_ascii_alphanumeric() || b"_:@-".contains(&byte);
            if is_plain || (byte == b'.' && !are_dots) {
                path.push(char::from(byte));
            } else {
                // Writing to a string can't fail.
                let _ = write!(path, "{ESCAPE}{byte:02X}");
            }
        }
        path
    }

    /// The key in a segment of a path, after it was percent-decoded. A `~` without two hexadecimal digits is itself.
    pub fn from_path(path: &str) -> Result<Self, NameError> {
        let mut bytes = Vec::with_capacity(path.len());
        let mut rest = path.as_bytes();
        while let [first, behind @ ..] = rest {
            if let Some((byte, behind)) = escaped(rest) {
                bytes.push(byte);
                rest = behind;
            } else {
                bytes.push(*first);
                rest = behind;
            }
        }
        Self::parse(String::from_utf8(bytes).map_err(|_| NameError::NoText)?)
    }
}

/// An escaped byte at the begin of a path, and what is behind it.
fn escaped(path: &[u8]) -> Option<(u8, &[u8])> {
    let [mark, high, low, behind @ ..] = path else { return None };
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
    (char::from(*mark) == ESCAPE).then_some((byte, behind))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_in_a_path_has_nothing_that_a_gateway_or_a_parser_changes() {
        for (key, path) in [
            ("customer-7", "customer-7"),
            ("a.b:c@d_e", "a.b:c@d_e"),
            ("a/b?c#d e", "a~2Fb~3Fc~23d~20e"),
            ("%41", "~2541"),
            ("~41", "~7E41"),
            ("..", "~2E~2E"),
            ("ä", "~C3~A4"),
        ] {
            assert_eq!(FlowKey::parse(key).unwrap().to_path(), path);
        }
        for (path, key) in [("~2f", "/"), ("a~", "a~"), ("~4", "~4"), ("~zz~ä1", "~zz~ä1"), ("a b", "a b")]
        {
            assert_eq!(FlowKey::from_path(path).unwrap().as_str(), key);
        }
        assert_eq!(FlowKey::from_path("~C3"), Err(NameError::NoText));
    }

    proptest! {
        #[test]
        fn every_key_is_read_back_from_its_path(key in "\\PC{1,40}|[~%./A-F0-9]{1,12}") {
            let path = FlowKey::parse(key.as_str()).unwrap().to_path();
            prop_assert!(path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:@~-".contains(&byte)));
            prop_assert_eq!(String::from(FlowKey::from_path(&path).unwrap()), key);
        }
    }
}
