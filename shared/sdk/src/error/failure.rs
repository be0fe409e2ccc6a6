//! The plain error: a code for programs, a message for people.

use std::error::Error as StdError;
use std::fmt;

use serde::{Deserialize, Serialize};
pub use tickover_core::failure::DEFAULT_CODE;
use tickover_core::task;

/// An error as it is stored and sent between workers of any language. It is the error of steps that have no error type
/// of their own. `?` converts every [`std::error::Error`] into it.
///
/// Serialised as `{"code": …, "message": …}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of error it is: compared with a retry policy's `non_retryable`.
    pub code: String,
    /// The message, for people.
    #[serde(default)]
    pub message: String,
}

impl Failure {
    /// Creates an error with this code and message.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code.as_str(), self.message.as_str()) {
            (DEFAULT_CODE, message) if !message.is_empty() => formatter.write_str(message),
            (code, "") => formatter.write_str(code),
            (code, message) => write!(formatter, "{code}: {message}"),
        }
    }
}

/// The code is [`DEFAULT_CODE`]. The message includes the error's own sources.
impl<E: StdError> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(DEFAULT_CODE, with_sources(&error))
    }
}

impl From<Failure> for task::Failure {
    fn from(failure: Failure) -> Self {
        Self::new(failure.code, failure.message)
    }
}

/// An error's text, followed by the texts of its sources that it doesn't contain itself.
pub(super) fn with_sources(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the printer is gone")]
    struct Gone(#[source] std::io::Error);

    #[test]
    fn an_error_becomes_a_failure_with_all_it_has_to_say() {
        let failure = Failure::from(Gone(std::io::Error::other("no route")));
        assert_eq!(failure.code, DEFAULT_CODE);
        assert_eq!(failure.to_string(), "the printer is gone: no route");
        assert_eq!(Failure::new("declined", "no funds").to_string(), "declined: no funds");
        assert_eq!(Failure::new("declined", "").to_string(), "declined");
    }
}
