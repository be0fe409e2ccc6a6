//! Crons: records that start a task or an execution repeatedly, by a cron expression or at an interval.
//!
//! A cron's record says which occurrences to start and when, and lists its last runs. Only [`decide()`] changes it.
//! A run is recorded before it is started, and its id is derived from the cron and the occurrence. So a start may be
//! repeated, and the run still happens once.

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

use crate::by::By;
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

/// The version of the stored format. Readers refuse every other version with an error and never rewrite it.
pub const FORMAT: u8 = 1;

/// How many runs that have ended or were never started a record keeps.
pub const HISTORY: usize = 4;
/// How many runs a record follows at the same time.
pub const LIVE_MAX: usize = 3;
/// How many occurrences may wait for the end of an open run.
pub const WAITING_MAX: u32 = 1_000;
/// An occurrence found this much later than its instant counts as missed. It is the time of a few ticks.
pub const MISSED_AFTER: Millis = Millis::from_secs(300);

/// The control record of a cron.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cron {
    /// Version of the format, always [`FORMAT`].
    #[serde(rename = "v")]
    pub format: u8,
    #[serde(rename = "id")]
    pub id: CronId,
    /// Distinguishes it from earlier crons with the same id. Also the seed of its jitter.
    #[serde(rename = "inc")]
    pub incarnation: Incarnation,
    /// Counts the decisions written.
    #[serde(rename = "ver")]
    pub version: u64,
    /// The nonce of the decision that wrote this version. The next write is conditional on it.
    #[serde(rename = "non")]
    pub nonce: Nonce,
    #[serde(rename = "t0")]
    pub created_at: Timestamp,
    /// Digest of the request that defined this version of the cron.
    #[serde(rename = "fp")]
    pub fingerprint: Fingerprint,
    /// The kind of its runs: tasks or executions.
    #[serde(rename = "tgt")]
    pub target: Target,
    /// The template of its runs' ids, if it isn't [`IdTemplate::of`].
    #[serde(rename = "tpl", default, skip_serializing_if = "Option::is_none")]
    pub template: Option<IdTemplate>,
    /// The request that starts a run, in the format of the service that starts it.
    #[serde(rename = "req")]
    pub request: Payload,
    /// When it starts runs, and by which rules.
    #[serde(rename = "pl")]
    pub plan: Plan,
    /// The instant from which intervals are counted, in whole seconds.
    #[serde(rename = "an")]
    pub anchor: Timestamp,
    #[serde(rename = "st")]
    pub state: State,
    /// Planned runs started so far.
    #[serde(rename = "n")]
    pub started: u32,
    /// The occurrences that wait for the end of an open run.
    #[serde(rename = "wt", default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The runs that are followed and the last of the others, in the order in which they were added.
    #[serde(rename = "run", default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Run>,
    /// Who has created or changed it last. Kept while the record has space for it.
    #[serde(rename = "by", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Box<By>>,
    /// Its due slot; absent if it has nothing more to do.
    #[serde(rename = "due", default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
}

/// The state of a cron.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It has a next occurrence.
    #[serde(rename = "a")]
    Active(Next),
    /// It has no next occurrence until it is resumed.
    #[serde(rename = "p")]
    Paused {
        #[serde(rename = "a")]
        since: Timestamp,
    },
    /// It has had all its runs, and has no next occurrence.
    #[serde(rename = "f")]
    Finished {
        #[serde(rename = "a")]
        at: Timestamp,
    },
    /// Readers don't see it.
    #[serde(rename = "d")]
    Deleted {
        /// When the store may delete it.
        #[serde(rename = "x")]
        expires_at: Timestamp,
    },
}

/// Occurrences that wait, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The first of them. The others follow it by the plan.
    #[serde(rename = "f")]
    pub first: Timestamp,
    /// How many wait, at least one.
    #[serde(rename = "n")]
    pub count: u32,
    /// The instant from which at least one has been waiting.
    #[serde(rename = "s")]
    pub since: Timestamp,
}

impl Cron {
    /// The instant of the last run that an operator has triggered, of those that are known.
    pub(crate) fn newest_trigger(&self) -> Option<Timestamp> {
        self.runs.iter().filter(|run| run.occurrence.manual).map(|run| run.occurrence.at).max()
    }

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

    /// Its next planned occurrences, at most so many; none of one that isn't active.
    pub fn upcoming(&self, most: usize) -> Vec<Timestamp> {
        let planned = self.plan.max_runs.map(|most| most.get().saturating_sub(self.started));
        let left = planned.map_or(most, |left| usize::try_from(left).unwrap_or(most).min(most));
        let first = self.next().map(|next| next.at);
        let following = |at: &Timestamp| self.plan.when.after(*at, self.anchor);
        std::iter::successors(first, following).take(left).collect()
    }

    /// The id of the task or execution that is started for an occurrence.
    pub fn run_id(&self, occurrence: &Occurrence) -> String {
        match &self.template {
            Some(template) => template.expand(occurrence),
            None => IdTemplate::of(&self.id).expand(occurrence),
        }
    }

    /// The runs whose ends the cron waits for.
    pub fn open_runs(&self) -> impl Iterator<Item = Occurrence> {
        self.runs.iter().filter(|run| run.state.is_open()).map(|run| run.occurrence)
    }

    /// The runs to stop. They are listed at each tick until their end is recorded.
    pub fn stopping_runs(&self) -> impl Iterator<Item = (Occurrence, Stop)> {
        self.runs.iter().filter_map(|run| run.state.stop().map(|stop| (run.occurrence, stop)))
    }

    /// Whether its due slot has come.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| due.at <= now)
    }

    /// The runs to start.
    pub fn starting_runs(&self) -> impl Iterator<Item = Occurrence> {
        self.runs.iter().filter(|run| run.state == RunState::Starting).map(|run| run.occurrence)
    }
}

impl State {
    /// The name in answers.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Active(_) => "active",
            Self::Paused { .. } => "paused",
            Self::Finished { .. } => "finished",
            Self::Deleted { .. } => "deleted",
        }
    }
}
