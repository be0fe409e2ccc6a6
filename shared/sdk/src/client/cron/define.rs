//! Builds and creates a cron.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use serde::Serialize;
use tickover_core::cron::expression::CronExpression;
use tickover_core::cron::plan::{Interval, Missed, Overlap};
use tickover_core::cron::run::{IdTemplate, Target};
use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::policy::PolicyError;
use tickover_wire::request::{CronRequest, ScheduleRequest, StartRequest};
use tickover_wire::{CronText, RunCount, Verbatim, Word};

use super::CronHandle;
use crate::client::request::{payload, span, unless_zero};
use crate::client::start::queue_name;
use crate::client::{ClientError, CronDescription, ScheduleTask, StartExecution};
use crate::options::{DEFAULT_QUEUE, IntoMillis};

/// The default time zone of an expression.
const TIME_ZONE_DEFAULT: &str = "UTC";

/// The task or execution that a cron starts at each occurrence: a [`StartExecution`] or a [`ScheduleTask`] that isn't
/// awaited. It must have no id, instant, idempotency key or `reject_duplicate`: each run has an id and an instant of
/// its own.
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
            refuse("run_at", task.run_at.is_some())?;
            Ok(Work::Task(Box::new(task)))
        }))
    }
}

impl<O> From<StartExecution<O>> for CronTarget {
    fn from(start: StartExecution<O>) -> Self {
        Self(start.finished().and_then(|start| {
            refuse("id", start.id.is_some())?;
            refuse("reject_duplicate", start.policy.is_some())?;
            Ok(Work::Execution(Box::new(start)))
        }))
    }
}

fn refuse(field: &str, is_set: bool) -> Result<(), ClientError> {
    let problem = "not allowed here: each run has an id and an instant of its own";
    if is_set { Err(ClientError::invalid(field, problem)) } else { Ok(()) }
}

/// A cron that is created when it is awaited. It needs [`cron`](Self::cron) or [`every`](Self::every).
///
/// If an argument is invalid, the await returns the error.
#[must_use = "nothing is created before it is awaited"]
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

    /// Sets the cron expression: minute, hour, day of month, month and day of week, such as `"0 9 * * MON-FRI"`.
    pub fn cron(self, expression: impl Into<String>) -> Self {
        Self { cron: Some(expression.into()), ..self }
    }

    /// Sets the time zone of the expression: an IANA name such as `"Europe/Berlin"`; UTC by default.
    pub fn time_zone(self, name: impl Into<String>) -> Self {
        Self { time_zone: Some(name.into()), ..self }
    }

    /// Sets the time from one occurrence to the next, instead of an expression: whole seconds, at most a year.
    pub fn every(self, interval: impl IntoMillis) -> Self {
        Self { every: Some(span("every", interval, ZeroRule::Reject)), ..self }
    }

    /// Sets what happens to an occurrence while an earlier run is open. By default it is skipped.
    pub fn overlap(self, overlap: Overlap) -> Self {
        Self { overlap, ..self }
    }

    /// Sets what happens to occurrences that passed while no tick ran. By default they are skipped.
    pub fn missed(self, missed: Missed) -> Self {
        Self { missed, ..self }
    }

    /// Sets the longest random delay of an occurrence's start, uniformly distributed. An occurrence always starts
    /// before the next one.
    pub fn jitter(self, jitter: impl IntoMillis) -> Self {
        Self { jitter: span("jitter", jitter, ZeroRule::Allow), ..self }
    }

    /// Sets how many planned occurrences start in all, at least one. After them the cron is finished.
    pub fn max_runs(self, runs: u32) -> Self {
        Self { max_runs: Some(runs), ..self }
    }

    /// Sets whether it is paused. By default a new cron isn't, and a replaced cron stays as it is.
    pub fn paused(self, paused: bool) -> Self {
        Self { paused: Some(paused), ..self }
    }

    /// Sets the template of the runs' ids: a text in which the instant replaces `{occurrence}`, such as
    /// `"report-{occurrence}"`. The default is the cron's id, a hyphen, and the instant.
    pub fn run_ids(self, template: impl Into<String>) -> Self {
        Self { run_ids: Some(template.into()), ..self }
    }

    /// Checks the expression or the interval.
    fn check(&self, every: Option<Millis>) -> Result<(), ClientError> {
        match (&self.cron, every) {
            (Some(cron), None) => {
                let zone = self.time_zone.as_deref().unwrap_or(TIME_ZONE_DEFAULT);
                CronExpression::parse(cron, zone).map(|_| ()).map_err(|error| refused(&error))
            }
            (None, Some(_)) if self.time_zone.is_some() => {
                Err(ClientError::invalid("time_zone", "expected cron beside it"))
            }
            (None, Some(every)) => Interval::new(every).map(|_| ()).map_err(|error| refused(&error)),
            (Some(_), Some(_)) => Err(ClientError::invalid("every", "expected only one of cron and every")),
            (None, None) => Err(ClientError::invalid("cron", "required, or every instead")),
        }
    }

    fn finished(self) -> Result<CronRequest, ClientError> {
        let every = self.every.clone().transpose()?;
        self.check(every)?;
        if self.max_runs == Some(0) {
            return Err(ClientError::invalid("max_runs", "expected a whole number above zero"));
        }
        let (task, execution) = match self.work.0? {
            Work::Task(task) => {
                let target = Target::Task {
                    queue: task.queue.clone().map_or_else(|| queue_name(DEFAULT_QUEUE), Ok)?,
                    kind: task.kind.clone(),
                };
                (Some(work("task", &target, self.run_ids.as_deref(), &task)?), None)
            }
            Work::Execution(start) => {
                let target = Target::Execution { workflow: start.workflow.clone() };
                (None, Some(work("execution", &target, self.run_ids.as_deref(), &start)?))
            }
        };
        Ok(CronRequest {
            id: Some(self.handle.id),
            cron: self.cron.map(CronText),
            time_zone: self.time_zone,
            every: every.map(Into::into),
            task,
            execution,
            overlap: Some(Word(self.overlap)),
            missed: Some(Word(self.missed)),
            jitter: unless_zero(self.jitter?),
            max_runs: self.max_runs.map(|runs| RunCount(usize::try_from(runs).unwrap_or(RunCount::MOST))),
            paused: self.paused,
        })
    }
}

/// A request with the template of the runs' ids as its id.
#[derive(Serialize)]
struct Templated<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(flatten)]
    request: &'a T,
}

fn work(
    field: &str,
    target: &Target,
    id: Option<&str>,
    request: &impl Serialize,
) -> Result<Verbatim, ClientError> {
    let template = id.map(|text| IdTemplate::parse(text, target)).transpose();
    template.map_err(|error| ClientError::invalid("run_ids", expected(&error)))?;
    payload(field, &Templated { id, request })
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
            let (id, request) = (self.handle.id.clone(), self.finished()?);
            let made = if replace {
                client.api.replace_cron(&id, &request).await?
            } else {
                client.api.create_cron(&request).await?
            };
            Ok(made.cron)
        })
    }
}

impl fmt::Debug for DefineCron {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DefineCron").field("handle", &self.handle).finish_non_exhaustive()
    }
}
