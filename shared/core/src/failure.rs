//! The error of a task or of a workflow's code, as its worker reports it.

use serde::{Deserialize, Serialize};

/// An error as a worker reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of error, which is compared with a policy's `non_retryable`.
    #[serde(rename = "c")]
    pub code: String,
    /// A text for people.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Failure {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    /// The same error with the message cut to at most this many bytes, at a character boundary.
    #[must_use]
    pub fn cut(&self, bytes: usize) -> Self {
        let end = self.message.floor_char_boundary(bytes);
        Self { code: self.code.clone(), message: self.message[..end].to_owned() }
    }
}
