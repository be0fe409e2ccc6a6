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

/// Most bytes of a reason in a request.
pub const REASON_BYTES_MAX: usize = 128;
/// What a reason adds to a record besides its text.
const REASON_KEY_BYTES: usize = 4;

/// Who has changed a record, and why. A caller and a reason together have at most as many bytes as the longest caller's name:
/// a record has space for that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct By {
    /// Whose call it was. For what an operation did, whoever started it; absent if that isn't known.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// The operation on many records that did it.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageOf>,
    /// Why, as the caller has said.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Box<str>>,
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
        Self { caller: Some(caller), page: None, reason: None }
    }

    /// The same with a reason. Of a long one beside a long name, only the beginning is kept.
    #[must_use]
    pub fn because(self, reason: &str) -> Self {
        let name = self.caller.as_ref().map_or(0, |caller| caller.as_str().len());
        let space = CALLER_BYTES_MAX.saturating_sub(name + REASON_KEY_BYTES).min(REASON_BYTES_MAX);
        let Caller(kept) = Caller::new(&reason[..reason.floor_char_boundary(space)]);
        Self { reason: (!kept.is_empty()).then_some(kept), ..self }
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

    #[test]
    fn a_reason_takes_no_more_space_than_a_long_name() {
        let bytes = |by: &By| crate::size::of(by);
        let longest = By::caller(Caller::new(&"c".repeat(CALLER_BYTES_MAX)));
        for name in 0..=CALLER_BYTES_MAX {
            let by = By::caller(Caller::new(&"c".repeat(name))).because(&"ä".repeat(REASON_BYTES_MAX));
            assert!(bytes(&by) <= bytes(&longest), "{name}");
        }
        assert_eq!(longest.clone().because("x").reason, None);
        let said = By::default().because("a\u{202e}b\nc");
        assert_eq!(said.reason.as_deref(), Some("a\u{202e}b?c"));
        assert_eq!(By::default().because("").reason, None);
    }
}
