//! The commands on a cron. A command contains all random values and all data from outside that its decision needs.

use super::plan::Plan;
use super::run::{IdTemplate, Occurrence, Target};
use crate::id::{BlobId, CronId, Fingerprint, Incarnation};
use crate::payload::Json;

/// A command on a cron.
#[derive(Clone, Debug)]
pub enum Command {
    /// Create it, unless it exists.
    Create(Box<Definition>),
    /// Create it, or replace its definition.
    Replace(Box<Definition>),
    /// Start nothing until it is resumed. Occurrences in between are skipped.
    Pause,
    /// Continue with the next occurrence.
    Resume,
    /// Start a run now, outside of the plan.
    Trigger,
    /// Delete it. Its runs aren't changed.
    Delete,
    /// Handle whatever has become due.
    Due {
        /// The open runs that are known to have ended.
        ended: Vec<Occurrence>,
    },
    /// Report the results of starting runs.
    Started {
        /// The result for each run.
        results: Vec<(Occurrence, StartResult)>,
    },
}

/// The definition of a cron.
#[derive(Clone, Debug)]
pub struct Definition {
    pub id: CronId,
    /// Random. Not used if the cron exists already.
    pub incarnation: Incarnation,
    /// The kind of its runs.
    pub target: Target,
    /// The template of its runs' ids, if it isn't [`IdTemplate::of`].
    pub template: Option<IdTemplate>,
    /// The request that starts a run.
    pub request: Json,
    /// When it starts runs, and by which rules.
    pub plan: Plan,
    /// Whether the cron is paused. If absent, an existing cron keeps its state and a new one is active.
    pub paused: Option<bool>,
    /// Digest of the request's content.
    pub fingerprint: Fingerprint,
    /// Random key for a request that doesn't fit into the record.
    pub blob_id: BlobId,
}

/// The result of starting a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartResult {
    /// The run exists now, or existed already.
    Started,
    /// The start was refused permanently.
    Refused {
        /// The stable code of the refusal.
        code: &'static str,
    },
}
