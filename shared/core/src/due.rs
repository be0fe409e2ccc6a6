//! A record's place in the due index, from which the tick finds it: early is harmless, late never happens.

use serde::{Deserialize, Serialize};

use crate::duration::Millis;
use crate::time::Timestamp;

/// How long before its start the tick sends the hint of work that lies further ahead than a queue can delay.
/// It spans a few ticks, so a late one costs nothing.
pub const START_LEAD: Millis = Millis::from_secs(180);

/// Whoever writes an instant that comes within this sends its timer; a tick has the time to hand over later
/// ones: it comes once a minute, up to a minute late, two minutes before the slot it owns.
pub const TIMER_HORIZON: Millis = Millis::from_secs(200);

/// A record that sleeps has its due slot this long after its hint is due. The tick sends the hint from the index alone,
/// without a write; the slot is the first probe of a hint that may be lost, and the turn after the sleep keeps it.
pub const SLEEP_PROBE: Millis = Millis::from_secs(600);

/// A timer that comes within this may find the record as it was, before what was decided meanwhile is written, and
/// be gone: nothing new is left to it.
const IN_FLIGHT: Millis = Millis::from_secs(10);

/// A record's place in the due index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    /// Never later than the earliest instant that a user can see, nor than the backstop.
    #[serde(rename = "a")]
    pub at: Timestamp,
    /// What is due then.
    #[serde(rename = "k")]
    pub kind: DueKind,
    /// The part of the index it lies in, pinned when the record is made.
    #[serde(rename = "s")]
    pub shard: u16,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum DueKind {
    /// Something a user can see: a deadline or timeout. The tick that owns its slot sends a timer for it.
    Instant,
    /// The same, and the writer has sent the timer.
    Armed,
    /// The hint of a later start.
    Start,
    /// A probe of the hint of a long sleep, [`SLEEP_PROBE`] after its instant. The tick that owns that instant's slot
    /// sends the hint.
    Asleep,
    /// A probe: was the hint lost?
    Backstop,
    /// A second probe: at the first, a minute ago, the queue was empty.
    Recheck,
}

impl DueKind {
    const ALL: [Self; 6] =
        [Self::Instant, Self::Armed, Self::Start, Self::Asleep, Self::Backstop, Self::Recheck];

    /// Its stored name, one letter.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Instant => "i",
            Self::Armed => "t",
            Self::Start => "s",
            Self::Asleep => "z",
            Self::Backstop => "b",
            Self::Recheck => "e",
        }
    }

    /// The kind of this stored name.
    pub fn of_letter(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.letter() == letter)
    }
}

impl From<DueKind> for &'static str {
    fn from(kind: DueKind) -> Self {
        kind.letter()
    }
}

impl TryFrom<String> for DueKind {
    type Error = &'static str;

    fn try_from(letter: String) -> Result<Self, Self::Error> {
        Self::of_letter(&letter).ok_or("no kind of due slot")
    }
}

/// The shard of a new record: FNV-1a of its id, spread over the count in force.
pub fn shard_of_name(id: &str, shards: u16) -> u16 {
    u16::try_from(fnv1a(id) % u64::from(shards.max(1))).unwrap_or(0)
}

/// A digest that is the same in every build.
pub(crate) fn fnv1a(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl DueKind {
    /// Whether a timer comes when its instant does, without a tick.
    pub const fn is_timed(self) -> bool {
        match self {
            Self::Instant | Self::Armed => true,
            Self::Start | Self::Asleep | Self::Backstop | Self::Recheck => false,
        }
    }
}

/// Whether a record that lies here will be looked at in time for an instant that comes later: its own timer
/// goes on to that instant, or the tick finds it long enough before to hand that instant over.
pub fn covers_instant(place: Due, instant: Timestamp, now: Timestamp) -> bool {
    (place.kind.is_timed() && place.at > now.plus(IN_FLIGHT))
        || instant > place.at.max(now).plus(TIMER_HORIZON)
}

/// Where the record goes: it stays where it is if that is early enough, because moving costs two index writes.
pub fn keep_or_lower(current: Option<Due>, latest: Option<Due>) -> Option<Due> {
    match (current, latest) {
        (Some(current), Some(latest)) if current.at <= latest.at => Some(current),
        (_, latest) => latest,
    }
}
