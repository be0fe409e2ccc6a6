//! Crons and their runs.

use serde::{Deserialize, Serialize};
use tickover_core::id::CronId;

use super::ByView;
use crate::verbatim::present;
use crate::word::words;
use crate::{Cursor, Instant, Length, OpenCronStatus, OpenMissed, OpenOverlap, OpenRunState, Verbatim};

words! {
    /// The status of a cron.
    CronStatus {
        /// It starts runs.
        Active = "active",
        /// It starts none until it is resumed.
        Paused = "paused",
        /// It has had all its runs.
        Finished = "finished",
        /// It is being deleted.
        Deleted = "deleted",
    }

    /// The state of a cron's run, as far as the cron knows it.
    RunState {
        /// It is about to be started.
        Starting = "starting",
        /// It was started. The cron doesn't know that it has ended.
        Open = "open",
        /// The same, and it is being stopped for a later run.
        Stopping = "stopping",
        /// It was started. Its end has no effect on the cron any more.
        Started = "started",
        /// It was never started.
        Skipped = "skipped",
        /// It was never started, because its task or execution was refused.
        Refused = "refused",
    }
}

/// A cron. Instants are RFC 3339 in UTC with milliseconds. A field that doesn't apply is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CronView {
    /// Its id.
    pub id: CronId,
    /// Its status.
    pub status: OpenCronStatus,
    /// When it was created.
    pub created_at: Instant,
    /// Its cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The time zone of the expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The time from one occurrence to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Length>,
    /// What happens to an occurrence while an earlier run is open.
    pub overlap: OpenOverlap,
    /// What happens to occurrences that passed while no tick ran.
    pub missed: OpenMissed,
    /// How much later than its instant an occurrence may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Length>,
    /// How many planned occurrences start in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u32>,
    /// How many have started.
    pub started: u32,
    /// How many wait for an open run's end.
    pub waiting: u32,
    /// The next occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Instant>,
    /// When the next occurrence starts, including its jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_start_at: Option<Instant>,
    /// Its next planned occurrences, at most ten. Lists leave them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upcoming: Vec<OccurrenceView>,
    /// Since when it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Instant>,
    /// When it had all its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Instant>,
    /// The task that each occurrence starts, as it was sent. Lists leave out a large one that is stored as a blob.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub task: Option<Verbatim>,
    /// The execution that each occurrence starts, in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub execution: Option<Verbatim>,
    /// The template of its runs' ids.
    pub run_ids: String,
    /// Its last runs, oldest first.
    pub runs: Vec<RunView>,
    /// Who has created or changed it last, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ByView>,
}

/// An instant at which a cron starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OccurrenceView {
    /// The instant, without jitter.
    pub at: Instant,
    /// The same in the time zone of the expression, in RFC 3339 with its offset from UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
}

/// A run of a cron.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunView {
    /// Its occurrence: a planned instant, or the instant of the trigger.
    pub at: Instant,
    /// The id of its task or execution.
    pub id: String,
    /// Whether it was triggered manually.
    pub manual: bool,
    /// `starting`; `open`; `stopping`; `started`, if its end has no effect on the cron any more; `skipped`; or
    /// `refused`.
    pub state: OpenRunState,
    /// Why it was skipped (`overlap`, `missed`, `buffer_full`, `dropped`), or the code of its refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The status of its task or execution. Lists have it for the last two runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// When that ended, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Instant>,
}

/// A cron.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CronAnswer {
    /// The cron in its current state.
    pub cron: CronView,
}

/// A page of crons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CronsAnswer {
    /// The crons, in the order of their creation.
    pub crons: Vec<CronView>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// The outcome of a trigger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TriggerAnswer {
    /// The cron in its current state.
    pub cron: CronView,
    /// The id of the run's task or execution.
    pub run: String,
}

/// The outcome of a cron's deletion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeletedAnswer {
    /// Its id.
    pub id: CronId,
    /// Always `true`.
    pub deleted: bool,
}
