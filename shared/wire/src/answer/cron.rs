//! Crons and their runs.

use serde::{Deserialize, Serialize};
use tickover_core::id::CronId;

use crate::verbatim::present;
use crate::word::words;
use crate::{Cursor, Instant, Length, SaidCronStatus, SaidMissed, SaidOverlap, SaidRunState, Verbatim};

words! {
    /// Where a cron stands.
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

    /// What a cron knows of a run.
    RunState {
        /// It is about to be started.
        Starting = "starting",
        /// It was started, and isn't known to have ended.
        Open = "open",
        /// The same, and it is being stopped for one that comes after it.
        Stopping = "stopping",
        /// It was started. Whether it has ended makes no difference any more.
        Started = "started",
        /// It was never started.
        Skipped = "skipped",
        /// It was never started, because what it should start was refused.
        Refused = "refused",
    }
}

/// A cron. Instants are RFC 3339 in UTC with milliseconds; what doesn't apply is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CronView {
    /// Its id.
    pub id: CronId,
    /// Where it stands.
    pub status: SaidCronStatus,
    /// When it was made.
    pub created_at: Instant,
    /// Its cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The time zone of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The time from one occurrence to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Length>,
    /// What becomes of an occurrence while an earlier run is open.
    pub overlap: SaidOverlap,
    /// What becomes of occurrences that nobody saw in time.
    pub missed: SaidMissed,
    /// How much later than its instant an occurrence may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Length>,
    /// How many planned occurrences are started in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u32>,
    /// How many have been.
    pub started: u32,
    /// How many wait for an open run's end.
    pub waiting: u32,
    /// The next occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Instant>,
    /// When that starts, with its share of the jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_start_at: Option<Instant>,
    /// Since when it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Instant>,
    /// Since when it has had all its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Instant>,
    /// The task that each occurrence is, as it was sent. Lists leave out one that is stored apart, being large.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub task: Option<Verbatim>,
    /// The execution that each occurrence is, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub execution: Option<Verbatim>,
    /// How the ids of its runs are made.
    pub run_ids: String,
    /// Its last runs, in the order in which they came.
    pub runs: Vec<RunView>,
}

/// A run of a cron.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunView {
    /// Its occurrence: an instant of the plan, or of the trigger.
    pub at: Instant,
    /// The id of its task or execution.
    pub id: String,
    /// Whether it was triggered, out of plan.
    pub manual: bool,
    /// `starting`; `open`; `stopping`; `started`, where its end makes no difference any more; `skipped`; or
    /// `refused`.
    pub state: SaidRunState,
    /// Why it was skipped (`overlap`, `missed`, `buffer_full`, `dropped`), or the code of its refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where its task or execution stands. Lists leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// A cron.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CronAnswer {
    /// The cron as it stands now.
    pub cron: CronView,
}

/// A page of crons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CronsAnswer {
    /// The crons, in the order in which they were made.
    pub crons: Vec<CronView>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// What was triggered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TriggerAnswer {
    /// The cron as it stands now.
    pub cron: CronView,
    /// The id of the run's task or execution.
    pub run: String,
}

/// That a cron is deleted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeletedAnswer {
    /// Its id.
    pub id: CronId,
    /// Always `true`.
    pub deleted: bool,
}
