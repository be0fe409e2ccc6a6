//! Gates: a record for each key by which starts are limited, or for each shard of it. It has the places of the tasks that run and of the
//! executions that have begun, and those that wait for one.
//!
//! A task has a lease only while it has a place at each of its gates. Its place ends by itself, a few seconds after the
//! lease that it was taken for: so one that was left behind by a crash never stays. An execution has its places from its
//! first turn until its outcome is final.

mod call;
mod clear;
mod extend;
mod free;
mod pace;
pub mod rate;
mod take;
#[cfg(test)]
mod tests;

use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use crate::due::{Due, DueKind, fnv1a, shard_of_name};
use crate::duration::Millis;
use crate::flow::{Pace, Priority, Shards};
use crate::id::{FlowKey, GateId, Incarnation, LeaseId, Nonce, Owner};
use crate::limits::{CONTROL_RECORD_BYTES, SPAN_MAX};
use crate::size;
use crate::time::Timestamp;

pub use call::{Behind, Standing, call, line};
pub use clear::clear;
pub use extend::extend;
pub use free::{free, withdraw};
pub use pace::{
    AskedStart, BEGINS_WITHIN, LATE_MAX, Pacing, give_start_back, next_start, pacing, reserve_start,
};
pub use take::{CALL_KEPT, Take, Taken, take};

/// The version of the stored format. Readers refuse every other version with an error and never rewrite it.
pub const FORMAT: u8 = 1;
/// How many bytes of a key's text its gate and its tasks have, for people. The digest alone tells two keys apart.
pub const TEXT_MAX: usize = 48;
/// How much the clocks of two processes may differ: a place is kept so much longer than its lease.
pub const CLOCKS: Millis = Millis::from_secs(5);
/// How long a place is kept beyond the lease that it was taken for. The claim comes a moment after the place was taken:
/// if it comes later than what is left beside [`CLOCKS`], the lease is shorter, and if it would have less than half of
/// its length, the place is taken again first.
pub const GRACE: Millis = Millis::from_secs(10);
/// How long a task that was called keeps its place until it comes.
pub const CALL: Millis = Millis::from_secs(60);
/// While somebody waits, the tick looks at the gate this often.
pub const PATROL: Millis = Millis::from_secs(60);
/// Most waiting tasks in the record itself.
pub const LINE_MAX: usize = 8;
/// What the holders of a full line may still add to the record: it has room for waiting tasks below that.
const GROWTH_BYTES: usize = 64;
/// How long an execution keeps its place without a turn that takes it again, as it does from half of this time on. A
/// sleep takes at most half of it.
pub const EXECUTION_PLACE: Millis = Millis::new(2 * SPAN_MAX.as_u64());
/// How long the item of a waiting task is kept. Its own backstop brings it back to the line before.
pub const WAITER_KEPT: Millis = Millis::from_secs(30 * 86_400);
/// How long a gate is kept that nobody needs.
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
    /// The nonce of the decision that wrote this version. Each write is conditional on it: a gate may be deleted and
    /// made anew, and then its versions begin again.
    #[serde(rename = "non")]
    pub nonce: Nonce,
    /// The beginning of the key, at most [`TEXT_MAX`] bytes.
    #[serde(rename = "k")]
    pub text: String,
    /// The limit that was asked for last; absent if only a rate was asked for.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<NonZeroU16>,
    /// Among how many shards of its key that limit is divided.
    #[serde(rename = "n", default, skip_serializing_if = "Shards::is_one")]
    pub shards: Shards,
    /// When the task was scheduled that asked for it.
    #[serde(rename = "la", default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// The limit that an operator has set instead.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<NonZeroU16>,
    /// Among how many shards of its key that limit is divided.
    #[serde(rename = "on", default, skip_serializing_if = "Shards::is_one")]
    pub pinned_shards: Shards,
    /// Its place in the due index, while a task waits or has been called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
    #[serde(rename = "h", default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
    /// The first that wait, in their order.
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    pub waiters: Vec<Waiter>,
    /// Whether more may wait, each in an item of its own.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub overflow: bool,
    /// The rate that was asked for last.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Among how many shards of its key that rate is divided.
    #[serde(rename = "pn", default, skip_serializing_if = "Shards::is_one")]
    pub pace_shards: Shards,
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

/// How far a key's rate is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateState {
    /// When the next start would come if all starts were evenly spread.
    #[serde(rename = "a")]
    pub next_at: Timestamp,
    /// The part of a millisecond by which it is later, in units of one `of`th.
    #[serde(rename = "p", default)]
    pub part: u32,
    /// The limit with which it was written.
    #[serde(rename = "o", default)]
    pub of: u32,
}

/// A task or an execution that has a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "HolderFields", into = "HolderFields")]
pub struct Holder {
    pub owner: Owner,
    pub incarnation: Incarnation,
    /// From when on the place is free, whatever became of its holder.
    pub until: Timestamp,
    pub hold: Hold,
}

/// How far a holder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It has taken its place for what has this mark: a task for an attempt, of which it is the beginning of the lease's
    /// digest; an execution for a version of its record, see [`version_mark`].
    Taken { mark: u32 },
    /// It waited, was given the place and called, and hasn't come yet.
    Called { order: Order },
}

/// A position in the order in which tasks get places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    pub priority: Priority,
    /// Since when it could have started.
    pub since: Timestamp,
}

/// A task or an execution that waits for a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WaiterFields", into = "WaiterFields")]
pub struct Waiter {
    pub owner: Owner,
    pub incarnation: Incarnation,
    pub order: Order,
}

/// A holder as it is stored: an array, because names would take a fifth of the record.
type HolderFields = (Owner, Incarnation, Timestamp, u32, Option<(Priority, Timestamp)>);
type WaiterFields = (Owner, Incarnation, Priority, Timestamp);

impl From<HolderFields> for Holder {
    fn from((owner, incarnation, until, mark, called): HolderFields) -> Self {
        let hold = match called {
            Some((priority, since)) => Hold::Called { order: Order { priority, since } },
            None => Hold::Taken { mark },
        };
        Self { owner, incarnation, until, hold }
    }
}

impl From<Holder> for HolderFields {
    fn from(Holder { owner, incarnation, until, hold }: Holder) -> Self {
        match hold {
            Hold::Taken { mark } => (owner, incarnation, until, mark, None),
            Hold::Called { order } => (owner, incarnation, until, 0, Some((order.priority, order.since))),
        }
    }
}

impl From<WaiterFields> for Waiter {
    fn from((owner, incarnation, priority, since): WaiterFields) -> Self {
        Self { owner, incarnation, order: Order { priority, since } }
    }
}

impl From<Waiter> for WaiterFields {
    fn from(Waiter { owner, incarnation, order }: Waiter) -> Self {
        (owner, incarnation, order.priority, order.since)
    }
}

impl Waiter {
    /// Its key among the items of those who wait at a gate: the keys' order is theirs.
    pub fn sort_key(&self) -> String {
        let rank = match self.order.priority {
            Priority::High => 0,
            Priority::Normal => 1,
            Priority::Low => 2,
        };
        format!("{rank}{:016}{}", self.order.since.as_millis().max(0), self.owner)
    }

    /// Whether it is about the same task or execution.
    pub fn is_of(&self, owner: &Owner, incarnation: Incarnation) -> bool {
        self.owner == *owner && self.incarnation == incarnation
    }
}

impl Holder {
    /// Whether it is about the same task or execution.
    pub fn is_of(&self, owner: &Owner, incarnation: Incarnation) -> bool {
        self.owner == *owner && self.incarnation == incarnation
    }
}

impl Holder {
    /// When it was called, if it was.
    fn called_at(&self) -> Timestamp {
        self.until.minus(CALL)
    }
}

/// Places that were taken at all gates of a task or an execution, for what is to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// When the first of them ends.
    pub until: Timestamp,
    /// The version of the record that they were taken for. A record that has changed since may have given them up.
    pub version: u64,
}

/// The mark of an attempt. It tells two attempts of one task apart, and reveals nothing of the lease.
pub fn mark(lease: &LeaseId) -> u32 {
    let digest = fnv1a(&lease.to_string());
    u32::try_from(digest >> 32).unwrap_or(u32::MAX) ^ u32::try_from(digest & 0xffff_ffff).unwrap_or(0)
}

/// The mark of a place that an execution takes in this version of its record. All who decide on that version have the same
/// mark. Once the record has another version, none of them can begin any more.
pub fn version_mark(version: u64) -> u32 {
    u32::try_from(version).unwrap_or(u32::MAX)
}

/// A gate that is being changed, and what else its write needs.
#[derive(Clone, Debug)]
pub struct Plan {
    pub gate: Gate,
    /// Tasks that need an item of their own.
    pub enters: Vec<Waiter>,
    /// Tasks whose item is to be deleted.
    pub leaves: Vec<Waiter>,
    /// Tasks that have a place now, and are to be told.
    pub called: Vec<Waiter>,
    /// Whether the gate must be written although it is the same. Who frees a place and finds nobody with an item must
    /// not miss one that comes meanwhile: both write the gate, so one of them sees the other.
    touched: bool,
}

impl Plan {
    pub const fn of(gate: Gate) -> Self {
        Self { gate, enters: vec![], leaves: vec![], called: vec![], touched: false }
    }

    /// Has the gate written although nothing else of it may change.
    pub const fn touch(&mut self) {
        self.touched = true;
    }

    /// The gate to write in the place of `before`, or `None` if nothing has changed.
    pub fn finish(
        &mut self,
        before: Option<&Gate>,
        nonce: Nonce,
        now: Timestamp,
        shards: u16,
    ) -> Option<Gate> {
        self.gate.settle(now, shards);
        let is_same = before.is_some_and(|before| {
            let (due, expires_at) = (before.due, before.expires_at);
            Gate { due, expires_at, ..self.gate.clone() } == *before
                && self.gate.due.is_none() == due.is_none()
        });
        if is_same && !self.touched {
            return None;
        }
        Some(Gate { version: self.gate.version + 1, nonce, ..self.gate.clone() })
    }
}

/// The beginning of a key's text, for people.
pub fn shown(key: &FlowKey) -> String {
    let text = key.as_str();
    text[..text.floor_char_boundary(TEXT_MAX)].to_owned()
}

impl Gate {
    /// A gate of which nothing is used yet, before its first write.
    pub fn new(id: GateId, text: String, nonce: Nonce, now: Timestamp) -> Self {
        Self {
            format: FORMAT,
            id,
            version: 0,
            nonce,
            text,
            limit: None,
            shards: Shards::ONE,
            asked_at: None,
            pinned: None,
            pinned_shards: Shards::ONE,
            due: None,
            holders: vec![],
            waiters: vec![],
            overflow: false,
            pace: None,
            pace_shards: Shards::ONE,
            paced_at: None,
            rate: None,
            expires_at: now.plus(KEPT_FOR),
        }
    }

    /// The limit that counts.
    pub fn limit(&self) -> Option<NonZeroU16> {
        self.pinned.or(self.limit)
    }

    /// Among how many shards of its key the limit that counts is divided.
    pub fn shards(&self) -> Shards {
        if self.pinned.is_some() { self.pinned_shards.max(self.shards) } else { self.shards }
    }

    /// How many places are free.
    pub fn free(&self) -> usize {
        self.limit().map_or(0, |limit| usize::from(limit.get()).saturating_sub(self.holders.len()))
    }

    /// Whether a task waits that could have a place.
    pub fn should_call(&self) -> bool {
        self.free() > 0 && (self.overflow || !self.waiters.is_empty())
    }

    /// Whether the record has room for a waiting task more.
    fn has_room(&self) -> bool {
        size::of(self) + GROWTH_BYTES <= CONTROL_RECORD_BYTES
    }

    /// Whether the tick must look at it: somebody waits, or was called and hasn't come yet.
    fn is_watched(&self) -> bool {
        let is_called = |one: &Holder| match one.hold {
            Hold::Called { .. } => true,
            Hold::Taken { .. } => false,
        };
        self.overflow || !self.waiters.is_empty() || self.holders.iter().any(is_called)
    }

    /// Sets when the tick looks at it, and until when it is kept.
    fn settle(&mut self, now: Timestamp, shards: u16) {
        let latest = now.plus(PATROL);
        let at = self.holders.iter().map(|one| one.until).min().map_or(latest, |end| end.min(latest));
        self.due = match self.due {
            _ if !self.is_watched() => None,
            Some(due) if due.at > now && due.at <= latest => Some(due),
            Some(due) => Some(Due { at, ..due }),
            None => {
                let shard = shard_of_name(self.id.as_str(), shards);
                Some(Due { at, kind: DueKind::Backstop, shard })
            }
        };
        let last = self.holders.iter().map(|one| one.until).max().map_or(now, |until| until.max(now));
        // Without its record, a key would begin anew, and more would start than its rate allows.
        let last = self.rate.map_or(last, |state| rate::expires_at(state).max(last));
        self.expires_at = last.plus(KEPT_FOR);
    }

    /// When the record may be deleted; `None` while it is needed.
    pub fn expires_at(&self) -> Option<Timestamp> {
        let needed = self.pinned.is_some() || self.overflow || !self.waiters.is_empty();
        (!needed).then_some(self.expires_at)
    }
}
