//! The error of all policies, with the path of the wrong field.

use thiserror::Error;

use crate::duration::{DurationError, DurationProblem, Millis, UNITS, excerpt};
use crate::error::Reject;

/// A policy that isn't valid: the path, the expected value and the value found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}expected {expected}, found `{found}`", place(path))]
pub struct PolicyError {
    /// The field, relative to the value that was read: `delay`, `delay[2]`. Empty for the whole value.
    pub path: String,
    /// The expected value, for use after the word "expected".
    pub expected: String,
    /// The value found, cut to [`crate::duration::MAX_QUOTED_CHARS`].
    pub found: String,
}

impl PolicyError {
    pub fn new(path: &str, expected: impl Into<String>, found: &str) -> Self {
        Self { path: excerpt(path), expected: expected.into(), found: excerpt(found) }
    }

    /// The same error with the path from the enclosing object: `delay` in `retry` becomes `retry.delay`.
    #[must_use]
    pub fn under(self, field: &str) -> Self {
        let path = if self.path.is_empty() { field.to_owned() } else { format!("{field}.{}", self.path) };
        Self { path, ..self }
    }
}

impl From<PolicyError> for Reject {
    fn from(error: PolicyError) -> Self {
        let expected = format!("expected {}", error.expected);
        Self::instead_of(error.path, expected, format_args!("`{}`", error.found))
    }
}

fn place(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_sentence_that_names_the_path() {
        let whole = PolicyError::from(Millis::parse("0s").unwrap_err());
        assert_eq!(whole.to_string(), "expected a duration longer than zero, found `0s`");
        let field = PolicyError::from(Millis::parse("1 fortnight").unwrap_err()).under("every");
        let expected = format!("a duration such as `1h 30m` (units {UNITS}) or whole milliseconds");
        assert_eq!(field.to_string(), format!("every: expected {expected}, found `1 fortnight`"));
        assert_eq!(Reject::from(field.clone()).to_string(), field.to_string());
    }

    #[test]
    fn an_error_repeats_at_most_a_hundred_characters_of_text_and_of_path() {
        let long = "ü".repeat(3_000);
        let error = PolicyError::new(&long, "something else", &long);
        assert_eq!((error.found.chars().count(), error.path.chars().count()), (100, 100));
    }
}
