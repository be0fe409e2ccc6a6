//! The tick's own record: up to which instant timers have been sent, and which shards are swept by other
//! invocations.
//!
//! It only saves work. Without it, every timer would be sent again and a shard be swept several times at once. That
//! does no harm but has a cost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::duration::Millis;
use crate::id::Nonce;
use crate::time::{SKEW_MAX, Timestamp};

/// The tick of a minute T sends timers for the instants before T plus this: its slot is the last minute of that
/// time.
///
/// A tick may run up to a minute late, and its messages still arrive in time.
pub const SLOT_END: Millis = Millis::from_secs(180);
/// How long after a shard was passed to another sweep the tick leaves it alone.
pub const FANNED_FOR: Millis = Millis::from_secs(300);
/// How far the record may be ahead of a tick's slot: that of a later tick, while this one is slow.
const AHEAD_MAX: Millis = Millis::from_secs(600);

/// The control record of all ticks. It doesn't exist until a tick has something to note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickRecord {
    /// Counts its writes. Each write is conditional on it.
    pub version: u64,
    /// The nonce of the decision that wrote this version.
    pub nonce: Nonce,
    /// Timers have been sent for every instant before this one, except in the shards of `behind`.
    pub timers_until: Timestamp,
    /// When each shard with a backlog was last passed to a new sweep. The instant is the token of the only sweep
    /// that may continue: a sweep with another token stops.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fanned: BTreeMap<u16, Timestamp>,
    /// Shards in which timers have been sent only for the instants before this one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub behind: BTreeMap<u16, Timestamp>,
}

impl TickRecord {
    /// A record without notes.
    pub fn new(nonce: Nonce) -> Self {
        Self {
            version: 0,
            nonce,
            timers_until: Timestamp::EPOCH,
            fanned: BTreeMap::new(),
            behind: BTreeMap::new(),
        }
    }

    /// Whether another sweep works on that shard's backlog, as far as is known.
    pub fn is_fanned(&self, shard: u16, now: Timestamp) -> bool {
        // If a clock jumped back, the shard must not stay without a sweep.
        self.fanned
            .get(&shard)
            .is_some_and(|since| *since <= now.plus(SKEW_MAX) && now < since.plus(FANNED_FOR))
    }

    /// Whether the sweep with this token may continue in the shard.
    pub fn is_swept_by(&self, shard: u16, token: Timestamp) -> bool {
        self.fanned.get(&shard) == Some(&token)
    }

    /// The record in which the sweep with the token `token_before`, or a tick, which has no token, passes the shard to
    /// the next sweep, and that sweep's token. `None` if another sweep has the shard.
    pub fn pass_on(
        &self,
        shard: u16,
        token_before: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<(Self, Timestamp)> {
        let may = match token_before {
            Some(token_before) => self.is_swept_by(shard, token_before),
            None => !self.is_fanned(shard, now),
        };
        let before = self.fanned.get(&shard).filter(|before| **before >= now && token_before.is_some());
        let token = before.map_or(now, |before| before.plus(Millis::new(1)));
        may.then(|| (self.with_sweep(shard, Some(token), now), token))
    }

    /// The record in which the sweep with this token has ended, or has returned the shard to the previous sweep.
    pub fn finish_sweep(
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

    /// Up to which instant timers have been sent for a shard.
    pub fn timers_sent_until(&self, shard: u16) -> Timestamp {
        self.behind.get(&shard).map_or(self.timers_until, |at| self.timers_until.min(*at))
    }

    /// The record as a tick whose slot ends at `until` may rely on it: what a clock has noted that was set back since
    /// says nothing.
    #[must_use]
    pub fn as_of(self, until: Timestamp) -> Self {
        if self.timers_until.since(until) <= AHEAD_MAX {
            return self;
        }
        Self { timers_until: Timestamp::EPOCH, behind: BTreeMap::new(), ..self }
    }

    /// The record after a tick that sent timers for all instants before `until`, except in the shards `behind`.
    #[must_use]
    pub fn after(&self, until: Timestamp, behind: BTreeMap<u16, Timestamp>) -> Self {
        if until < self.timers_until {
            // Another tick has got further.
            return self.clone();
        }
        Self { timers_until: until, behind, ..self.clone() }
    }
}

/// The end of the slot that the tick of this minute covers. It counts from `now` if `scheduled_at` is later:
/// otherwise a tick whose clock is ahead would mark instants that no tick has read.
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
    fn a_tick_sends_timers_for_three_minutes_from_its_minute() {
        assert_eq!(slot_end(at(600), at(659)), at(780));
        assert_eq!(slot_end(at(600), at(600)), at(780));
        // A tick with an instant in the future covers no more than one with the current instant.
        assert_eq!(slot_end(at(9_000), at(600)), at(780));
    }

    fn blank() -> TickRecord {
        TickRecord::new(Nonce::from_bytes([0; Nonce::LEN]))
    }

    #[test]
    fn the_instant_up_to_which_timers_were_sent_never_goes_back() {
        let record = blank().after(at(100), BTreeMap::new()).after(at(50), BTreeMap::from([(1, at(20))]));
        assert_eq!((record.timers_until, record.timers_sent_until(1)), (at(100), at(100)));
    }

    #[test]
    fn what_was_noted_before_the_clock_was_set_back_holds_no_timer_back() {
        let record = blank().after(at(90_000), BTreeMap::from([(1, at(80_000))]));
        assert_eq!(record.clone().as_of(at(89_400)), record, "a later tick's, while this one is slow");
        let record = record.as_of(at(3_600));
        assert_eq!((record.timers_sent_until(0), record.timers_sent_until(1)), (at(0), at(0)));
        assert_eq!(record.after(at(3_600), BTreeMap::new()).timers_sent_until(1), at(3_600));
    }

    #[test]
    fn a_shard_that_fell_behind_goes_on_where_it_stopped() {
        let record = blank().after(at(100), BTreeMap::from([(1, at(70))]));
        assert_eq!((record.timers_sent_until(0), record.timers_sent_until(1)), (at(100), at(70)));
        let record = record.after(at(160), BTreeMap::new());
        assert_eq!((record.timers_sent_until(0), record.timers_sent_until(1)), (at(160), at(160)));
    }

    #[test]
    fn a_shard_is_left_to_its_sweep_for_five_minutes_after_it_was_passed_on() {
        let (record, token) = blank().pass_on(3, None, at(1_000)).unwrap();
        assert!(record.is_fanned(3, at(1_000)) && record.is_fanned(3, at(1_299)));
        assert!(!record.is_fanned(3, at(1_300)) && !record.is_fanned(4, at(1_000)));
        assert!(record.is_fanned(3, at(940)), "by a clock that is behind");
        assert!(!record.is_fanned(3, at(939)), "by a clock that jumped back");
        let (record, _) = record.pass_on(3, Some(token), at(1_200)).unwrap();
        assert!(record.is_fanned(3, at(1_499)));
        let (record, _) = record.pass_on(4, None, at(1_500)).unwrap();
        assert!(record.fanned.keys().eq(&[4]), "a shard without a sweep is removed");
    }

    #[test]
    fn a_shard_has_one_sweep_and_only_that_passes_it_on() {
        let (record, first) = blank().pass_on(3, None, at(1_000)).unwrap();
        assert!(record.pass_on(3, None, at(1_001)).is_none(), "another tick");
        // The next sweep has a token of its own even within the same millisecond.
        let (record, second) = record.pass_on(3, Some(first), at(1_000)).unwrap();
        assert!(record.is_swept_by(3, second) && !record.is_swept_by(3, first));
        assert!(record.pass_on(3, Some(first), at(1_010)).is_none(), "the same message again");
        assert!(record.finish_sweep(3, first, None, at(1_010)).is_none());
        let back = record.finish_sweep(3, second, Some(first), at(1_010)).unwrap();
        assert!(back.is_swept_by(3, first), "the next one's message could not be sent");
        assert!(record.finish_sweep(3, second, None, at(1_010)).unwrap().fanned.is_empty());
    }
}
