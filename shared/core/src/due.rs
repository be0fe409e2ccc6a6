//! A record's due slot: its position in the due index, where the tick finds it. It may be too early, but is never
//! too late.

use serde::{Deserialize, Serialize};

use crate::duration::Millis;
use crate::time::Timestamp;

/// How long before a task's start the tick sends its hint, if the start is further away than a queue can delay a
/// message. The lead spans a few ticks, so a late tick does no harm.
pub const START_LEAD: Millis = Millis::from_secs(180);

/// The writer of an instant within this horizon sends its timer. For later instants the tick has the time to send
/// it: it runs once a minute, at most a minute late, and two minutes before the slot that it covers.
pub const TIMER_HORIZON: Millis = Millis::from_secs(200);

/// A timer that arrives within this time may read the record before the current decision is written, and be deleted.
/// So it can't be relied on for a new instant.
const IN_FLIGHT: Millis = Millis::from_secs(10);

/// A record's due slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    /// Never later than the earliest instant whose effect users can see, nor than the next probe.
    #[serde(rename = "a")]
    pub at: Timestamp,
    #[serde(rename = "k")]
    pub kind: DueKind,
    /// The shard of the due index, fixed when the record is created.
    #[serde(rename = "s")]
    pub shard: u16,
}

/// The reason why a record is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DueKind {
    /// A deadline or timeout, whose effect users can see. The tick that covers the slot sends a timer for it.
    #[serde(rename = "i")]
    Instant,
    /// As `Instant`, but the timer has been sent by the writer of the due slot.
    #[serde(rename = "t")]
    Armed,
    /// The hint of a later start is to be sent.
    #[serde(rename = "s")]
    Start,
    /// A probe: the hint may be lost.
    #[serde(rename = "b")]
    Backstop,
    /// A second probe. The queue was empty at the first one, a minute ago.
    #[serde(rename = "e")]
    Recheck,
}

/// The shard of a new record: the FNV-1a digest of its id, modulo the number of shards.
pub fn shard_of_name(id: &str, shards: u16) -> u16 {
    u16::try_from(fnv1a(id) % u64::from(shards.max(1))).unwrap_or(0)
}

/// FNV-1a, a digest that is the same in every build.
pub(crate) fn fnv1a(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl DueKind {
    /// Whether a timer arrives at the slot's instant, without a tick.
    pub const fn is_timed(self) -> bool {
        match self {
            Self::Instant | Self::Armed => true,
            Self::Start | Self::Backstop | Self::Recheck => false,
        }
    }
}

/// Whether a record in this due slot is read in time for a later instant. Either its own timer is sent again for
/// that instant, or the tick finds the record early enough to send that instant's timer.
pub fn leads_to(place: Due, instant: Timestamp, now: Timestamp) -> bool {
    (place.kind.is_timed() && place.at > now.plus(IN_FLIGHT))
        || instant > place.at.max(now).plus(TIMER_HORIZON)
}

/// The new due slot: the current one if it is early enough, because a move costs two index writes.
pub fn keep_or_lower(current: Option<Due>, latest: Option<Due>) -> Option<Due> {
    match (current, latest) {
        (Some(current), Some(latest)) if current.at <= latest.at => Some(current),
        (_, latest) => latest,
    }
}
