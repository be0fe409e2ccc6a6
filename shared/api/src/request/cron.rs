//! Requests for crons.

use std::num::NonZeroU32;

use serde_json::value::RawValue;
use tickover_core::cron::expression::CronExpression;
use tickover_core::cron::plan::{Interval, Plan, When};
use tickover_core::cron::run::{IdTemplate, Target};
use tickover_core::error::Reject;
use tickover_core::id::CronId;
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;
use tickover_service::crons::{CronRequest, CronWork};
use tickover_wire::request::{self as wire, contradiction};
use tickover_wire::{CronText, RunCount, Verbatim, Word, read};

use super::execution::start;
use super::task::task;
use crate::name::cron_id;

/// The time zone of an expression without one.
const TIME_ZONE_DEFAULT: &str = "UTC";

/// The service's request. An id in the path, if there is one, is the cron's id.
pub(crate) fn cron(
    given: wire::CronRequest,
    path: Option<&str>,
    now: Timestamp,
) -> Result<CronRequest, Reject> {
    let (work, template) = work(given.task.as_ref(), given.execution.as_ref(), now)?;
    let plan = Plan {
        when: when(&given)?,
        overlap: given.overlap.map(|Word(overlap)| overlap).unwrap_or_default(),
        missed: given.missed.map(|Word(missed)| missed).unwrap_or_default(),
        jitter: given.jitter.map(Into::into).unwrap_or_default(),
        max_runs: given.max_runs.and_then(|RunCount(runs)| NonZeroU32::new(u32::try_from(runs).ok()?)),
    };
    Ok(CronRequest { id: id(given.id, path)?, work, template, plan, paused: given.paused })
}

fn id(given: Option<CronId>, path: Option<&str>) -> Result<Option<CronId>, Reject> {
    let Some(path) = path else { return Ok(given) };
    let id = cron_id(path)?;
    if given.is_some_and(|given| given != id) {
        return Err(Reject::field("id", "expected the id of the path, or none"));
    }
    Ok(Some(id))
}

fn when(given: &wire::CronRequest) -> Result<When, Reject> {
    match (&given.cron, given.every) {
        (Some(CronText(cron)), None) => {
            let zone = given.time_zone.as_deref().unwrap_or(TIME_ZONE_DEFAULT);
            Ok(When::Cron(Box::new(CronExpression::parse(cron, zone)?)))
        }
        (None, Some(_)) if given.time_zone.is_some() => {
            Err(Reject::field("time_zone", "expected cron beside it: intervals have no time zone"))
        }
        (None, Some(every)) => Interval::new(every.into()).map(When::Every).map_err(|error| {
            let error: Reject = error.into();
            error.of_field("every")
        }),
        (Some(_), Some(_)) => Err(contradiction("every", "cron")),
        (None, None) => Err(Reject::field("cron", "required; expected a cron expression, or every instead")),
    }
}

fn work(
    of_task: Option<&Verbatim>,
    of_execution: Option<&Verbatim>,
    now: Timestamp,
) -> Result<(CronWork, Option<IdTemplate>), Reject> {
    match (of_task, of_execution) {
        (Some(Verbatim(text)), None) => {
            let (given, id) = of_runs::<wire::ScheduleRequest>("task", text)?;
            reject_field("task.idempotency_key", given.idempotency_key.is_some())?;
            reject_field("task.run_at", given.run_at.is_some())?;
            let request = task(given, now).map_err(|refused| refused.under("task"))?;
            let target = Target::Task { queue: request.queue.clone(), kind: request.kind.clone() };
            let template = template(id.as_deref(), &target).map_err(|refused| refused.under("task"))?;
            Ok((CronWork::Task(Box::new(request), text.clone()), template))
        }
        (None, Some(Verbatim(text))) => {
            let (given, id) = of_runs::<wire::StartRequest>("execution", text)?;
            reject_field("execution.policy", given.policy.is_some())?;
            reject_field("execution.event", given.event.is_some())?;
            let request = start(given).map_err(|refused| refused.under("execution"))?;
            let target = Target::Execution { workflow: request.workflow.clone() };
            let template = template(id.as_deref(), &target).map_err(|refused| refused.under("execution"))?;
            Ok((CronWork::Execution(Box::new(request), text.clone()), template))
        }
        (Some(_), Some(_)) => Err(contradiction("execution", "task")),
        (None, None) => {
            Err(Reject::field("task", "required; expected a request for a task, or execution instead"))
        }
    }
}

/// A request whose `id` is a template: each run has its own id.
fn of_runs<T: serde::de::DeserializeOwned>(field: &str, text: &Json) -> Result<(T, Option<String>), Reject> {
    let raw: &RawValue = serde_json::from_str(text.as_str())
        .map_err(|error| Reject::field(field, format_args!("expected JSON: {error}")))?;
    read::without(field, raw, "id")
}

fn template(id: Option<&str>, target: &Target) -> Result<Option<IdTemplate>, Reject> {
    let template = id.map(|id| IdTemplate::parse(id, target)).transpose()?;
    Ok(template)
}

/// Rejects a field that has no meaning in a cron.
fn reject_field(field: &str, is_there: bool) -> Result<(), Reject> {
    if is_there {
        return Err(Reject::field(field, "not allowed here: each run has an id and an instant of its own"));
    }
    Ok(())
}
