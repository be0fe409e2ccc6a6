//! Who has changed a record by an operator's call. It is in the record, and only in one that an operator has changed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::OperationId;

/// Most bytes of a caller's name that are kept. The name of a role's session in IAM has at most 180.
pub const CALLER_BYTES_MAX: usize = 192;

/// Who makes a call, as its transport knows: a principal of IAM, the subject of a token, or a word such as `local`. Never
/// what the caller itself says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Caller(Box<str>);

impl Caller {
    /// A caller of this name. What is longer than [`CALLER_BYTES_MAX`] is cut, and what isn't printable replaced.
    pub fn new(name: &str) -> Self {
        let kept = &name[..name.floor_char_boundary(CALLER_BYTES_MAX)];
        Self(kept.chars().map(|c| if c.is_control() { '?' } else { c }).collect())
    }

    pub const fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who has changed a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct By {
    /// Whose call it was. For what an operation did, whoever started it; absent if that isn't known.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// The operation on many records that did it.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageOf>,
}

/// A page of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageOf {
    #[serde(rename = "i")]
    pub operation: OperationId,
    /// How many pages came before it. If it is carried out again, what it had changed is known by that.
    #[serde(rename = "n")]
    pub number: u64,
}

impl By {
    /// A call of its own, by this caller.
    pub const fn caller(caller: Caller) -> Self {
        Self { caller: Some(caller), page: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_at_a_character_and_has_no_control_characters() {
        assert_eq!(Caller::new("ada\n\u{1b}[31m\u{7f}\u{9b}").as_str(), "ada??[31m??");
        let long = Caller::new(&"ä".repeat(CALLER_BYTES_MAX));
        assert_eq!(long.as_str(), "ä".repeat(CALLER_BYTES_MAX / 2));
        assert_eq!(Caller::new(&format!("x{}", "ä".repeat(200))).as_str().len(), CALLER_BYTES_MAX - 1);
    }
}
