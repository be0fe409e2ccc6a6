//! The checks of a request's body before it is parsed: size, encoding and nesting. So a body never costs more than
//! reading it once.

use serde::de::DeserializeOwned;
use tickover_core::error::Reject;
use tickover_core::limits::{self, JSON_DEPTH_MAX};
use tickover_core::payload;
use tickover_wire::read;
use tickover_wire::request::Nothing;

/// Largest body, in bytes: Lambda's limit for a synchronous call.
pub const BODY_BYTES_MAX: usize = 6 * 1024 * 1024;
/// Levels of JSON that a request may have around a payload: a batch, its list, an entry, and one spare.
const ENVELOPE_DEPTH: usize = 4;

/// Rejects a body that is larger or nests deeper than any valid request. Each transport calls it before parsing.
pub fn check(body: &[u8]) -> Result<(), Reject> {
    limits::check("body_bytes", body.len(), BODY_BYTES_MAX)?;
    let depth = payload::depth(body);
    if depth > JSON_DEPTH_MAX + ENVELOPE_DEPTH {
        let (limit, maximum) = ("json_depth", JSON_DEPTH_MAX);
        return Err(Reject::LimitExceeded { limit, value: depth, maximum });
    }
    Ok(())
}

/// Reads a required body.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Reject> {
    read_text(text(body)?)
}

/// Reads the report of an error. Bytes that aren't UTF-8, such as those of a command's output, are replaced by U+FFFD: to
/// refuse them would cost the attempt its report.
pub(crate) fn read_failure<T: DeserializeOwned>(body: &[u8]) -> Result<T, Reject> {
    check(body)?;
    read_text(&String::from_utf8_lossy(body))
}

fn read_text<T: DeserializeOwned>(text: &str) -> Result<T, Reject> {
    if text.trim_ascii().is_empty() {
        return Err(Reject::instead_of("body", "expected a JSON object", "nothing"));
    }
    read::body(text)
}

/// Reads a body whose fields are all optional. An empty body and `null` mean the same as `{}`.
pub(crate) fn read_or_empty<T: DeserializeOwned>(body: &[u8]) -> Result<T, Reject> {
    let text = text(body)?;
    let is_empty = ["", "null"].contains(&text.trim_ascii());
    read::body(if is_empty { "{}" } else { text })
}

/// Reads the body of a call that has no fields.
pub(crate) fn read_nothing(body: &[u8]) -> Result<(), Reject> {
    read_or_empty::<Nothing>(body).map(|_| ())
}

fn text(body: &[u8]) -> Result<&str, Reject> {
    check(body)?;
    std::str::from_utf8(body).map_err(|error| {
        let found = format!("other bytes at offset {}", error.valid_up_to());
        Reject::instead_of("body", "expected UTF-8", found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &[u8]) -> Reject {
        read::<Nothing>(body).unwrap_err()
    }

    #[test]
    fn nothing_is_an_object_only_where_no_field_is_required() {
        assert!(read_nothing(b" \n").is_ok());
        assert!(read_nothing(b"null").is_ok());
        assert_eq!(refused(b"").to_string(), "body: expected a JSON object, found nothing");
        assert_eq!(refused(b"null").to_string(), "body: expected a JSON object, found null");
    }

    #[test]
    fn malformed_json_is_rejected_with_its_position() {
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
