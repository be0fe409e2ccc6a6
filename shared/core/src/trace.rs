//! The trace that work belongs to, as callers and workers pass it on: W3C's trace context.
//!
//! It is passed on and never interpreted. No span is created here, so the next process receives exactly the caller's
//! context. As the recommendation says, a text that isn't valid is ignored and is no error.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// Bytes of the stored form: the trace id, the span id, the flags.
const LEN: usize = 16 + 8 + 1;
/// Characters of version 00: `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const TEXT_LEN: usize = 55;
/// The flags that are defined today: sampled, and random trace id. Others must not be passed on.
const KNOWN_FLAGS: u8 = 0b11;

/// A trace, the span in it that caused the work, and whether the trace is recorded.
///
/// Records contain it as 34 characters of base64url.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceContext([u8; LEN]);

impl TraceContext {
    /// Reads the value of a `traceparent` header of version 00. Of a later version it reads the fields that version
    /// 00 has. `None` for upper case, ids of zeros only, and any other value that isn't allowed.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let text = traceparent.trim_matches([' ', '\t']);
        let (known, rest) = text.split_at_checked(TEXT_LEN)?;
        let parts: Vec<&str> = known.split('-').collect();
        let [version, trace, span, flags] = parts.as_slice() else { return None };
        let version = bytes::<1>(version)?;
        let is_allowed = match version {
            [0] => rest.is_empty(),
            [0xff] => false,
            [_] => rest.is_empty() || rest.starts_with('-'),
        };
        if !is_allowed {
            return None;
        }
        Self::new(bytes(trace)?, bytes(span)?, bytes::<1>(flags)?[0])
    }

    /// Reads the value of AWS X-Ray's header, `Root=1-…;Parent=…;Sampled=1`. `None` without a parent, because then
    /// there is no span to pass on.
    pub fn parse_xray(header: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut fields = header.split(';').filter_map(|field| field.trim().split_once('='));
            fields.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let (epoch, rest) = field("Root")?.strip_prefix("1-")?.split_once('-')?;
        let trace = bytes(&format!("{epoch}{rest}"))?;
        Self::new(trace, bytes(field("Parent")?)?, u8::from(field("Sampled") == Some("1")))
    }

    fn new(trace: [u8; 16], span: [u8; 8], flags: u8) -> Option<Self> {
        if trace == [0; 16] || span == [0; 8] {
            return None;
        }
        let mut all = [0; LEN];
        all[..16].copy_from_slice(&trace);
        all[16..24].copy_from_slice(&span);
        all[24] = flags & KNOWN_FLAGS;
        Some(Self(all))
    }

    /// The value of a `traceparent` header, of version 00.
    pub fn traceparent(&self) -> String {
        let [trace, span, flags] = [&self.0[..16], &self.0[16..24], &self.0[24..]].map(digits);
        format!("00-{trace}-{span}-{flags}")
    }

    /// The trace id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        digits(&self.0[..16])
    }
}

/// Reads exactly `N` bytes of lower-case hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * N || !text.bytes().all(is_digit) {
        return None;
    }
    let mut all = [0; N];
    for (index, byte) in all.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(all)
}

fn digits(bytes: &[u8]) -> String {
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.filter_map(|half| char::from_digit(half.into(), 16)).collect()
}

impl TryFrom<String> for TraceContext {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| "not base64url")?;
        Ok(Self(bytes.try_into().map_err(|_| "of the wrong length")?))
    }
}

impl From<TraceContext> for String {
    fn from(trace: TraceContext) -> Self {
        URL_SAFE_NO_PAD.encode(trace.0)
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceContext({})", self.traceparent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_survives_its_text_and_its_stored_form() {
        let trace = TraceContext::parse(TEXT).unwrap();
        assert_eq!(trace.traceparent(), TEXT);
        assert_eq!(trace.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let stored = serde_json::to_string(&trace).unwrap();
        assert_eq!(stored.len(), 34 + 2);
        assert_eq!(serde_json::from_str::<TraceContext>(&stored).unwrap(), trace);
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known_and_written_as_version_00() {
        let later = TEXT.replacen("00", "cc", 1);
        assert_eq!(TraceContext::parse(&later).unwrap().traceparent(), TEXT);
        let longer = format!("{later}-what-the-future-will-be-like");
        assert_eq!(TraceContext::parse(&longer).unwrap().traceparent(), TEXT);
        assert_eq!(TraceContext::parse(&format!("{later}.")), None);
    }

    #[test]
    fn unknown_flags_are_not_passed_on() {
        let trace = TraceContext::parse(&TEXT.replace("-01", "-ff")).unwrap();
        assert!(trace.traceparent().ends_with("-03"));
    }

    #[test]
    fn what_is_no_traceparent_is_none_and_no_error() {
        for text in [
            "",
            "00",
            &TEXT.to_uppercase(),
            &TEXT[1..],
            &format!("{TEXT}-"),
            &format!("{TEXT}0"),
            &TEXT.replacen("00", "ff", 1),
            &TEXT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &TEXT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &TEXT.replace('4', "g"),
            &TEXT.replace("-01", "-1 "),
            &TEXT.replace('-', "_"),
            &"é".repeat(40),
            &"x".repeat(100_000),
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text:.60}");
        }
    }

    #[test]
    fn an_x_ray_header_with_a_parent_is_the_same_trace() {
        let header = "Self=1-0-0; Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
        let expected = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01";
        assert_eq!(TraceContext::parse_xray(header).unwrap().traceparent(), expected);
        let unsampled = header.replace("Sampled=1", "Sampled=?");
        assert!(TraceContext::parse_xray(&unsampled).unwrap().traceparent().ends_with("-00"));
        for header in ["", "Root=1-5759e988-bd862e3fe1be46a994272793", "Root=2;Parent=53995c3f42cd8ad8", TEXT]
        {
            assert_eq!(TraceContext::parse_xray(header), None, "{header}");
        }
    }
}
