//! The tick's own record: which instants have been handed to timers, and which shards others are at.
//!
//! It only saves work. Without it every instant would be handed over again, which does no harm.

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

/// The control record of all ticks. There is none until one of them has something to note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickRecord {
    /// Counts its writes; each is conditional on it.
    pub version: u64,
    /// The decision that wrote this version.
    pub nonce: Nonce,
    /// Every instant before this one has been handed to timers.
    pub timers_until: Timestamp,
    /// When each shard with a backlog was last handed to others to sweep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fanned: BTreeMap<u16, Timestamp>,
}

impl TickRecord {
    /// A record that says nothing yet.
    pub fn new(nonce: Nonce) -> Self {
        Self { version: 0, nonce, timers_until: Timestamp::EPOCH, fanned: BTreeMap::new() }
    }

    /// Whether somebody else is at work on that shard's backlog, as far as is known.
    pub fn is_fanned(&self, shard: u16, now: Timestamp) -> bool {
        // A clock that jumped back must not leave a shard to nobody.
        self.fanned.get(&shard).is_some_and(|since| *since <= now && now < since.plus(FANNED_FOR))
    }

    /// What is known after a tick: instants handed over, and shards given to others just now.
    #[must_use]
    pub fn after(&self, timers_until: Option<Timestamp>, fanned: &[u16], now: Timestamp) -> Self {
        let mut after = self.clone();
        after.timers_until = timers_until.map_or(self.timers_until, |until| until.max(self.timers_until));
        after.fanned.retain(|shard, _| self.is_fanned(*shard, now));
        after.fanned.extend(fanned.iter().map(|shard| (*shard, now)));
        after
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

    #[test]
    fn what_was_handed_over_is_never_taken_back() {
        let record = TickRecord::new(Nonce::from_bytes([0; Nonce::LEN]));
        let record = record.after(Some(at(100)), &[], at(0)).after(Some(at(50)), &[], at(0));
        assert_eq!(record.timers_until, at(100));
        assert_eq!(record.after(None, &[], at(0)).timers_until, at(100));
    }

    #[test]
    fn a_shard_is_left_to_others_for_five_minutes() {
        let record = TickRecord::new(Nonce::from_bytes([0; Nonce::LEN])).after(None, &[3], at(1_000));
        assert!(record.is_fanned(3, at(1_000)) && record.is_fanned(3, at(1_299)));
        assert!(!record.is_fanned(3, at(1_300)) && !record.is_fanned(4, at(1_000)));
        assert!(!record.is_fanned(3, at(999)), "a clock that jumped back");
        assert!(record.after(None, &[4], at(1_300)).fanned.keys().eq(&[4]));
    }
}
