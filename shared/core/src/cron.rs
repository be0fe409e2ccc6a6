//! Crons: work that is started again and again, by a cron expression or at an interval.
//!
//! A cron's record says what is to be started when, and which runs have been. [`decide()`] is the one way to
//! change it. A run is written down before it is started, and its id comes from the cron and the occurrence:
//! so whoever finds it written down may start it again, and it still happens once.

pub mod command;
mod decide;
pub mod decision;
mod due_slot;
pub mod expression;
pub mod plan;
pub mod run;
#[cfg(test)]
mod tests;
mod zone;

use serde::{Deserialize, Serialize};

use crate::due::Due;
use crate::duration::Millis;
use crate::id::{CronId, Fingerprint, Incarnation, Nonce};
use crate::payload::Payload;
use crate::time::Timestamp;
use plan::{Next, Plan};
use run::{IdTemplate, Occurrence, Run, RunState, Stop, Target};

pub use command::Command;
pub use decide::decide;
pub use decision::{Decision, Reply};

/// The version of the stored format. Readers refuse another one loudly and never rewrite it.
pub const FORMAT: u8 = 1;

/// Runs that are over, or never were, which a record remembers.
pub const HISTORY: usize = 4;
/// Runs that a record follows at once.
pub const LIVE_MAX: usize = 3;
/// Occurrences that may wait for an open run's end.
pub const WAITING_MAX: u32 = 1_000;
/// How late an occurrence may be seen before it counts as missed: a few ticks.
pub const MISSED_AFTER: Millis = Millis::from_secs(300);

/// The control record of a cron.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cron {
    /// Version of the format, always [`FORMAT`].
    #[serde(rename = "v")]
    pub format: u8,
    /// Its id.
    #[serde(rename = "id")]
    pub id: CronId,
    /// Tells it from earlier crons of the same id; also the seed of its jitter.
    #[serde(rename = "inc")]
    pub incarnation: Incarnation,
    /// Counts the decisions written.
    #[serde(rename = "ver")]
    pub version: u64,
    /// The decision that wrote this version; the next write is conditional on it.
    #[serde(rename = "non")]
    pub nonce: Nonce,
    /// When it was made.
    #[serde(rename = "t0")]
    pub created_at: Timestamp,
    /// Digest of the request that made it what it is.
    #[serde(rename = "fp")]
    pub fingerprint: Fingerprint,
    /// What its runs are.
    #[serde(rename = "tgt")]
    pub target: Target,
    /// How their ids are made, if not as [`IdTemplate::of`] says.
    #[serde(rename = "tpl", default, skip_serializing_if = "Option::is_none")]
    pub template: Option<IdTemplate>,
    /// The request that starts one, in the words of whoever carries it out.
    #[serde(rename = "req")]
    pub request: Payload,
    /// When, and how.
    #[serde(rename = "pl")]
    pub plan: Plan,
    /// From when intervals are counted, in whole seconds.
    #[serde(rename = "an")]
    pub anchor: Timestamp,
    /// Where it stands.
    #[serde(rename = "st")]
    pub state: State,
    /// Planned runs started so far.
    #[serde(rename = "n")]
    pub started: u32,
    /// What waits for an open run's end.
    #[serde(rename = "wt", default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The runs that are followed, and the last of the others, in the order in which they came.
    #[serde(rename = "run", default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Run>,
    /// When the tick has to look at it; absent while nothing of it is to come.
    #[serde(rename = "due", default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
}

/// Where a cron stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Its next occurrence comes by itself.
    #[serde(rename = "a")]
    Active(Next),
    /// Nothing comes until it is resumed.
    #[serde(rename = "p")]
    Paused {
        /// Since when.
        #[serde(rename = "a")]
        since: Timestamp,
    },
    /// Nothing comes any more: it has had all its runs.
    #[serde(rename = "f")]
    Finished {
        /// When that was.
        #[serde(rename = "a")]
        at: Timestamp,
    },
    /// For readers it doesn't exist.
    #[serde(rename = "d")]
    Deleted {
        /// When the store may delete it.
        #[serde(rename = "x")]
        expires_at: Timestamp,
    },
}

/// Occurrences that wait, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The first of them; the others are those that come after it by plan.
    #[serde(rename = "f")]
    pub first: Timestamp,
    /// How many there are, at least one.
    #[serde(rename = "n")]
    pub count: u32,
    /// Since when there have been any.
    #[serde(rename = "s")]
    pub since: Timestamp,
}

impl Cron {
    /// Whether it was deleted.
    pub const fn is_deleted(&self) -> bool {
        match &self.state {
            State::Deleted { .. } => true,
            State::Active(_) | State::Paused { .. } | State::Finished { .. } => false,
        }
    }

    /// When the store may delete it.
    pub const fn expires_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Deleted { expires_at } => Some(*expires_at),
            State::Active(_) | State::Paused { .. } | State::Finished { .. } => None,
        }
    }

    /// Its next occurrence.
    pub const fn next(&self) -> Option<Next> {
        match &self.state {
            State::Active(next) => Some(*next),
            State::Paused { .. } | State::Finished { .. } | State::Deleted { .. } => None,
        }
    }

    /// The id of the task or execution that an occurrence is.
    pub fn run_id(&self, occurrence: &Occurrence) -> String {
        match &self.template {
            Some(template) => template.expand(occurrence),
            None => IdTemplate::of(&self.id).expand(occurrence),
        }
    }

    /// The runs whose ends it waits for.
    pub fn open_runs(&self) -> impl Iterator<Item = Occurrence> {
        self.runs.iter().filter(|run| run.state.is_open()).map(|run| run.occurrence)
    }

    /// The runs to be stopped, each time somebody has looked, until they are known to have ended.
    pub fn stopping_runs(&self) -> impl Iterator<Item = (Occurrence, Stop)> {
        self.runs.iter().filter_map(|run| run.state.stop().map(|stop| (run.occurrence, stop)))
    }

    /// Whether somebody has to look at it now.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| due.at <= now)
    }

    /// The runs to be started.
    pub fn starting_runs(&self) -> impl Iterator<Item = Occurrence> {
        self.runs.iter().filter(|run| run.state == RunState::Starting).map(|run| run.occurrence)
    }
}

impl State {
    /// The name that answers use.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Active(_) => "active",
            Self::Paused { .. } => "paused",
            Self::Finished { .. } => "finished",
            Self::Deleted { .. } => "deleted",
        }
    }
}
