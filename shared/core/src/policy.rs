//! What all policies share: the error that says where one is wrong, and the timeout policies
//! `maxInactivity`, `maxRuntime` and `deadline` (S1).
//!
//! Reads JSON values that are already in memory. What a timeout does to a task is decided elsewhere.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::duration::{DurationError, DurationProblem, Millis, UNITS, ZeroRule, excerpt};

/// A policy that can't be used: where, what it should be, what it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}expected {expected}, found `{found}`", place(path))]
pub struct PolicyError {
    /// The field, relative to what was read: `delay`, `delay[2]`; empty for the whole.
    pub path: String,
    /// What belongs there, to be read after "expected".
    pub expected: String,
    /// The offending text, cut to [`crate::duration::MAX_QUOTED_CHARS`]; a value that isn't a string is JSON.
    pub found: String,
}

impl PolicyError {
    /// An error about the text `found`.
    pub fn new(path: &str, expected: impl Into<String>, found: &str) -> Self {
        Self { path: excerpt(path), expected: expected.into(), found: excerpt(found) }
    }

    /// An error about the JSON value `found`.
    pub fn about(path: &str, expected: impl Into<String>, found: &Value) -> Self {
        match found {
            Value::String(text) => Self::new(path, expected, text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Self::new(path, expected, &found.to_string())
            }
        }
    }

    /// The same error as seen from the object whose `field` was read: `delay` under `retry` is `retry.delay`.
    #[must_use]
    pub fn under(self, field: &str) -> Self {
        let path = if self.path.is_empty() { field.to_owned() } else { format!("{field}.{}", self.path) };
        Self { path, ..self }
    }
}

fn place(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

/// A whole number, however it is written: JSON knows no difference between `1` and `1.0`. None of what isn't whole, or
/// is so large that a float may have lost its last digits.
pub fn integer(value: &Value) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = |number: &f64| number.fract() == 0.0 && number.abs() <= EXACT;
    value.as_i64().or_else(|| format!("{:.0}", value.as_f64().filter(whole)?).parse().ok())
}

/// The path is empty: [`PolicyError::under`] adds the field.
impl From<DurationError> for PolicyError {
    fn from(error: DurationError) -> Self {
        let expected = match error.problem {
            DurationProblem::Zero => "a duration longer than zero".to_owned(),
            DurationProblem::TooLong => format!("a duration of at most {}", Millis::MAX),
            DurationProblem::Empty
            | DurationProblem::NotText
            | DurationProblem::NoNumber(_)
            | DurationProblem::Negative
            | DurationProblem::Fraction
            | DurationProblem::NoUnit(_)
            | DurationProblem::UnknownUnit(_) => {
                format!("a duration such as `1h 30m` (units {UNITS}) or whole milliseconds")
            }
        };
        Self::new("", expected, &error.text)
    }
}

/// A timeout and how it ends what it stops. Source: Steep's timeout policies (S3).
///
/// What callers write, not what is stored: scheduling turns it into one of [`crate::timeout::Timeouts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeoutPolicy {
    /// How long; never zero when it was read from JSON.
    pub timeout: Millis,
    /// `true` ends in `timed_out`, which is retried while attempts are left; `false` in `cancelled`, which
    /// never is.
    pub error_on_timeout: bool,
}

impl TimeoutPolicy {
    /// Reads a duration (string, or integer milliseconds) or the object `{timeout, errorOnTimeout}`.
    ///
    /// Without `errorOnTimeout`, and in the short form, the timeout isn't an error. Unknown fields are.
    pub fn from_json(value: &Value) -> Result<Self, PolicyError> {
        match value {
            Value::String(_) | Value::Number(_) => {
                let timeout = Millis::from_json(value, ZeroRule::Reject)?;
                Ok(Self { timeout, error_on_timeout: false })
            }
            Value::Object(fields) => timeout_fields(fields, value),
            Value::Null | Value::Bool(_) | Value::Array(_) => {
                Err(PolicyError::about("", "a duration or an object {timeout, errorOnTimeout}", value))
            }
        }
    }
}

fn timeout_fields(fields: &Map<String, Value>, whole: &Value) -> Result<TimeoutPolicy, PolicyError> {
    if let Some(unknown) = fields.keys().find(|name| !["timeout", "errorOnTimeout"].contains(&name.as_str()))
    {
        return Err(PolicyError::new(unknown, "only the fields timeout, errorOnTimeout", unknown));
    }
    let Some(timeout) = fields.get("timeout") else {
        return Err(PolicyError::about("", "an object with a field timeout", whole));
    };
    let timeout = Millis::from_json(timeout, ZeroRule::Reject)
        .map_err(|error| PolicyError::from(error).under("timeout"))?;
    let error_on_timeout = match fields.get("errorOnTimeout") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(other) => return Err(PolicyError::about("errorOnTimeout", "true or false", other)),
    };
    Ok(TimeoutPolicy { timeout, error_on_timeout })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_timeout_is_read_from_text_number_and_object() {
        let five_minutes = Millis::from_secs(300);
        for (value, error_on_timeout) in [
            (json!("5m"), false),
            (json!("300000"), false),
            (json!(300_000), false),
            (json!({"timeout": "5 minutes"}), false),
            (json!({"timeout": 300_000, "errorOnTimeout": false}), false),
            (json!({"timeout": "5m", "errorOnTimeout": null}), false),
            (json!({"timeout": "300s", "errorOnTimeout": true}), true),
        ] {
            let expected = TimeoutPolicy { timeout: five_minutes, error_on_timeout };
            assert_eq!(TimeoutPolicy::from_json(&value), Ok(expected), "{value}");
        }
    }

    #[test]
    fn a_wrong_timeout_is_refused_where_it_is_wrong() {
        for (value, path, found) in [
            (json!("5x"), "", "5x"),
            (json!(0), "", "0"),
            (json!(-5), "", "-5"),
            (json!(null), "", "null"),
            (json!(true), "", "true"),
            (json!(["5m"]), "", r#"["5m"]"#),
            (json!({}), "", "{}"),
            (json!({"errorOnTimeout": true}), "", r#"{"errorOnTimeout":true}"#),
            (json!({"timeout": "0s"}), "timeout", "0s"),
            (json!({"timeout": null}), "timeout", "null"),
            (json!({"timeout": {"timeout": "5m"}}), "timeout", r#"{"timeout":"5m"}"#),
            (json!({"timeout": "5m", "errorOnTimeout": "yes"}), "errorOnTimeout", "yes"),
            (json!({"timeout": "5m", "error_on_timeout": true}), "error_on_timeout", "error_on_timeout"),
        ] {
            let error = TimeoutPolicy::from_json(&value).expect_err(&value.to_string());
            assert_eq!((error.path.as_str(), error.found.as_str()), (path, found), "{value}");
        }
    }

    #[test]
    fn an_error_is_one_sentence_that_names_the_place() {
        let whole = TimeoutPolicy::from_json(&json!("0s")).unwrap_err();
        assert_eq!(whole.to_string(), "expected a duration longer than zero, found `0s`");
        assert_eq!(
            whole.under("maxRuntime").to_string(),
            "maxRuntime: expected a duration longer than zero, found `0s`"
        );
        let field = TimeoutPolicy::from_json(&json!({"timeout": "1 fortnight"})).unwrap_err();
        assert_eq!(
            field.under("deadline").to_string(),
            format!(
                "deadline.timeout: expected a duration such as `1h 30m` (units {UNITS}) or whole \
                 milliseconds, found `1 fortnight`"
            )
        );
    }

    #[test]
    fn an_error_repeats_at_most_a_hundred_characters_of_text_and_of_path() {
        let name = "ü".repeat(3_000);
        let error = TimeoutPolicy::from_json(&json!({ "timeout": "5m", name: 1 })).unwrap_err();
        assert_eq!(error.found.chars().count(), 100);
        assert_eq!(error.path.chars().count(), 100);
    }
}
