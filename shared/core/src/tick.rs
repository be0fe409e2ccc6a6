//! The tick's own record: which instants have been handed to timers, and which shards others are at.
//!
//! It only saves work. Without it every instant would be handed over again and a shard be swept by many, which does
//! no harm but costs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::duration::Millis;
use crate::id::Nonce;
use crate::time::Timestamp;

/// The tick of a minute T hands over what lies before this long after T: its slot is the last minute of it.
///
/// A tick may come up to a minute late, and its messages still arrive in time.
pub const SLOT_END: Millis = Millis::from_secs(180);
/// How long a shard that was handed to others is left to them before it is handed over again.
pub const FANNED_FOR: Millis = Millis::from_secs(300);
/// How far a clock may be ahead of another one. What lies further ahead is from a clock that jumped back since.
pub(crate) const SKEW_MAX: Millis = Millis::from_secs(60);

/// The control record of all ticks. There is none until one of them has something to note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickRecord {
    /// Counts its writes; each is conditional on it.
    pub version: u64,
    /// The decision that wrote this version.
    pub nonce: Nonce,
    /// Every instant before this one has been handed to timers, but for the shards below.
    pub timers_until: Timestamp,
    /// When each shard with a backlog was last handed to others to sweep. The instant is the token of the one sweep
    /// that goes on: whoever shows another one stops.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fanned: BTreeMap<u16, Timestamp>,
    /// Shards of which only what lies before this instant has been handed to timers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub behind: BTreeMap<u16, Timestamp>,
}

impl TickRecord {
    /// A record that says nothing yet.
    pub fn new(nonce: Nonce) -> Self {
        Self {
            version: 0,
            nonce,
            timers_until: Timestamp::EPOCH,
            fanned: BTreeMap::new(),
            behind: BTreeMap::new(),
        }
    }

    /// Whether somebody else is at work on that shard's backlog, as far as is known.
    pub fn is_fanned(&self, shard: u16, now: Timestamp) -> bool {
        // A clock that jumped back must not leave a shard to nobody.
        self.fanned
            .get(&shard)
            .is_some_and(|since| *since <= now.plus(SKEW_MAX) && now < since.plus(FANNED_FOR))
    }

    /// Whether the sweep of a shard with this token is the one that goes on.
    pub fn is_swept_by(&self, shard: u16, token: Timestamp) -> bool {
        self.fanned.get(&shard) == Some(&token)
    }

    /// The record in which a shard is handed on by the sweep with the token `held`, or by a tick, which has none.
    /// With the next sweep's token. `None` if the shard is somebody else's.
    pub fn handed_on(
        &self,
        shard: u16,
        held: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<(Self, Timestamp)> {
        let may = match held {
            Some(held) => self.is_swept_by(shard, held),
            None => !self.is_fanned(shard, now),
        };
        let before = self.fanned.get(&shard).filter(|before| **before >= now && held.is_some());
        let token = before.map_or(now, |before| before.plus(Millis::new(1)));
        may.then(|| (self.with_sweep(shard, Some(token), now), token))
    }

    /// The record in which the sweep with this token has come to its end, or given the shard back to the one before.
    pub fn given_back(
        &self,
        shard: u16,
        token: Timestamp,
        to: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Self> {
        self.is_swept_by(shard, token).then(|| self.with_sweep(shard, to, now))
    }

    fn with_sweep(&self, shard: u16, token: Option<Timestamp>, now: Timestamp) -> Self {
        let mut after = self.clone();
        after.fanned.retain(|other, _| *other != shard && self.is_fanned(*other, now));
        after.fanned.extend(token.map(|token| (shard, token)));
        after
    }

    /// Up to where a shard's instants have been handed to timers.
    pub fn handed_until(&self, shard: u16) -> Timestamp {
        self.behind.get(&shard).map_or(self.timers_until, |at| self.timers_until.min(*at))
    }

    /// What is known after a tick that handed over all instants before `until`, but for the shards `behind`.
    #[must_use]
    pub fn after(&self, until: Timestamp, behind: BTreeMap<u16, Timestamp>) -> Self {
        if until < self.timers_until {
            // Another tick has gone further.
            return self.clone();
        }
        Self { timers_until: until, behind, ..self.clone() }
    }
}

/// The end of what the tick of this minute hands over; never further than that from now, or a tick from a clock
/// that is ahead would mark instants that nobody has looked at.
pub fn slot_end(scheduled_at: Timestamp, now: Timestamp) -> Timestamp {
    scheduled_at.min(now).plus(SLOT_END)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn a_tick_hands_over_three_minutes_from_the_minute_it_stands_for() {
        assert_eq!(slot_end(at(600), at(659)), at(780));
        assert_eq!(slot_end(at(600), at(600)), at(780));
        // One from the future hands over no more than one of now would.
        assert_eq!(slot_end(at(9_000), at(600)), at(780));
    }

    fn blank() -> TickRecord {
        TickRecord::new(Nonce::from_bytes([0; Nonce::LEN]))
    }

    #[test]
    fn what_was_handed_over_is_never_taken_back() {
        let record = blank().after(at(100), BTreeMap::new()).after(at(50), BTreeMap::from([(1, at(20))]));
        assert_eq!((record.timers_until, record.handed_until(1)), (at(100), at(100)));
    }

    #[test]
    fn a_shard_that_fell_behind_goes_on_where_it_stopped() {
        let record = blank().after(at(100), BTreeMap::from([(1, at(70))]));
        assert_eq!((record.handed_until(0), record.handed_until(1)), (at(100), at(70)));
        let record = record.after(at(160), BTreeMap::new());
        assert_eq!((record.handed_until(0), record.handed_until(1)), (at(160), at(160)));
    }

    #[test]
    fn a_shard_is_left_to_others_for_five_minutes_from_when_it_was_last_handed_on() {
        let (record, token) = blank().handed_on(3, None, at(1_000)).unwrap();
        assert!(record.is_fanned(3, at(1_000)) && record.is_fanned(3, at(1_299)));
        assert!(!record.is_fanned(3, at(1_300)) && !record.is_fanned(4, at(1_000)));
        assert!(record.is_fanned(3, at(940)), "by a clock that is behind");
        assert!(!record.is_fanned(3, at(939)), "by a clock that jumped back");
        let (record, _) = record.handed_on(3, Some(token), at(1_200)).unwrap();
        assert!(record.is_fanned(3, at(1_499)));
        let (record, _) = record.handed_on(4, None, at(1_500)).unwrap();
        assert!(record.fanned.keys().eq(&[4]), "what nobody is at is forgotten");
    }

    #[test]
    fn a_shard_has_one_sweep_and_only_that_hands_it_on() {
        let (record, first) = blank().handed_on(3, None, at(1_000)).unwrap();
        assert!(record.handed_on(3, None, at(1_001)).is_none(), "another tick");
        // Within the same millisecond as well, the next sweep has a token of its own.
        let (record, second) = record.handed_on(3, Some(first), at(1_000)).unwrap();
        assert!(record.is_swept_by(3, second) && !record.is_swept_by(3, first));
        assert!(record.handed_on(3, Some(first), at(1_010)).is_none(), "the same message again");
        assert!(record.given_back(3, first, None, at(1_010)).is_none());
        let back = record.given_back(3, second, Some(first), at(1_010)).unwrap();
        assert!(back.is_swept_by(3, first), "the next one's message could not be sent");
        assert!(record.given_back(3, second, None, at(1_010)).unwrap().fanned.is_empty());
    }
}
