//! The error of a task or of a workflow's code, as its worker reports it.

use serde::{Deserialize, Serialize};

use crate::limits::ERROR_CODE_MAX;

/// The code of errors that have none of their own.
pub const DEFAULT_CODE: &str = "error";

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
    /// An error with a [recorded code](recorded_code). To refuse a code would cost the attempt its report.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: recorded_code(code.into()), message: message.into() }
    }

    /// The same error with the message cut to at most this many bytes, at a character boundary.
    #[must_use]
    pub fn cut(&self, bytes: usize) -> Self {
        let end = self.message.floor_char_boundary(bytes);
        Self { code: self.code.clone(), message: self.message[..end].to_owned() }
    }
}

/// A code as it is recorded and looked for: cut to [`ERROR_CODE_MAX`] bytes, between characters. Instead of an empty one,
/// [`DEFAULT_CODE`].
#[must_use]
pub fn recorded_code(mut code: String) -> String {
    code.truncate(code.floor_char_boundary(ERROR_CODE_MAX));
    if code.is_empty() { DEFAULT_CODE.to_owned() } else { code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_cut_between_characters_and_never_empty() {
        for (code, recorded) in [
            ("card_declined".to_owned(), "card_declined".to_owned()),
            ("c".repeat(65), "c".repeat(64)),
            // Three bytes each: 21 of them are 63 bytes.
            ("€".repeat(40), "€".repeat(21)),
            (String::new(), DEFAULT_CODE.to_owned()),
        ] {
            assert_eq!(Failure::new(code, "").code, recorded);
        }
    }
}
