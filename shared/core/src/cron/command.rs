//! What can be asked of a cron. Commands carry everything random or read from outside.

use super::plan::Plan;
use super::run::{IdTemplate, Occurrence, Target};
use crate::id::{BlobId, CronId, Fingerprint, Incarnation};
use crate::payload::Json;

/// Something asked of a cron.
#[derive(Clone, Debug)]
pub enum Command {
    /// Make it, unless it is there.
    Create(Box<Definition>),
    /// Make it, or make it what is asked for now.
    Replace(Box<Definition>),
    /// Start nothing until it is resumed. What comes meanwhile is skipped.
    Pause,
    /// Go on with the next occurrence.
    Resume,
    /// Start a run now, whatever the plan says.
    Trigger,
    /// Forget it. Its runs are left alone.
    Delete,
    /// See what has become due.
    Due {
        /// Which of its open runs have ended, as far as is known.
        ended: Vec<Occurrence>,
    },
    /// Runs that were to be started have been, or can't be.
    Started {
        /// What became of each.
        results: Vec<(Occurrence, StartResult)>,
    },
}

/// What a cron is to be.
#[derive(Clone, Debug)]
pub struct Definition {
    pub id: CronId,
    /// Random; of no account where it is there already.
    pub incarnation: Incarnation,
    /// What its runs are.
    pub target: Target,
    /// How their ids are made, if not as [`IdTemplate::of`] says.
    pub template: Option<IdTemplate>,
    /// The request that starts one.
    pub request: Json,
    /// When, and how.
    pub plan: Plan,
    /// Whether it begins paused; as it is, or not at all, when nothing is said.
    pub paused: Option<bool>,
    /// Digest of the request's content.
    pub fingerprint: Fingerprint,
    /// Random key for a request that doesn't fit.
    pub blob_id: BlobId,
}

/// What became of a run that was to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartResult {
    /// It exists now, or did already.
    Started,
    /// It never will: starting it was refused for good.
    Refused {
        /// The stable code of the refusal.
        code: &'static str,
    },
}
