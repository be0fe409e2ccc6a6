//! An error in a request, before its whole path is known.

use std::fmt::Display;

use serde::de::{Error, Expected, Unexpected};
use serde_json::value::RawValue;
use tickover_core::duration::MAX_QUOTED_CHARS;
use tickover_core::error::Reject;

/// How similar two names must be, from 0 to 1, so that the error suggests one for the other.
const ALIKE: f64 = 0.8;

/// Names in code and in other systems, with their names in requests.
const ELSEWHERE: [(&str, &str); 5] = [
    ("retries", "max_attempts"),
    ("scope", "timeout_scope"),
    ("attempt_timeout", "start_to_close_timeout"),
    ("heartbeat", "heartbeat_timeout"),
    ("schedule_to_start", "schedule_to_start_timeout"),
];

/// An error. Each enclosing object and list adds its own part at the front of the path.
#[derive(Debug, thiserror::Error)]
#[error("{problem:?}")]
pub(super) struct Fault {
    /// Such as `retry.delay[2]`; none for the whole request.
    path: Option<String>,
    problem: Problem,
    /// The value that was found, if it is known and helps the caller.
    found: Option<String>,
}

#[derive(Debug)]
enum Problem {
    /// Another value is expected.
    Expected(String),
    /// The field is missing.
    Missing,
    /// The field is unknown.
    Unknown { nearest: Option<&'static str> },
    /// The field is repeated. Choosing one of its values would be a guess.
    Twice,
}

/// Whether the names of a request are fields or parameters.
#[derive(Clone, Copy, Debug)]
pub(super) enum NameKind {
    Field,
    Parameter,
}

impl Fault {
    pub(super) fn twice(name: &str) -> Self {
        Self { path: Some(excerpt(name)), problem: Problem::Twice, found: None }
    }

    pub(super) fn expected(expected: impl Display, found: String) -> Self {
        Self { path: None, problem: Problem::Expected(expected.to_string()), found: Some(found) }
    }

    /// Adds the value that was found, unless it is known.
    pub(super) fn found_in(self, raw: &RawValue) -> Self {
        let is_null = raw.get() == "null" && self.path.is_none();
        match self.problem {
            // `null` is the same as no field.
            Problem::Expected(_) if is_null => {
                Self { problem: Problem::Missing, found: Some("null".to_owned()), ..self }
            }
            Problem::Expected(_) if self.found.is_none() => Self { found: Some(quote(raw.get())), ..self },
            _ => self,
        }
    }

    /// Adds the value that was found, unless it is known.
    pub(super) fn or_found(self, found: impl FnOnce() -> String) -> Self {
        Self { found: Some(self.found.unwrap_or_else(found)), ..self }
    }

    /// The same error, with its path from the enclosing object, and with the value that was found.
    pub(super) fn under(self, name: &str, raw: &RawValue) -> Self {
        self.found_in(raw).inside(&excerpt(name))
    }

    /// The same error, with its path from the enclosing object.
    pub(super) fn inside(self, name: &str) -> Self {
        let path = match &self.path {
            None => name.to_owned(),
            Some(path) if path.starts_with('[') => format!("{name}{path}"),
            Some(path) => format!("{name}.{path}"),
        };
        Self { path: Some(path), ..self }
    }

    /// The refusal of a request. `path` is the path of the value that was read.
    pub(super) fn reject(self, path: &str, name_kind: NameKind) -> Reject {
        let Self { path: field, problem, found } = if path.is_empty() { self } else { self.inside(path) };
        let name_kind = match name_kind {
            NameKind::Field => "field",
            NameKind::Parameter => "parameter",
        };
        let last = field.as_deref().and_then(|field| field.rsplit('.').next());
        let (expected, found) = match problem {
            Problem::Missing => match last {
                Some(name) => (required(name), None),
                None => ("expected a JSON object".to_owned(), found),
            },
            Problem::Expected(expected) => (format!("expected {expected}"), found),
            Problem::Unknown { nearest: Some(nearest) } => {
                (format!("unknown {name_kind}; did you mean `{nearest}`?"), None)
            }
            Problem::Unknown { nearest: None } => (format!("unknown {name_kind}"), None),
            Problem::Twice => ("expected once".to_owned(), Some("twice".to_owned())),
        };
        let field = field.unwrap_or_else(|| "body".to_owned());
        Reject::InvalidRequest { field, expected, found }
    }
}

/// The expected value of a required field.
fn required(name: &str) -> String {
    let what = match name {
        "queue" => "the queue's name",
        "kind" => "what kind of work it is",
        "workflow" => "the workflow's name",
        "id" => "the id",
        "name" => "the event's name",
        "lease" => "the token that the claim gave",
        "error" => "an object {code, message, retryable}",
        "code" => "what kind of error it is",
        "tasks" => "a list of objects",
        "timeout" => "a duration",
        _ => return "required".to_owned(),
    };
    format!("required; expected {what}")
}

impl Error for Fault {
    fn custom<T: Display>(message: T) -> Self {
        Self { path: None, problem: Problem::Expected(message.to_string()), found: None }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_value(found, expected)
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Other(found) => Some(found.to_owned()),
            // The value's own text is more useful. The enclosing object adds it.
            _ => None,
        };
        Self { found, ..Self::custom(plain(&expected.to_string())) }
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        let alike = known.iter().map(|known| (likeness(name, known), *known));
        let alike = alike
            .filter(|(alike, _)| *alike >= ALIKE)
            .max_by(|(one, _), (other, _)| one.total_cmp(other))
            .map(|(_, known)| known);
        let elsewhere = ELSEWHERE.iter().find(|(word, field)| *word == name && known.contains(field));
        let nearest = elsewhere.map(|(_, field)| *field).or(alike);
        Self { path: Some(excerpt(name)), problem: Problem::Unknown { nearest }, found: None }
    }

    fn missing_field(name: &'static str) -> Self {
        Self { path: Some(name.to_owned()), problem: Problem::Missing, found: None }
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::twice(name)
    }
}

/// The similarity of two names. A name in the same spelling, such as `max_delay` or `maxDelay`, gets a higher value.
fn likeness(name: &str, known: &str) -> f64 {
    let is_camel = |name: &str| name.contains(|letter: char| letter.is_ascii_uppercase());
    let other_spelling = if is_camel(name) == is_camel(known) { 0.0 } else { 0.1 };
    strsim::jaro_winkler(name, known) - other_spelling
}

/// Serde's name of a type in the words of JSON.
fn plain(expected: &str) -> String {
    match expected {
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a JSON object",
        "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number",
        other if other.starts_with("struct ") => "a JSON object",
        other => other,
    }
    .to_owned()
}

/// A value's type, with the beginning of the value itself if it isn't an object or a list.
pub(super) fn quote(text: &str) -> String {
    let kind = match text.as_bytes().first() {
        Some(b'{') => return "an object".to_owned(),
        Some(b'[') => return "a list".to_owned(),
        Some(b'n') => return "null".to_owned(),
        Some(b'"') => "the string",
        Some(b't' | b'f') => "the boolean",
        Some(_) | None => "the number",
    };
    format!("{kind} `{}`", excerpt(text.trim_matches('"')))
}

/// The beginning of a caller's text, as errors quote it.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(MAX_QUOTED_CHARS).collect()
}
