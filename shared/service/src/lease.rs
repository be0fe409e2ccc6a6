//! The token of a lease. It is opaque to its owner, fences the attempt and finds its message.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;
use tickover_core::id::{Incarnation, LeaseId};
use tickover_core::task::Task;

const VERSION: u8 = 1;
const HEAD: usize = 1 + Incarnation::LEN + LeaseId::LEN;

/// The content of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseToken {
    pub incarnation: Incarnation,
    /// The fence of the attempt.
    pub lease: LeaseId,
    /// The receipt of the message in flight; absent for a claim by id.
    pub receipt: Option<String>,
}

impl LeaseToken {
    pub fn encode(&self) -> String {
        let mut bytes = Vec::with_capacity(HEAD + self.receipt.as_ref().map_or(0, String::len));
        bytes.push(VERSION);
        bytes.extend_from_slice(self.incarnation.as_bytes());
        bytes.extend_from_slice(self.lease.as_bytes());
        bytes.extend_from_slice(self.receipt.as_deref().unwrap_or_default().as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a token; `None` for a text that no claim ever returned.
    pub fn decode(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (head, receipt) = bytes.split_at_checked(HEAD)?;
        let (version, ids) = head.split_first()?;
        if *version != VERSION {
            return None;
        }
        let (incarnation, lease) = ids.split_at_checked(Incarnation::LEN)?;
        let receipt = String::from_utf8(receipt.to_vec()).ok()?;
        Some(Self {
            incarnation: Incarnation::from_bytes(incarnation.try_into().ok()?),
            lease: LeaseId::from_bytes(lease.try_into().ok()?),
            receipt: (!receipt.is_empty()).then_some(receipt),
        })
    }

    /// Whether the token is of this task, in constant time: the time says nothing about a guess.
    pub fn is_of(&self, task: &Task) -> bool {
        self.incarnation.as_bytes().ct_eq(task.incarnation.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_its_text_with_and_without_a_receipt() {
        for receipt in [None, Some("AQEB…=".to_owned())] {
            let token = LeaseToken {
                incarnation: Incarnation::from_bytes([1; 8]),
                lease: LeaseId::from_bytes([2; 16]),
                receipt,
            };
            assert_eq!(LeaseToken::decode(&token.encode()), Some(token));
        }
    }

    #[test]
    fn other_texts_are_no_tokens() {
        for text in ["", "nonsense!", "AAAA", &"A".repeat(400)] {
            assert_eq!(LeaseToken::decode(text), None, "{text}");
        }
    }
}
