//! The JSON of the HTTP API, as much of it as a client needs. Fields that are new to this build are ignored.

mod task;

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tickover_core::cron::plan::When;
use tickover_core::duration::Millis;
use tickover_core::execution::{DeadlineKind, ExecutionStatus};
use tickover_core::id::{CronId, ExecutionId};
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;
use tickover_service::crons::{CronRequest, CronWork};

use crate::client::calls::NewEvent;
use crate::client::json;
use crate::client::outcome::cause;
use crate::client::request::raw;
use crate::client::{ClientError, CronDescription, Description, Ended, Event, Outcome, TimelineEntry};
use crate::error::Failure;
pub(super) use task::{OneTask, TaskPage, TaskView};

/// An event.
#[derive(Serialize)]
pub(super) struct SendEventBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<&'a str>,
}

pub(super) fn send_event(event: &NewEvent) -> SendEventBody<'_> {
    let event_id = event.id.as_ref().map(tickover_core::id::EventId::as_str);
    SendEventBody { payload: raw(event.payload.as_ref()), event_id }
}

/// A cron.
#[derive(Serialize)]
pub(super) struct CronBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a CronId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution: Option<&'a RawValue>,
    overlap: &'static str,
    missed: &'static str,
    jitter_ms: Millis,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_runs: Option<NonZeroU32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
}

pub(super) fn cron(request: &CronRequest) -> CronBody<'_> {
    let (cron, every) = match &request.plan.when {
        When::Cron(cron) => (Some(cron), None),
        When::Every(interval) => (None, Some(interval.span())),
    };
    let (task, execution) = match &request.work {
        CronWork::Task(_, given) => (Some(given), None),
        CronWork::Execution(_, given) => (None, Some(given)),
    };
    CronBody {
        id: request.id.as_ref(),
        cron: cron.map(|cron| cron.expression()),
        time_zone: cron.map(|cron| cron.time_zone()),
        every_ms: every,
        task: raw(task),
        execution: raw(execution),
        overlap: request.plan.overlap.as_str(),
        missed: request.plan.missed.as_str(),
        jitter_ms: request.plan.jitter,
        max_runs: request.plan.max_runs,
        paused: request.paused,
    }
}

/// One execution.
#[derive(Deserialize)]
pub(super) struct One {
    pub(super) execution: View,
}

/// A page of executions.
#[derive(Deserialize)]
pub(super) struct Page {
    pub(super) executions: Vec<View>,
    pub(super) cursor: Option<String>,
}

/// How an event was taken.
#[derive(Deserialize)]
pub(super) struct Taken {
    #[serde(default)]
    pub(super) duplicate: bool,
    pub(super) pending: u32,
}

/// A page of the events that wait.
#[derive(Deserialize)]
pub(super) struct Events {
    pub(super) events: Vec<Waiting>,
    pub(super) cursor: Option<String>,
}

/// An event that waits.
#[derive(Deserialize)]
pub(super) struct Waiting {
    name: String,
    event_id: Option<String>,
    #[serde(default, deserialize_with = "json::payload")]
    payload: Option<Json>,
    #[serde(deserialize_with = "json::instant")]
    offered_at: Timestamp,
}

impl From<Waiting> for Event {
    fn from(event: Waiting) -> Self {
        let Waiting { name, event_id, payload, offered_at } = event;
        Self { name, id: event_id, payload, offered_at }
    }
}

/// How many events were thrown away.
#[derive(Deserialize)]
pub(super) struct EventsCleared {
    pub(super) drained: u32,
}

/// What became of the wish to end it.
#[derive(Deserialize)]
pub(super) struct Cancelled {
    pub(super) outcome: CancelOutcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CancelOutcome {
    Cancelled,
    Requested,
    AlreadyFinished,
}

impl From<CancelOutcome> for Ended {
    fn from(outcome: CancelOutcome) -> Self {
        match outcome {
            CancelOutcome::Cancelled => Self::Now,
            CancelOutcome::Requested => Self::Requested,
            CancelOutcome::AlreadyFinished => Self::Before,
        }
    }
}

/// What became of a pause or its end.
#[derive(Deserialize)]
pub(super) struct Changed {
    pub(super) changed: bool,
}

/// What happened.
#[derive(Deserialize)]
pub(super) struct Timeline {
    pub(super) entries: Vec<TimelineEntry>,
}

/// One cron.
#[derive(Deserialize)]
pub(super) struct OneCron {
    pub(super) schedule: CronDescription,
}

/// What was triggered.
#[derive(Deserialize)]
pub(super) struct Triggered {
    pub(super) run: String,
}

/// What errors look like (RFC 9457).
#[derive(Deserialize)]
pub(super) struct Problem {
    pub(super) code: String,
    pub(super) detail: Option<String>,
    pub(super) title: Option<String>,
}

/// An execution.
#[derive(Deserialize)]
pub(super) struct View {
    id: ExecutionId,
    workflow: String,
    queue: String,
    status: String,
    run: u32,
    #[serde(deserialize_with = "json::instant")]
    created_at: Timestamp,
    #[serde(deserialize_with = "json::instant")]
    run_started_at: Timestamp,
    #[serde(default, deserialize_with = "json::some_instant")]
    ended_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "json::some_instant")]
    deadline_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "json::some_instant")]
    run_deadline_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "json::some_instant")]
    wakes_at: Option<Timestamp>,
    #[serde(default)]
    open_steps: u32,
    #[serde(default)]
    pending_events: u32,
    #[serde(default)]
    cancel_requested: bool,
    stuck: Option<Failure>,
    timeout_kind: Option<DeadlineKind>,
    error: Option<Failure>,
    cause: Option<CauseView>,
    #[serde(default, deserialize_with = "json::payload")]
    input: Option<Json>,
    #[serde(default, deserialize_with = "json::payload")]
    output: Option<Json>,
    #[serde(default, deserialize_with = "json::payload")]
    labels: Option<Json>,
    #[serde(default, deserialize_with = "json::payload")]
    memo: Option<Json>,
}

/// What an end without a result goes back to.
#[derive(Default, Deserialize)]
struct CauseView {
    #[serde(default)]
    category: String,
    step: Option<String>,
    #[serde(default)]
    retries_exhausted: bool,
}

impl View {
    pub(super) fn describe(self) -> Result<Description, ClientError> {
        let status = ExecutionStatus::parse(&self.status).ok_or_else(|| unknown("status", &self.status))?;
        let cause_view = self.cause.unwrap_or_default();
        let outcome = match status {
            ExecutionStatus::Pending
            | ExecutionStatus::Running
            | ExecutionStatus::Waiting
            | ExecutionStatus::Paused => None,
            ExecutionStatus::Completed => Some(Outcome::Completed(self.output)),
            ExecutionStatus::Failed => {
                let error = self.error.unwrap_or_else(|| Failure::new("failed", ""));
                Some(Outcome::Failed(cause(error, cause_view.step, cause_view.retries_exhausted)))
            }
            ExecutionStatus::TimedOut => {
                Some(Outcome::TimedOut(self.timeout_kind.unwrap_or(DeadlineKind::Execution)))
            }
            ExecutionStatus::Cancelled => {
                Some(Outcome::Cancelled { terminated: cause_view.category == "terminated" })
            }
        };
        Ok(Description {
            id: self.id,
            workflow: self.workflow,
            queue: self.queue,
            status,
            run: self.run,
            created_at: self.created_at,
            run_started_at: self.run_started_at,
            ended_at: self.ended_at,
            deadline_at: self.deadline_at,
            run_deadline_at: self.run_deadline_at,
            wakes_at: self.wakes_at,
            open_steps: self.open_steps,
            pending_events: self.pending_events,
            cancel_requested: self.cancel_requested,
            stuck: self.stuck,
            outcome,
            input: self.input,
            labels: self.labels,
            memo: self.memo,
        })
    }
}

/// A word that this build doesn't know.
fn unknown(what: &str, word: &str) -> ClientError {
    ClientError::Unreadable { reason: format!("an unknown {what}: {word}") }
}
