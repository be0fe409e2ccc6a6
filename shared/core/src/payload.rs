//! Inputs, outputs and labels: JSON text kept as its sender wrote it, in the record or in a blob.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::id::BlobId;
use crate::time::Timestamp;

/// A JSON document as its sender wrote it. Number formats and the order of keys are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(String);

impl Json {
    /// Takes a text that is one JSON value. `None` for any other text.
    pub fn parse(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        serde_json::from_str::<&RawValue>(&text).ok()?;
        Some(Self(text))
    }

    /// A JSON string with this text.
    pub fn string(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string())
    }

    /// A JSON number.
    pub fn number(number: u32) -> Self {
        Self(number.to_string())
    }

    pub fn null() -> Self {
        Self("null".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Always false: a JSON text has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How deeply arrays and objects are nested: 0 for a scalar.
    pub fn depth(&self) -> usize {
        depth(self.0.as_bytes())
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(String::from(Box::<str>::from(raw)))
    }
}

/// Cuts a text so that it has at most `maximum` bytes as a JSON string. It is cut between characters, and a remark
/// is added.
pub fn cut_to_fit(text: String, maximum: usize) -> String {
    let encoded = |c: char| match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    };
    let quotes = 2;
    let whole: usize = text.chars().map(encoded).sum();
    if whole + quotes <= maximum {
        return text;
    }
    let remark = format!(" [cut: it had {} bytes]", text.len());
    let mut space_left = maximum.saturating_sub(quotes + remark.len());
    let fits = |c: &char| match space_left.checked_sub(encoded(*c)) {
        Some(left) => {
            space_left = left;
            true
        }
        None => false,
    };
    let kept: String = text.chars().take_while(fits).collect();
    kept + &remark
}

/// How deeply the brackets of a JSON text are nested. It doesn't parse the text, so it is safe on unchecked input.
pub fn depth(text: &[u8]) -> usize {
    let (mut deepest, mut open, mut in_string, mut escaped) = (0_usize, 0_usize, false, false);
    for byte in text {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A pointer to a blob: an immutable item with a large payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// Its key. No other writer can have the same one.
    #[serde(rename = "i")]
    pub id: BlobId,
    /// Its size in bytes.
    #[serde(rename = "n")]
    pub bytes: u32,
    /// When the store may delete it. Moved later while the record that points to it is open.
    #[serde(rename = "x")]
    pub expires_at: Timestamp,
}

/// A payload in a control record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Payload {
    /// Small enough for the record.
    #[serde(rename = "j")]
    Inline(Json),
    /// In an item of its own.
    #[serde(rename = "b")]
    Blob(BlobRef),
}

/// Captured values of up to this many bytes are stored in the journal, and the workflow's code has them at once.
pub const CAPTURED_BYTES: usize = 200;

impl Payload {
    /// Whether a captured value is small enough for that.
    pub fn is_at_once(&self) -> bool {
        match self {
            Self::Inline(json) => json.len() <= CAPTURED_BYTES,
            Self::Blob(_) => false,
        }
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Inline(json) => json.len(),
            Self::Blob(at) => usize::try_from(at.bytes).unwrap_or(usize::MAX),
        }
    }

    /// The pointer, if the payload is in a blob.
    pub fn blob(&self) -> Option<&BlobRef> {
        match self {
            Self::Inline(_) => None,
            Self::Blob(blob) => Some(blob),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_so_that_it_fits_as_json() {
        assert_eq!(cut_to_fit("short".to_owned(), 7), "short");
        for (text, maximum) in [
            ("x".repeat(100), 60),
            ("é".repeat(100), 61),
            ("\u{1}".repeat(100), 77),
            ("\"\n".repeat(100), 90),
        ] {
            let cut = cut_to_fit(text.clone(), maximum);
            let kept = cut.strip_suffix(&format!(" [cut: it had {} bytes]", text.len())).unwrap();
            assert!(!kept.is_empty() && text.starts_with(kept), "{cut}");
            let length = Json::string(&cut).len();
            assert!(length <= maximum && length + 6 > maximum, "{length} of {maximum}");
        }
    }

    #[test]
    fn depth_counts_brackets_outside_strings_only() {
        assert_eq!(depth(b"1"), 0);
        assert_eq!(depth(br#"{"a":["]",{"b\"[[":1}]}"#), 3);
        let deep = "[".repeat(100_000);
        assert_eq!(depth(deep.as_bytes()), 100_000);
    }

    #[test]
    fn text_is_kept_verbatim_and_must_be_one_value() {
        let text = r#"{"b":1.50,"a":12345678901234567890123}"#;
        assert_eq!(Json::parse(text).unwrap().as_str(), text);
        assert_eq!(Json::parse("{} {}"), None);
        assert_eq!(Json::string("a\"b").as_str(), r#""a\"b""#);
    }
}
