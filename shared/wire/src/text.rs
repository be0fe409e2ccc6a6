//! Texts that aren't names, and labels.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tickover_core::cron::expression::EXPRESSION_MAX;
use tickover_core::error::Reject;
use tickover_core::limits::{self, IDEMPOTENCY_KEY_MAX, LABEL_NAME_MAX, LABEL_VALUE_MAX, LABELS_MAX};
use tickover_core::payload::Json;

/// Defines texts that mustn't be empty. The service checks their greatest lengths, in bytes of UTF-8, and answers with
/// the limit's name.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident, $expected:literal, $most:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        pub struct $name(pub String);

        impl $name {
            /// The greatest length in bytes of UTF-8, if there is a limit.
            pub const MOST: Option<usize> = $most;
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                if text.is_empty() {
                    return Err(D::Error::invalid_value(Unexpected::Other("nothing"), &$expected));
                }
                Ok(Self(text))
            }
        }
    )*};
}

texts! {
    /// Makes a request repeatable. At most 256 bytes.
    IdempotencyKey, "a text that is not empty", Some(IDEMPOTENCY_KEY_MAX);
    /// The token that a claim gave. It is opaque.
    LeaseToken, "the token that the claim gave", None;
    /// A cron expression. At most 80 bytes.
    CronText, "a cron expression", Some(EXPRESSION_MAX);
    /// Where a page begins: the `cursor` of the page before. It is opaque.
    Cursor, "the cursor of an earlier answer", None;
}

/// The kind of error. It is recorded with at most 64 bytes of UTF-8: a longer one is cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureCode(pub String);

impl<'de> Deserialize<'de> for FailureCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Lossy(text) = Lossy::deserialize(deserializer)?;
        if text.is_empty() {
            return Err(D::Error::invalid_value(Unexpected::Other("nothing"), &"a code that is not empty"));
        }
        Ok(Self(text))
    }
}

/// Reads an optional text of an error. What isn't Unicode in it is replaced by U+FFFD: to refuse it would cost the
/// attempt its report.
pub(crate) fn lossy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(|Lossy(text)| text))
}

/// A text in which JSON's escapes may stand for half a character, as strings of JavaScript and Python may.
struct Lossy(String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Lossy;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Lossy, E> {
                Ok(Lossy(text.to_owned()))
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Lossy, E> {
                Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
            }
        }

        deserializer.deserialize_bytes(Text)
    }
}

/// Labels: at most 16, with names of 1 to 64 and values of at most 256 characters, 4 KiB in all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Labels(pub BTreeMap<String, String>);

impl Labels {
    /// The labels as they are stored, in the order of their names: their order in the request makes no difference.
    pub fn to_json(&self) -> Result<Option<Json>, Reject> {
        limits::check("labels", self.0.len(), LABELS_MAX)?;
        if self.0.is_empty() {
            return Ok(None);
        }
        let text = serde_json::to_string(&self.0).map_err(|error| Reject::field("labels", error))?;
        Ok(Json::parse(text))
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Labels;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut labels = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    let value = map.next_value_seed(ValueOf(&name))?;
                    labels.insert(name, value);
                }
                Ok(Labels(labels))
            }
        }

        deserializer.deserialize_map(Pairs)
    }
}

/// A label to look for, as `name=value`. The name ends at the first `=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name, which is not empty.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Label {
    /// The label in a text; `None` if it has no `=`, or no name.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty())?;
        Some(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}={}", self.name, self.value))
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &"`name=value`"))
    }
}

/// Reads the value of a label. An error about the label's name also has this value's path.
struct ValueOf<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for ValueOf<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let too = |length: usize, expected: String| {
            D::Error::invalid_value(Unexpected::Other(&format!("{length} characters")), &expected.as_str())
        };
        let length = self.0.chars().count();
        if !(1..=LABEL_NAME_MAX).contains(&length) {
            return Err(too(length, format!("a name of 1 to {LABEL_NAME_MAX} characters")));
        }
        if self.0.contains('=') {
            let expected = "a name without `=`, by which the label can be looked for";
            return Err(D::Error::invalid_value(Unexpected::Str(self.0), &expected));
        }
        let text = String::deserialize(deserializer)?;
        let length = text.chars().count();
        if length > LABEL_VALUE_MAX {
            return Err(too(length, format!("a string of at most {LABEL_VALUE_MAX} characters")));
        }
        Ok(text)
    }
}
