//! The three spellings of a length of time: `delay`, `delay_seconds` and `delay_ms`.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;

use crate::{Milliseconds, Seconds, Span};

/// A length of time, with the name of its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The field's name.
    pub field: String,
    /// How long.
    pub span: Millis,
}

impl From<Given> for Millis {
    fn from(given: Given) -> Self {
        given.span
    }
}

/// The length of time in the spelling that the request uses, if any. Two spellings are refused.
pub fn one_of<S: Span>(
    name: &str,
    plain: Option<S>,
    seconds: Option<Seconds<S>>,
    ms: Option<Milliseconds<S>>,
) -> Result<Option<Given>, Reject> {
    let spellings = [
        ("", plain),
        ("_seconds", seconds.map(|Seconds(span)| span)),
        ("_ms", ms.map(|Milliseconds(span)| span)),
    ];
    let mut given: Option<Given> = None;
    for (suffix, span) in spellings {
        let Some(span) = span else { continue };
        let field = format!("{name}{suffix}");
        if let Some(earlier) = given {
            return Err(contradiction(&field, &earlier.field));
        }
        given = Some(Given { field, span: span.into() });
    }
    Ok(given)
}

/// The refusal of a field together with another field of the same meaning.
pub fn contradiction(field: &str, other: &str) -> Reject {
    Reject::instead_of(field, format_args!("expected only one of {other} and {field}"), "both")
}
