//! Answers about crons. Fields that are new to this build are ignored.

use serde::Deserialize;
use serde_json::value::RawValue;
use tickover_core::time::Timestamp;

use crate::client::{instant, present};

/// `{"cron": …}`, not yet looked into.
#[derive(Debug, Deserialize)]
pub(super) struct Single {
    cron: Box<RawValue>,
}

impl Single {
    /// The cron as it came.
    pub(super) fn json(&self) -> &str {
        self.cron.get()
    }

    /// The cron, read.
    pub(super) fn cron(&self) -> anyhow::Result<CronShown> {
        Ok(serde_json::from_str(self.cron.get())?)
    }
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    /// The crons as they came.
    pub(super) crons: Vec<Box<RawValue>>,
    /// Where the next page begins; absent on the last one.
    pub(super) cursor: Option<String>,
}

/// A run that was triggered.
#[derive(Debug, Deserialize)]
pub(super) struct Triggered {
    /// The id of its task or execution.
    pub(super) run: String,
}

/// A cron that is gone.
#[derive(Debug, Deserialize)]
pub(super) struct Deleted {
    /// Its id.
    pub(super) id: String,
}

/// A cron.
#[derive(Debug, Deserialize)]
pub(super) struct CronShown {
    /// Its id.
    pub(super) id: String,
    /// `active`, `paused` or `finished`.
    pub(super) status: String,
    /// When it was made.
    #[serde(default, deserialize_with = "instant")]
    pub(super) created_at: Option<Timestamp>,
    /// Its cron expression.
    pub(super) cron: Option<String>,
    /// The time zone of that.
    pub(super) time_zone: Option<String>,
    /// The time from one occurrence to the next.
    pub(super) every: Option<String>,
    /// What becomes of an occurrence while an earlier run is open.
    pub(super) overlap: String,
    /// What becomes of occurrences that nobody saw in time.
    pub(super) missed: String,
    /// How much later than its instant an occurrence may start.
    pub(super) jitter: Option<String>,
    /// How many planned occurrences are started in all.
    pub(super) max_runs: Option<u32>,
    /// How many have been.
    #[serde(default)]
    pub(super) started: u32,
    /// How many wait for an open run's end.
    #[serde(default)]
    pub(super) waiting: u32,
    /// The next occurrence.
    #[serde(default, deserialize_with = "instant")]
    pub(super) next_at: Option<Timestamp>,
    /// When that starts.
    #[serde(default, deserialize_with = "instant")]
    pub(super) next_start_at: Option<Timestamp>,
    /// Since when it is paused.
    #[serde(default, deserialize_with = "instant")]
    pub(super) paused_at: Option<Timestamp>,
    /// Since when it has had all its runs.
    #[serde(default, deserialize_with = "instant")]
    pub(super) finished_at: Option<Timestamp>,
    /// The task that each occurrence is.
    #[serde(default, deserialize_with = "present")]
    pub(super) task: Option<Box<RawValue>>,
    /// The execution that each occurrence is.
    #[serde(default, deserialize_with = "present")]
    pub(super) execution: Option<Box<RawValue>>,
    /// Its last runs.
    #[serde(default)]
    pub(super) runs: Vec<Run>,
}

/// A run of a cron.
#[derive(Debug, Deserialize)]
pub(super) struct Run {
    /// Its occurrence.
    pub(super) at: String,
    /// The id of its task or execution.
    pub(super) id: String,
    /// Whether it was triggered.
    #[serde(default)]
    pub(super) manual: bool,
    /// Where it stands for its cron.
    pub(super) state: String,
    /// Why it was never started.
    pub(super) reason: Option<String>,
    /// Where its task or execution stands.
    pub(super) status: Option<String>,
}
