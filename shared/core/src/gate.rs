//! The record of each key by which starts are limited. It has the places of the tasks that run and of the
//! executions that have begun.
//!
//! A task has a lease only while it has a place at each of its keys. Its place ends by itself, a few seconds after the
//! lease that it was taken for: so one that was left behind by a crash never stays. An execution has its places from its
//! first turn until its outcome is final.
//!
//! Whoever finds no place waits in the line of a key, see [`mod@line`]: an item there, and the position in its own record.
//! No two writes are needed that must be one: whoever makes a place free looks at the line after that, and whoever comes
//! to the line looks at the key after that, so one of them sees the other.

mod clear;
mod extend;
pub mod line;
mod offer;
mod pace;
pub mod rate;
mod take;
#[cfg(test)]
pub(crate) mod tests;

use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use crate::by::By;
use crate::duration::Millis;
use crate::flow::{Pace, Priority};
use crate::id::{FlowKey, GateId, Incarnation, Nonce, Owner};
use crate::limits::SPAN_MAX;
use crate::time::Timestamp;

pub use clear::clear;
pub use extend::{extend, free, withdraw};
pub use line::{Branch, Position, Waiter, Waiting};
pub use offer::{Absent, Candidate, offer};
pub use pace::{
    AskedStart, BEGINS_WITHIN, Pacing, confirm_start, first_start, give_start_back, next_start, pacing,
    reserve_start, reset_rate,
};
pub use rate::{RateState, Reservation};
pub use take::{AskedLimit, CALL_KEPT, Take, Taken, take};

/// The version of the stored format. Readers refuse every other version with an error and never rewrite it.
pub const FORMAT: u8 = 2;
/// How many bytes of a key's text its record and its tasks have, for people. The digest alone tells two keys apart.
pub const TEXT_MAX: usize = 48;
/// How much the clocks of two processes may differ: a place is kept so much longer than its lease.
pub const CLOCKS: Millis = Millis::from_secs(5);
/// How long a place is kept beyond the lease that it was taken for. The claim comes a moment after the place was taken:
/// if it comes later than what is left beside [`CLOCKS`], the lease is shorter, and if it would have less than half of
/// its length, the place is taken again first.
pub const GRACE: Millis = Millis::from_secs(10);
/// How long a place is kept that was offered, if nobody else comes.
pub const CALL: Millis = Millis::from_secs(60);
/// What was taken must begin within this time, or take it again.
pub const PLACE_BEGINS_WITHIN: Millis = Millis::from_secs(15);
/// A place whose owner hasn't begun after this time was left behind: its process died between the two writes.
pub const LEFT_BEHIND_AFTER: Millis = Millis::from_secs(45);
/// How long an execution keeps its place without a turn that takes it again, as it does from half of this time on. A
/// sleep takes at most half of it.
pub const EXECUTION_PLACE: Millis = Millis::new(2 * SPAN_MAX.as_u64());
/// How long the record of a key is kept that nobody needs.
pub const KEPT_FOR: Millis = Millis::from_secs(3_600);

/// The record of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// The version of its format.
    #[serde(rename = "v")]
    pub format: u8,
    pub id: GateId,
    /// Counts its writes.
    #[serde(rename = "ver")]
    pub version: u64,
    /// The nonce of the decision that wrote this version. Each write is conditional on it: it may be deleted and
    /// made anew, and then its versions begin again.
    #[serde(rename = "non")]
    pub nonce: Nonce,
    /// The beginning of the key, at most [`TEXT_MAX`] bytes.
    #[serde(rename = "k")]
    pub text: String,
    /// The limit that was asked for last; absent if only a rate was asked for.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<NonZeroU16>,
    /// When the task was scheduled that asked for it.
    #[serde(rename = "la", default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// The limit that an operator has set instead.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<NonZeroU16>,
    /// Who has.
    #[serde(rename = "ob", default, skip_serializing_if = "Option::is_none")]
    pub pinned_by: Option<By>,
    #[serde(rename = "h", default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
    /// Queues of those in its line that were called in vain.
    #[serde(rename = "ab", default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Absent>,
    /// Where the last look at its line stopped, if that has more branches than one look reads: the next one begins there.
    #[serde(rename = "lt", default, skip_serializing_if = "Option::is_none")]
    pub looked_to: Option<String>,
    /// The rate that was asked for last.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// When the task was scheduled that asked for it.
    #[serde(rename = "pa", default, skip_serializing_if = "Option::is_none")]
    pub paced_at: Option<Timestamp>,
    /// How far its rate is used up.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateState>,
    /// When it may be deleted, unless somebody waits or an operator has set its limit.
    #[serde(rename = "x")]
    pub expires_at: Timestamp,
}

/// A task or an execution that has a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "HolderFields", into = "HolderFields")]
pub struct Holder {
    pub owner: Owner,
    pub incarnation: Incarnation,
    /// When the place was taken or offered.
    pub since: Timestamp,
    /// From when on the place is free, whatever became of its holder.
    pub until: Timestamp,
    pub hold: Hold,
}

/// How far a holder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It has taken its place for the version of its record with this mark, see [`version_mark`].
    Taken { mark: u32 },
    /// It waits in a branch of the line with this mark, was offered the place and told, and hasn't come yet.
    Called { branch: u32 },
}

/// The order in which those of a branch get places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    pub priority: Priority,
    /// Since when it could have started.
    pub since: Timestamp,
}

/// A holder as it is stored: an array, because names would take a fifth of the record.
type HolderFields = (Owner, Incarnation, Timestamp, Timestamp, u32, bool);

impl From<HolderFields> for Holder {
    fn from((owner, incarnation, since, until, mark, called): HolderFields) -> Self {
        let hold = if called { Hold::Called { branch: mark } } else { Hold::Taken { mark } };
        Self { owner, incarnation, since, until, hold }
    }
}

impl From<Holder> for HolderFields {
    fn from(Holder { owner, incarnation, since, until, hold }: Holder) -> Self {
        let (mark, called) = match hold {
            Hold::Taken { mark } => (mark, false),
            Hold::Called { branch } => (branch, true),
        };
        (owner, incarnation, since, until, mark, called)
    }
}

impl Holder {
    /// Whether it is about the same task or execution.
    pub fn is_of(&self, owner: &Owner, incarnation: Incarnation) -> bool {
        self.owner == *owner && self.incarnation == incarnation
    }

    /// Whether it was offered the place, and hasn't come yet.
    pub const fn is_called(&self) -> bool {
        match self.hold {
            Hold::Called { .. } => true,
            Hold::Taken { .. } => false,
        }
    }

    /// Whether it was called some seconds ago, so that others may have the place.
    pub fn is_late(&self, now: Timestamp) -> bool {
        self.is_called() && self.since.plus(CALL_KEPT) <= now
    }
}

/// Places that were taken at all keys of a task or an execution, for what is to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// When the first of them was taken.
    pub since: Timestamp,
    /// When the first of them ends.
    pub until: Timestamp,
    /// The version of the record that they were taken for. A record that has changed since may have given them up.
    pub version: u64,
}

/// The mark of a place that is taken for this version of a record. All who decide on that version have the same mark. Once
/// the record has a later version, none of them can begin any more: unless one has begun, the place is nobody's.
pub fn version_mark(version: u64) -> u32 {
    u32::try_from(version).unwrap_or(u32::MAX)
}

impl Places {
    /// Whether they still count for what is to begin now: later, they may have been taken for left behind.
    pub fn count(&self, version: u64, now: Timestamp) -> bool {
        self.version == version && now < self.since.plus(PLACE_BEGINS_WITHIN)
    }
}

/// The beginning of a key's text, for people.
pub fn shown(key: &FlowKey) -> String {
    let text = key.as_str();
    text[..text.floor_char_boundary(TEXT_MAX)].to_owned()
}

impl Gate {
    /// The record of a key of which nothing is used yet, before its first write.
    pub fn new(id: GateId, text: String, nonce: Nonce, now: Timestamp) -> Self {
        Self {
            format: FORMAT,
            id,
            version: 0,
            nonce,
            text,
            limit: None,
            asked_at: None,
            pinned: None,
            pinned_by: None,
            holders: vec![],
            absent: vec![],
            looked_to: None,
            pace: None,
            paced_at: None,
            rate: None,
            expires_at: now.plus(KEPT_FOR),
        }
    }

    /// The limit that counts.
    pub fn limit(&self) -> Option<NonZeroU16> {
        self.pinned.or(self.limit)
    }

    /// How many places are free.
    pub fn free(&self) -> usize {
        self.limit().map_or(0, |limit| usize::from(limit.get()).saturating_sub(self.holders.len()))
    }

    /// The limit of the task that was scheduled last counts.
    pub fn note_limit(&mut self, asked: AskedLimit) {
        let AskedLimit { limit, asked_at } = asked;
        if self.asked_at.is_none_or(|at| at <= asked_at) && self.limit != Some(limit) {
            (self.limit, self.asked_at) = (Some(limit), Some(asked_at));
        }
    }

    /// Whether it has no place now for one that asks for this limit. Who comes to a worker gets that of a late offer.
    pub fn is_full(&self, asked: NonZeroU16, now: Timestamp) -> bool {
        let taken = self.holders.iter().filter(|one| one.until > now && !one.is_late(now)).count();
        taken >= usize::from(self.pinned.unwrap_or(asked).get())
    }

    /// Whether it has a place for who comes now, or nobody has said how many it has. Places that have ended must be cleared.
    pub fn has_place(&self) -> bool {
        self.limit().is_none() || self.free() > 0
    }

    /// The record to write in the place of `before`, or `None` if nothing has changed.
    pub fn finish(mut self, before: Option<&Self>, nonce: Nonce, now: Timestamp) -> Option<Self> {
        let last = self.holders.iter().map(|one| one.until).max().map_or(now, |until| until.max(now));
        // Without its record, a key would begin anew, and more would start than its rate allows.
        let paced = self.pace.zip(self.rate.as_ref());
        let last = paced.map_or(last, |(pace, state)| rate::expires_at(state, &pace).max(last));
        let is_same = before.is_some_and(|before| {
            let expires_at = before.expires_at;
            Self { expires_at, ..self.clone() } == *before
        });
        (!is_same).then(|| {
            (self.version, self.nonce, self.expires_at) = (self.version + 1, nonce, last.plus(KEPT_FOR));
            self
        })
    }

    /// When the record may be deleted; `None` while it is needed.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.pinned.is_none().then_some(self.expires_at)
    }
}
