//! Flow control: what a caller may ask of a task besides its work. How many run at once for a key, how fast they
//! start, which come first, and which of several are kept.
//!
//! Owns the rules as they are asked for, with their bounds, and the part of them that a task's record keeps. A task
//! that asks for none of it has none of it in its record, and costs nothing more.

use std::fmt;
use std::num::{NonZeroU16, NonZeroU32};

use serde::{Deserialize, Serialize};

use crate::duration::Millis;
use crate::gate::rate::Reservation;
use crate::id::{Capability, CronId, Fingerprint, FlowKey};

/// Most keys whose running tasks are limited, for one task.
pub const CONCURRENCY_KEYS_MAX: usize = 3;
/// The largest number of tasks that may run at once for a key.
pub const CONCURRENCY_MAX: u16 = 1_000;
/// The most starts that a rate may allow in its period.
pub const RATE_MAX: u32 = 1_000_000;
/// The longest period of a rate.
pub const RATE_PERIOD_MAX: Millis = Millis::from_secs(86_400);
/// Most capabilities that a task may require.
pub const REQUIRES_MAX: usize = 8;
/// The longest time for which a key is unique, or a burst is waited out.
pub const WINDOW_MAX: Millis = Millis::from_secs(30 * 86_400);

/// What a task asks for. The default is nothing. A cron stores it in this form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowRequest {
    /// At most so many run at once for each of these keys, no key twice.
    pub concurrency: Vec<Concurrency>,
    /// How fast tasks of a key start.
    pub rate: Option<Rate>,
    pub priority: Priority,
    /// Tasks of one such key don't delay those of the others.
    pub fairness: Option<FlowKey>,
    /// While one of the key is there, another one isn't scheduled beside it.
    pub unique: Option<Unique>,
    /// Of a burst, only the last one runs.
    pub debounce: Option<Debounce>,
    /// What its worker must provide.
    pub requires: Vec<Capability>,
    /// The cron that waits for its end: see [`Flow::cron`].
    #[serde(skip)]
    pub cron: Option<CronId>,
}

/// At most `limit` tasks of the key have a lease at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concurrency {
    pub key: FlowKey,
    /// 1 to [`CONCURRENCY_MAX`].
    pub limit: NonZeroU16,
}

/// At most `limit` starts of the key in each `per`, evenly spread, after a first `burst` at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    pub key: FlowKey,
    /// 1 to [`RATE_MAX`].
    pub limit: NonZeroU32,
    /// At most [`RATE_PERIOD_MAX`].
    pub per: Millis,
    /// How many may start at once after a quiet time; 1 to `limit`.
    pub burst: NonZeroU32,
}

impl Rate {
    /// The rate without its key.
    pub const fn pace(&self) -> Pace {
        Pace { limit: self.limit, per: self.per, burst: self.burst }
    }
}

/// A rate without its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PaceFields", into = "PaceFields")]
pub struct Pace {
    /// 1 to [`RATE_MAX`].
    pub limit: NonZeroU32,
    /// At most [`RATE_PERIOD_MAX`].
    pub per: Millis,
    /// How many may start at once after a quiet time; 1 to `limit`.
    pub burst: NonZeroU32,
}

/// A pace as it is stored: an array, because records are small.
type PaceFields = (NonZeroU32, Millis, NonZeroU32);

impl From<PaceFields> for Pace {
    fn from((limit, per, burst): PaceFields) -> Self {
        Self { limit, per, burst }
    }
}

impl From<Pace> for PaceFields {
    fn from(Pace { limit, per, burst }: Pace) -> Self {
        (limit, per, burst)
    }
}

/// In which order waiting tasks of a queue or a key start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Priority {
    #[serde(rename = "h")]
    High,
    #[default]
    #[serde(rename = "n")]
    Normal,
    #[serde(rename = "l")]
    Low,
}

impl Priority {
    /// Every priority, the first to start first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// The name in requests and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
    pub(crate) const fn is_normal(&self) -> bool {
        match self {
            Self::Normal => true,
            Self::High | Self::Low => false,
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Only one task of the key at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unique {
    pub key: FlowKey,
    pub window: UniqueWindow,
    pub on_conflict: OnConflict,
}

/// For how long a task keeps its key to itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UniqueWindow {
    /// Until it has ended.
    #[default]
    Open,
    /// Until a worker has claimed it for the first time.
    Waiting,
    /// For this long after it was scheduled, whatever becomes of it; at most [`WINDOW_MAX`].
    For(Millis),
}

/// What becomes of a request whose key another task has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnConflict {
    /// It gets the other task.
    #[default]
    Existing,
    /// The other task is cancelled, and this one is scheduled.
    Replace,
    /// It is refused.
    Refuse,
}

impl OnConflict {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Existing, Self::Replace, Self::Refuse];

    /// The name in requests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Existing => "existing",
            Self::Replace => "replace",
            Self::Refuse => "refuse",
        }
    }
}

/// The last request of a burst runs once no other one has come for `wait`, and at the latest `at_most` after the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Debounce {
    pub key: FlowKey,
    /// At most [`WINDOW_MAX`].
    pub wait: Millis,
    /// At least `wait`, at most [`WINDOW_MAX`].
    pub at_most: Millis,
}

/// The part of a task's flow control that its record keeps: what its later writes and messages need. Keys are kept as
/// digests: the records of the keys have their texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// The keys in which it needs a place while it runs, in the order of their digests.
    #[serde(rename = "g", default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gated>,
    #[serde(rename = "p", default, skip_serializing_if = "Priority::is_normal")]
    pub priority: Priority,
    /// Tasks with the same one are one tenant of their queue.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fingerprint>,
    /// The beginning of that key, for people: see [`crate::gate::TEXT_MAX`].
    #[serde(rename = "ft", default, skip_serializing_if = "String::is_empty")]
    pub fairness_text: String,
    /// What its worker must provide.
    #[serde(rename = "r", default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Capability>,
    /// The key by whose rate it starts.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub paced: Option<Paced>,
    /// The cron whose run it is, if that starts its next run when this one ends.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<CronId>,
}

/// A key by whose rate a task starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paced {
    /// Digest of the key.
    #[serde(rename = "d")]
    pub key: Fingerprint,
    #[serde(rename = "p")]
    pub pace: Pace,
    /// The beginning of the key, for people: see [`crate::gate::TEXT_MAX`].
    #[serde(rename = "t", default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The start that is reserved for its next attempt.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Reservation>,
    /// Whether a worker has come for it, and has put it off to that start.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub put_off: bool,
}

impl Paced {
    /// Sets the start of the next attempt, when a worker has come for it too early.
    pub(crate) const fn put_off(&mut self, start: Reservation) {
        (self.start, self.put_off) = (Some(start), true);
    }

    /// Its attempt begins, or none comes any more.
    pub(crate) const fn forget_start(&mut self) {
        (self.start, self.put_off) = (None, false);
    }
}

/// A key at which a task or an execution needs a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Gated {
    /// Digest of the key.
    pub key: Fingerprint,
    pub limit: NonZeroU16,
    /// The beginning of the key, for people: see [`crate::gate::TEXT_MAX`].
    pub text: String,
}

/// As it is stored, because records are small: the limit, the digest and the text, separated by spaces. The text may have
/// spaces itself.
impl From<Gated> for String {
    fn from(Gated { key, limit, text }: Gated) -> Self {
        let space = if text.is_empty() { "" } else { " " };
        format!("{limit} {key}{space}{text}")
    }
}

impl TryFrom<String> for Gated {
    type Error = &'static str;

    fn try_from(stored: String) -> Result<Self, Self::Error> {
        let (limit, rest) = stored.split_once(' ').ok_or("no key")?;
        let (key, text) = rest.split_once(' ').unwrap_or((rest, ""));
        // A number behind the limit, as in `5/10`, is ignored.
        let (limit, _) = limit.split_once('/').unwrap_or((limit, ""));
        let limit = limit.parse().map_err(|_| "no limit")?;
        Ok(Self { key: Fingerprint::try_from(key.to_owned())?, limit, text: text.to_owned() })
    }
}

impl Flow {
    /// Whether a task's record needs none of it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_stored_in_one_string_with_or_without_its_text() {
        let key = Fingerprint::from_bytes([7; 16]);
        for text in ["", "customer-7", " two words ", "ä"] {
            let gated = Gated { key, limit: NonZeroU16::MAX, text: text.to_owned() };
            let stored = serde_json::to_string(&gated).unwrap();
            assert!(stored.len() <= 31 + text.len(), "{stored}");
            assert_eq!(serde_json::from_str::<Gated>(&stored).unwrap(), gated);
            let with_a_number = stored.replacen(' ', "/20 ", 1);
            assert_eq!(serde_json::from_str::<Gated>(&with_a_number).unwrap(), gated);
        }
        for wrong in [r#""""#, r#""5""#, r#""0 BwcHBwcHBwcHBwcHBwcHBw""#, r#""5 short""#] {
            assert!(serde_json::from_str::<Gated>(wrong).is_err(), "{wrong}");
        }
    }
}
