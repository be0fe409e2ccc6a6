//! A cron as callers see it.

use serde::Serialize;
use tickover_core::cron::plan::When;
use tickover_core::cron::run::{IdTemplate, RunState, Target};
use tickover_core::cron::{Cron, State};
use tickover_core::time::Timestamp;
use tickover_service::crons::{DescribedCron, DescribedRun};
use utoipa::ToSchema;

use super::verbatim::Verbatim;

/// A cron. Instants are RFC 3339 in UTC with milliseconds; what doesn't apply is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CronView {
    /// Its id.
    pub id: String,
    /// `active`, `paused` or `finished`.
    #[schema(value_type = String)]
    pub status: &'static str,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Its cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cron: Option<String>,
    /// The time zone of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub time_zone: Option<&'static str>,
    /// The time from one occurrence to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub every: Option<String>,
    /// What becomes of an occurrence while an earlier run is open.
    #[schema(value_type = String)]
    pub overlap: &'static str,
    /// What becomes of occurrences that nobody saw in time.
    #[schema(value_type = String)]
    pub missed: &'static str,
    /// How much later than its instant an occurrence may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub jitter: Option<String>,
    /// How many planned occurrences are started in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_runs: Option<u32>,
    /// How many have been.
    pub started: u32,
    /// How many wait for an open run's end.
    pub waiting: u32,
    /// The next occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub next_at: Option<String>,
    /// When that starts, with its share of the jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub next_start_at: Option<String>,
    /// Since when it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub paused_at: Option<String>,
    /// Since when it has had all its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub finished_at: Option<String>,
    /// The task that each occurrence is, as it was sent. Lists leave out one that is stored apart, being large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub task: Option<Verbatim>,
    /// The execution that each occurrence is, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub execution: Option<Verbatim>,
    /// How the ids of its runs are made.
    pub run_ids: String,
    /// Its last runs, in the order in which they came.
    pub runs: Vec<RunView>,
}

/// A run of a cron.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunView {
    /// Its occurrence: an instant of the plan, or of the trigger.
    #[schema(format = DateTime)]
    pub at: String,
    /// The id of its task or execution.
    pub id: String,
    /// Whether it was triggered, out of plan.
    pub manual: bool,
    /// `starting`; `open`; `stopping`; `started`, where its end makes no difference any more; `skipped`; or
    /// `refused`.
    #[schema(value_type = String)]
    pub state: &'static str,
    /// Why it was skipped (`overlap`, `missed`, `buffer_full`, `dropped`), or the code of its refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// Where its task or execution stands. Lists leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub status: Option<&'static str>,
}

/// A cron.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CronAnswer {
    /// The cron as it stands now.
    pub cron: CronView,
}

/// A page of crons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CronsAnswer {
    /// The crons, in the order in which they were made.
    pub crons: Vec<CronView>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cursor: Option<String>,
}

/// What was triggered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TriggerAnswer {
    /// The cron as it stands now.
    pub cron: CronView,
    /// The id of the run's task or execution.
    pub run: String,
}

/// That a cron is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeletedAnswer {
    /// Its id.
    pub id: String,
    /// Always `true`.
    pub deleted: bool,
}

impl From<DescribedCron> for CronView {
    fn from(described: DescribedCron) -> Self {
        let DescribedCron { record, given, runs } = described;
        let plan = &record.plan;
        let (cron, time_zone, every) = match &plan.when {
            When::Cron(cron) => (Some(cron.expression().to_owned()), Some(cron.time_zone()), None),
            When::Every(interval) => (None, None, Some(interval.span().to_string())),
        };
        let (paused_at, finished_at) = ends(&record);
        let given = given.map(Verbatim);
        let (task, execution) = match &record.target {
            Target::Task { .. } => (given, None),
            Target::Execution { .. } => (None, given),
        };
        let text = |instant: Option<Timestamp>| instant.map(Timestamp::to_rfc3339);
        let template = record.template.clone().unwrap_or_else(|| IdTemplate::of(&record.id));
        Self {
            id: record.id.to_string(),
            status: record.state.as_str(),
            created_at: record.created_at.to_rfc3339(),
            cron,
            time_zone,
            every,
            overlap: plan.overlap.as_str(),
            missed: plan.missed.as_str(),
            jitter: (!plan.jitter.is_zero()).then(|| plan.jitter.to_string()),
            max_runs: plan.max_runs.map(std::num::NonZeroU32::get),
            started: record.started,
            waiting: record.waiting.map_or(0, |waiting| waiting.count),
            next_at: text(record.next().map(|next| next.at)),
            next_start_at: text(record.next().map(|next| next.starts_at)),
            paused_at: text(paused_at),
            finished_at: text(finished_at),
            task,
            execution,
            run_ids: template.as_str().to_owned(),
            runs: runs.into_iter().map(RunView::from).collect(),
        }
    }
}

/// Since when it is paused or finished.
fn ends(record: &Cron) -> (Option<Timestamp>, Option<Timestamp>) {
    match &record.state {
        State::Paused { since } => (Some(*since), None),
        State::Finished { at } => (None, Some(*at)),
        State::Active(_) | State::Deleted { .. } => (None, None),
    }
}

impl From<DescribedRun> for RunView {
    fn from(run: DescribedRun) -> Self {
        let (state, reason) = match run.state {
            RunState::Starting => ("starting", None),
            RunState::Open => ("open", None),
            RunState::Stopping(_) => ("stopping", None),
            RunState::Done => ("started", None),
            RunState::Skipped(why) => ("skipped", Some(why.as_str().to_owned())),
            RunState::Refused(code) => ("refused", Some(code)),
        };
        Self {
            at: run.occurrence.at.to_rfc3339(),
            id: run.id,
            manual: run.occurrence.manual,
            state,
            reason,
            status: run.status,
        }
    }
}
