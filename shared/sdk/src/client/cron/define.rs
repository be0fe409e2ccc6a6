//! A cron, put together and then made.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::num::NonZeroU32;
use std::pin::Pin;

use tickover_core::cron::expression::CronExpression;
use tickover_core::cron::plan::{Interval, Missed, Overlap, Plan, When};
use tickover_core::cron::run::{IdTemplate, Target};
use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::execution::command::StartPolicy;
use tickover_core::policy::PolicyError;
use tickover_core::task::command::Start;
use tickover_service::crons::{CronRequest, CronWork};
use tickover_service::executions::StartRequest;
use tickover_service::schedule::ScheduleRequest;

use super::{CronDescription, CronHandle};
use crate::client::request::{self, span, written};
use crate::client::{ClientError, ScheduleTask, StartExecution};
use crate::options::IntoMillis;

/// The time zone of an expression that comes without one.
const TIME_ZONE_DEFAULT: &str = "UTC";

/// What a cron starts each time: made of a [`StartExecution`] or a [`ScheduleTask`], which isn't awaited
/// then. It has no id, instant, idempotency key or `reject_duplicate`: each run has an id and an instant of its own.
#[derive(Clone, Debug)]
pub struct CronTarget(Result<Work, ClientError>);

#[derive(Clone, Debug)]
enum Work {
    Task(Box<ScheduleRequest>),
    Execution(Box<StartRequest>),
}

impl<O> From<ScheduleTask<O>> for CronTarget {
    fn from(task: ScheduleTask<O>) -> Self {
        Self(task.finished().and_then(|task| {
            refuse("id", task.id.is_some())?;
            refuse("idempotency_key", task.idempotency_key.is_some())?;
            refuse("run_at", matches!(task.start, Start::At(_)))?;
            Ok(Work::Task(Box::new(task)))
        }))
    }
}

impl<O> From<StartExecution<O>> for CronTarget {
    fn from(start: StartExecution<O>) -> Self {
        Self(start.finished().and_then(|start| {
            refuse("id", start.id.is_some())?;
            refuse("reject_duplicate", start.policy == StartPolicy::Reject)?;
            Ok(Work::Execution(Box::new(start)))
        }))
    }
}

fn refuse(field: &str, is_there: bool) -> Result<(), ClientError> {
    let problem = "not allowed here: each run has an id and an instant of its own";
    if is_there { Err(ClientError::invalid(field, problem)) } else { Ok(()) }
}

/// A cron that is made when it is awaited. It needs [`cron`](Self::cron) or [`every`](Self::every).
///
/// Whatever can't be used among what it is given comes out as the error of that await.
#[must_use = "nothing is made before it is awaited"]
pub struct DefineCron {
    handle: CronHandle,
    work: CronTarget,
    replace: bool,
    cron: Option<String>,
    time_zone: Option<String>,
    every: Option<Result<Millis, ClientError>>,
    overlap: Overlap,
    missed: Missed,
    jitter: Result<Millis, ClientError>,
    max_runs: Option<u32>,
    paused: Option<bool>,
    run_ids: Option<String>,
}

impl DefineCron {
    pub(super) const fn new(handle: CronHandle, work: CronTarget, replace: bool) -> Self {
        Self {
            handle,
            work,
            replace,
            cron: None,
            time_zone: None,
            every: None,
            overlap: Overlap::Skip,
            missed: Missed::Skip,
            jitter: Ok(Millis::ZERO),
            max_runs: None,
            paused: None,
            run_ids: None,
        }
    }

    /// When: minute, hour, day of month, month and day of week, such as `"0 9 * * MON-FRI"`.
    pub fn cron(self, expression: impl Into<String>) -> Self {
        Self { cron: Some(expression.into()), ..self }
    }

    /// By whose clocks the expression is read: an IANA name such as `"Europe/Berlin"`; UTC without it.
    pub fn time_zone(self, name: impl Into<String>) -> Self {
        Self { time_zone: Some(name.into()), ..self }
    }

    /// The time from one occurrence to the next, instead of an expression: whole seconds, at most a year.
    pub fn every(self, interval: impl IntoMillis) -> Self {
        Self { every: Some(span("every", interval, ZeroRule::Reject)), ..self }
    }

    /// What becomes of an occurrence while an earlier run is open: it is skipped, by default.
    pub fn overlap(self, overlap: Overlap) -> Self {
        Self { overlap, ..self }
    }

    /// What becomes of occurrences that nobody saw in time: they are skipped, by default.
    pub fn missed(self, missed: Missed) -> Self {
        Self { missed, ..self }
    }

    /// How much later than its instant an occurrence may start, spread evenly; never as late as the next one.
    pub fn jitter(self, jitter: impl IntoMillis) -> Self {
        Self { jitter: span("jitter", jitter, ZeroRule::Allow), ..self }
    }

    /// How many planned occurrences are started in all, at least one; then it is finished.
    pub fn max_runs(self, runs: u32) -> Self {
        Self { max_runs: Some(runs), ..self }
    }

    /// Whether it is paused. If nothing is said, a new one isn't, and one that is replaced stays as it is.
    pub fn paused(self, paused: bool) -> Self {
        Self { paused: Some(paused), ..self }
    }

    /// How the ids of its runs are made: a text in which `{occurrence}` stands for the instant, such as
    /// `"report-{occurrence}"`. Without it, that is the cron's id, a hyphen, and the instant.
    pub fn run_ids(self, template: impl Into<String>) -> Self {
        Self { run_ids: Some(template.into()), ..self }
    }

    fn plan(&self) -> Result<Plan, ClientError> {
        let when = match (&self.cron, self.every.clone().transpose()?) {
            (Some(cron), None) => {
                let zone = self.time_zone.as_deref().unwrap_or(TIME_ZONE_DEFAULT);
                When::Cron(Box::new(CronExpression::parse(cron, zone).map_err(|error| refused(&error))?))
            }
            (None, Some(_)) if self.time_zone.is_some() => {
                return Err(ClientError::invalid("time_zone", "expected cron beside it"));
            }
            (None, Some(every)) => When::Every(Interval::new(every).map_err(|error| refused(&error))?),
            (Some(_), Some(_)) => {
                return Err(ClientError::invalid("every", "expected only one of cron and every"));
            }
            (None, None) => return Err(ClientError::invalid("cron", "required, or every instead")),
        };
        let max_runs = self.max_runs.map(|runs| {
            let above_zero = || ClientError::invalid("max_runs", "expected a whole number above zero");
            NonZeroU32::new(runs).ok_or_else(above_zero)
        });
        Ok(Plan {
            when,
            overlap: self.overlap,
            missed: self.missed,
            jitter: self.jitter.clone()?,
            max_runs: max_runs.transpose()?,
        })
    }

    fn finished(self) -> Result<CronRequest, ClientError> {
        let plan = self.plan()?;
        let template = |target: &Target| {
            let template = self.run_ids.as_deref().map(|text| IdTemplate::parse(text, target));
            template.transpose().map_err(|error| ClientError::invalid("run_ids", expected(&error)))
        };
        // What is kept has the ids' template in the place of the id.
        let id = self.run_ids.as_deref();
        let (work, template) = match self.work.0? {
            Work::Task(task) => {
                let target = Target::Task { queue: task.queue.clone(), kind: task.kind.clone() };
                let mut given = request::task(&task);
                given.id = id;
                let given = written("task", &given)?;
                (CronWork::Task(task, given), template(&target)?)
            }
            Work::Execution(start) => {
                let target = Target::Execution { workflow: start.workflow.clone() };
                let mut given = request::start(&start);
                given.id = id;
                let given = written("execution", &given)?;
                (CronWork::Execution(start, given), template(&target)?)
            }
        };
        Ok(CronRequest { id: Some(self.handle.id), work, template, plan, paused: self.paused })
    }
}

fn expected(error: &PolicyError) -> String {
    format!("expected {}, found `{}`", error.expected, error.found)
}

fn refused(error: &PolicyError) -> ClientError {
    ClientError::invalid(&error.path, expected(error))
}

impl IntoFuture for DefineCron {
    type Output = Result<CronDescription, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (client, replace) = (self.handle.client.clone(), self.replace);
            client.calls.define(self.finished()?, replace).await
        })
    }
}

impl fmt::Debug for DefineCron {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DefineCron").field("handle", &self.handle).finish_non_exhaustive()
    }
}
