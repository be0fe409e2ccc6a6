//! A request's body before anything is made of it: its size, its encoding and its nesting are checked first,
//! so that nothing a caller sends can cost more than reading it once.

use serde_json::value::RawValue;
use tickover_core::error::Reject;
use tickover_core::limits::{self, JSON_DEPTH_MAX};
use tickover_core::payload;

use crate::parse::Object;

/// Largest body: what Lambda takes with a synchronous call, in bytes.
pub const BODY_BYTES_MAX: usize = 6 * 1024 * 1024;
/// Levels that requests themselves may have around a payload: a batch, its list, an entry, and one to spare.
const ENVELOPE_DEPTH: usize = 4;

/// Whether a body may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Empty {
    /// An empty body counts as `{}`, and so does `null`: no field is required.
    IsObject,
    /// An empty body is an error.
    IsMissing,
}

/// Refuses what is larger or nests deeper than any request: before it is parsed, wherever it came in.
pub fn check(body: &[u8]) -> Result<(), Reject> {
    limits::check("body_bytes", body.len(), BODY_BYTES_MAX)?;
    let depth = payload::depth(body);
    if depth > JSON_DEPTH_MAX + ENVELOPE_DEPTH {
        let (limit, maximum) = ("json_depth", JSON_DEPTH_MAX);
        return Err(Reject::LimitExceeded { limit, value: depth, maximum });
    }
    Ok(())
}

/// A body as one JSON object with these fields and no others.
pub(crate) fn object<'a>(body: &'a [u8], known: &[&str], empty: Empty) -> Result<Object<'a>, Reject> {
    check(body)?;
    let text = std::str::from_utf8(body).map_err(|error| {
        Reject::field("body", format!("expected UTF-8, found other bytes at offset {}", error.valid_up_to()))
    })?;
    if text.trim_ascii().is_empty() {
        return match empty {
            Empty::IsObject => Ok(Object::empty()),
            Empty::IsMissing => Err(Reject::field("body", "expected a JSON object, found nothing")),
        };
    }
    if text.trim_ascii() == "null" && empty == Empty::IsObject {
        return Ok(Object::empty());
    }
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| malformed(&error))?;
    Object::read("", raw, known)
}

fn malformed(error: &serde_json::Error) -> Reject {
    // The message ends in the place: "expected `,` or `}` at line 1 column 7".
    Reject::field("body", format!("expected one JSON object, found malformed JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &[u8]) -> Reject {
        object(body, &["a"], Empty::IsMissing).map(|_| ()).unwrap_err()
    }

    #[test]
    fn nothing_is_an_object_only_where_no_field_is_required() {
        assert!(object(b" \n", &[], Empty::IsObject).is_ok());
        assert!(object(b"null", &[], Empty::IsObject).is_ok());
        assert_eq!(refused(b""), Reject::field("body", "expected a JSON object, found nothing"));
    }

    #[test]
    fn malformed_json_is_refused_with_its_place() {
        for (body, place) in [("{\"a\":}", "line 1 column 6"), ("{\n\"a\" 1}", "line 2 column 5")] {
            let message = refused(body.as_bytes()).to_string();
            assert!(message.starts_with("body: ") && message.contains(place), "{message}");
        }
        for body in ["{} {}", "[1]", "1", "\"a\"", "{\"a\":1", "{'a':1}", "{\"a\":1,}", "nul"] {
            assert_eq!(refused(body.as_bytes()).code(), "invalid_request", "{body}");
        }
        assert!(refused(b"{\"a\":\"\xff\"}").to_string().contains("offset 6"));
    }

    #[test]
    fn size_and_depth_are_limited_before_anything_is_parsed() {
        let large = vec![b' '; BODY_BYTES_MAX + 1];
        let expected =
            Reject::LimitExceeded { limit: "body_bytes", value: BODY_BYTES_MAX + 1, maximum: BODY_BYTES_MAX };
        assert_eq!(refused(&large), expected);
        let deep = "[".repeat(1_000_000);
        let expected = Reject::LimitExceeded { limit: "json_depth", value: 1_000_000, maximum: 64 };
        assert_eq!(refused(deep.as_bytes()), expected);
    }
}
