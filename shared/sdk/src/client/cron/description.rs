//! A cron as a client sees it.

use serde::Deserialize;
use tickover_core::cron::plan::{Missed, Overlap, When};
use tickover_core::cron::run::{self, IdTemplate, Target};
use tickover_core::cron::{Cron, State};
use tickover_core::duration::Millis;
use tickover_core::id::CronId;
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;
use tickover_service::crons::{DescribedCron, DescribedRun};

use crate::client::json;

/// A cron as it stood when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CronDescription {
    /// Its id.
    pub id: CronId,
    /// Where it stands.
    pub status: CronStatus,
    /// When it was made.
    #[serde(deserialize_with = "json::instant")]
    pub created_at: Timestamp,
    /// Its cron expression.
    pub cron: Option<String>,
    /// The time zone of that.
    pub time_zone: Option<String>,
    /// The time from one occurrence to the next, where there is no expression.
    #[serde(default, deserialize_with = "json::some_span")]
    pub every: Option<Millis>,
    /// What becomes of an occurrence while an earlier run is open.
    #[serde(deserialize_with = "json::overlap")]
    pub overlap: Overlap,
    /// What becomes of occurrences that nobody saw in time.
    #[serde(deserialize_with = "json::missed")]
    pub missed: Missed,
    /// How much later than its instant an occurrence may start.
    #[serde(default, deserialize_with = "json::some_span")]
    pub jitter: Option<Millis>,
    /// How many planned occurrences are started in all.
    pub max_runs: Option<u32>,
    /// How many have been.
    pub started: u32,
    /// How many wait for an open run's end.
    pub waiting: u32,
    /// The next occurrence.
    #[serde(default, deserialize_with = "json::some_instant")]
    pub next_at: Option<Timestamp>,
    /// When that starts, with its share of the jitter.
    #[serde(default, deserialize_with = "json::some_instant")]
    pub next_start_at: Option<Timestamp>,
    /// Since when it is paused.
    #[serde(default, deserialize_with = "json::some_instant")]
    pub paused_at: Option<Timestamp>,
    /// Since when it has had all its runs.
    #[serde(default, deserialize_with = "json::some_instant")]
    pub finished_at: Option<Timestamp>,
    /// The task that each occurrence is, as the HTTP API takes it. Only [`describe`](super::CronHandle::describe)
    /// has one that is large.
    #[serde(default, deserialize_with = "json::payload")]
    pub task: Option<Json>,
    /// The execution that each occurrence is, likewise.
    #[serde(default, deserialize_with = "json::payload")]
    pub execution: Option<Json>,
    /// How the ids of its runs are made: `{occurrence}` stands for the instant.
    pub run_ids: String,
    /// Its last runs, in the order in which they came.
    pub runs: Vec<CronRun>,
}

/// Where a cron stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CronStatus {
    /// Its next occurrence comes by itself.
    Active,
    /// Nothing comes by plan until it is resumed.
    Paused,
    /// It has had all its runs.
    Finished,
    /// It is gone.
    Deleted,
}

/// A run of a cron.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CronRun {
    /// Its occurrence: an instant of the plan, or of the trigger.
    #[serde(deserialize_with = "json::instant")]
    pub at: Timestamp,
    /// The id of its task or execution.
    pub id: String,
    /// Whether it was triggered, out of plan.
    pub manual: bool,
    /// What its cron knows of it.
    pub state: RunState,
    /// Why it was skipped (`overlap`, `missed`, `buffer_full`, `dropped`), or the code of its refusal.
    pub reason: Option<String>,
    /// The status of its task or execution, such as `running`. Only [`describe`](super::CronHandle::describe)
    /// has it.
    pub status: Option<String>,
}

/// What a cron knows of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It is about to be started.
    Starting,
    /// It was started, and isn't known to have ended.
    Open,
    /// The same, and it is being stopped for one that comes after it.
    Stopping,
    /// It was started; whether it has ended makes no difference any more.
    Started,
    /// It was never started.
    Skipped,
    /// It was never started, because what it should start was refused.
    Refused,
}

impl From<DescribedCron> for CronDescription {
    fn from(described: DescribedCron) -> Self {
        let DescribedCron { record, given, runs } = described;
        let (status, paused_at, finished_at) = standing(&record);
        let (cron, time_zone, every) = match &record.plan.when {
            When::Cron(cron) => (Some(cron.expression().to_owned()), Some(cron.time_zone().to_owned()), None),
            When::Every(interval) => (None, None, Some(interval.span())),
        };
        let (task, execution) = match &record.target {
            Target::Task { .. } => (given, None),
            Target::Execution { .. } => (None, given),
        };
        let next = record.next();
        let template = record.template.unwrap_or_else(|| IdTemplate::of(&record.id));
        Self {
            id: record.id,
            status,
            created_at: record.created_at,
            cron,
            time_zone,
            every,
            overlap: record.plan.overlap,
            missed: record.plan.missed,
            jitter: Some(record.plan.jitter).filter(|jitter| !jitter.is_zero()),
            max_runs: record.plan.max_runs.map(std::num::NonZeroU32::get),
            started: record.started,
            waiting: record.waiting.map_or(0, |waiting| waiting.count),
            next_at: next.map(|next| next.at),
            next_start_at: next.map(|next| next.starts_at),
            paused_at,
            finished_at,
            task,
            execution,
            run_ids: template.as_str().to_owned(),
            runs: runs.into_iter().map(CronRun::from).collect(),
        }
    }
}

/// Its status, and since when it is paused or finished.
const fn standing(record: &Cron) -> (CronStatus, Option<Timestamp>, Option<Timestamp>) {
    match &record.state {
        State::Active(_) => (CronStatus::Active, None, None),
        State::Paused { since } => (CronStatus::Paused, Some(*since), None),
        State::Finished { at } => (CronStatus::Finished, None, Some(*at)),
        State::Deleted { .. } => (CronStatus::Deleted, None, None),
    }
}

impl From<DescribedRun> for CronRun {
    fn from(run: DescribedRun) -> Self {
        let (state, reason) = match run.state {
            run::RunState::Starting => (RunState::Starting, None),
            run::RunState::Open => (RunState::Open, None),
            run::RunState::Stopping(_) => (RunState::Stopping, None),
            run::RunState::Done => (RunState::Started, None),
            run::RunState::Skipped(why) => (RunState::Skipped, Some(why.as_str().to_owned())),
            run::RunState::Refused(code) => (RunState::Refused, Some(code)),
        };
        let status = run.status.map(str::to_owned);
        Self { at: run.occurrence.at, id: run.id, manual: run.occurrence.manual, state, reason, status }
    }
}
