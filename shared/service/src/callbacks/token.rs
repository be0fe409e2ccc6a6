//! The text of a token: what it is for, until when, and a signature over both.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tickover_core::id::{EventName, ExecutionId, Incarnation, LeaseId, TaskId};
use tickover_core::time::Timestamp;

const VERSION: u8 = 1;
const WAIT: u8 = b'w';
const ATTEMPT: u8 = b'a';
/// Bytes of the signature.
const SIGNATURE: usize = 32;

/// What a token is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A wait of an execution. The name of the event has the run's number in it.
    Wait { execution: ExecutionId, incarnation: Incarnation, event: EventName },
    /// An attempt of a task.
    Attempt { task: TaskId, incarnation: Incarnation, lease: LeaseId },
}

/// A secret that signs tokens.
#[derive(Clone, PartialEq)]
pub struct Secret(Arc<[u8]>);

impl Secret {
    /// The secret in a text.
    pub fn of(text: &str) -> Self {
        Self(text.as_bytes().into())
    }

    /// HMAC-SHA256 (RFC 2104).
    fn mac(&self) -> Option<Hmac<Sha256>> {
        Hmac::<Sha256>::new_from_slice(&self.0).ok()
    }

    /// The target of a token that one of these secrets has signed and that hasn't expired. All are tried.
    pub(super) fn verified_by_one(secrets: &[Self], token: &str, now: Timestamp) -> Option<Target> {
        secrets.iter().fold(None, |found, secret| found.or(secret.verify(token, now)))
    }

    /// The token for a target. Its length depends on the names only.
    pub fn sign(&self, target: &Target, expires_at: Timestamp) -> String {
        let mut bytes = content(target, expires_at);
        if let Some(mut mac) = self.mac() {
            mac.update(&bytes);
            bytes.extend_from_slice(&mac.finalize().into_bytes());
        }
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The target of a token that this secret has signed and that hasn't expired. Compared in constant time.
    pub fn verify(&self, token: &str, now: Timestamp) -> Option<Target> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (content, signature) = bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE)?)?;
        let mut mac = self.mac()?;
        mac.update(content);
        mac.verify_slice(signature).ok()?;
        let (target, expires_at) = parse(content)?;
        (now < expires_at).then_some(target)
    }
}

fn content(target: &Target, expires_at: Timestamp) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    let (kind, incarnation, names): (u8, &Incarnation, [&[u8]; 2]) = match target {
        Target::Wait { execution, incarnation, event } => {
            (WAIT, incarnation, [execution.as_str().as_bytes(), event.as_str().as_bytes()])
        }
        Target::Attempt { task, incarnation, lease } => {
            (ATTEMPT, incarnation, [task.as_str().as_bytes(), lease.as_bytes()])
        }
    };
    bytes.push(kind);
    bytes.extend_from_slice(&expires_at.as_millis().to_be_bytes());
    bytes.extend_from_slice(incarnation.as_bytes());
    // Names have at most 96 bytes.
    bytes.push(u8::try_from(names[0].len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(names[0]);
    bytes.extend_from_slice(names[1]);
    bytes
}

fn parse(content: &[u8]) -> Option<(Target, Timestamp)> {
    let (&[version, kind], rest) = content.split_first_chunk::<2>()?;
    let (expires_at, rest) = rest.split_first_chunk::<8>()?;
    let (incarnation, rest) = rest.split_first_chunk::<{ Incarnation::LEN }>()?;
    let (&length, rest) = rest.split_first()?;
    let (id, last) = rest.split_at_checked(length.into())?;
    if version != VERSION {
        return None;
    }
    let id = std::str::from_utf8(id).ok()?;
    let incarnation = Incarnation::from_bytes(*incarnation);
    let target = match kind {
        WAIT => {
            let event = EventName::parse(std::str::from_utf8(last).ok()?).ok()?;
            Target::Wait { execution: ExecutionId::parse(id).ok()?, incarnation, event }
        }
        ATTEMPT => {
            let lease = LeaseId::from_bytes(last.try_into().ok()?);
            Target::Attempt { task: TaskId::parse(id).ok()?, incarnation, lease }
        }
        _ => return None,
    };
    Some((target, Timestamp::from_millis(i64::from_be_bytes(*expires_at))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn targets() -> [Target; 2] {
        let incarnation = Incarnation::from_bytes([7; 8]);
        [
            Target::Wait {
                execution: ExecutionId::parse("order-7").unwrap(),
                incarnation,
                event: EventName::parse("callback.1.approval").unwrap(),
            },
            Target::Attempt {
                task: TaskId::parse("mail-7").unwrap(),
                incarnation,
                lease: LeaseId::from_bytes([9; LeaseId::LEN]),
            },
        ]
    }

    #[test]
    fn a_token_is_read_by_the_secret_that_signed_it_until_it_expires() {
        let secret = Secret::of("one");
        for target in targets() {
            let token = secret.sign(&target, at(1_000));
            assert_eq!(secret.verify(&token, at(999)), Some(target));
            assert_eq!(secret.verify(&token, at(1_000)), None);
            assert_eq!(Secret::of("other").verify(&token, at(0)), None);
            assert_eq!(token, secret.sign(&secret.verify(&token, at(0)).unwrap(), at(1_000)));
        }
    }

    #[test]
    fn no_byte_of_a_token_can_be_changed_or_left_out() {
        let secret = Secret::of("one");
        for target in targets() {
            let bytes = URL_SAFE_NO_PAD.decode(secret.sign(&target, at(1_000))).unwrap();
            for place in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[place] ^= 1;
                assert_eq!(secret.verify(&URL_SAFE_NO_PAD.encode(changed), at(0)), None, "{place}");
                assert_eq!(secret.verify(&URL_SAFE_NO_PAD.encode(&bytes[..place]), at(0)), None, "{place}");
            }
        }
    }

    #[test]
    fn other_texts_are_no_tokens() {
        for text in ["", "nonsense!", "AAAA", &"A".repeat(400)] {
            assert_eq!(Secret::of("one").verify(text, at(0)), None, "{text}");
        }
    }
}
