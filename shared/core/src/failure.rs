//! An error as workers report it, of a task or of a workflow's code.

use serde::{Deserialize, Serialize};

/// An error as workers report it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What sort of error: compared with a policy's `non_retryable`.
    #[serde(rename = "c")]
    pub code: String,
    /// For people.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Failure {
    /// An error with this code and message.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    /// The same with the message cut to at most this many bytes, at a character's boundary.
    #[must_use]
    pub fn cut(&self, bytes: usize) -> Self {
        let end = self.message.floor_char_boundary(bytes);
        Self { code: self.code.clone(), message: self.message[..end].to_owned() }
    }
}
