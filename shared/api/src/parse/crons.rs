//! Requests for crons.

use std::num::NonZeroU32;

use tickover_core::cron::expression::CronExpression;
use tickover_core::cron::plan::{Interval, Missed, Overlap, Plan, When};
use tickover_core::cron::run::{IdTemplate, Target};
use tickover_core::duration::ZeroRule;
use tickover_core::error::Reject;
use tickover_core::id::CronId;
use tickover_core::policy::PolicyError;
use tickover_core::time::Timestamp;
use tickover_service::crons::{CronRequest, CronWork};

use super::execution::{START_FIELDS, start};
use super::schedule::{SCHEDULE_FIELDS, schedule};
use super::timeouts::{contradiction, duration, span};
use super::{Field, Object};

/// All fields of the request.
pub(crate) const CRON_FIELDS: &[&str] = &[
    "id",
    "cron",
    "time_zone",
    "every",
    "every_seconds",
    "every_ms",
    "task",
    "execution",
    "overlap",
    "missed",
    "jitter",
    "jitter_seconds",
    "jitter_ms",
    "max_runs",
    "paused",
];

/// The time zone of an expression that comes without one.
const TIME_ZONE_DEFAULT: &str = "UTC";

/// Reads the request. An id in the path, if there is one, is the cron's.
pub(crate) fn cron(object: &Object<'_>, path: Option<&str>, now: Timestamp) -> Result<CronRequest, Reject> {
    let (work, template) = work(object, now)?;
    Ok(CronRequest {
        id: id(object, path)?,
        work,
        template,
        plan: Plan {
            when: when(object)?,
            overlap: word(object, "overlap", Overlap::ALL.map(|policy| (policy.as_str(), policy)))?,
            missed: word(object, "missed", Missed::ALL.map(|policy| (policy.as_str(), policy)))?,
            jitter: duration(object, "jitter", ZeroRule::Allow)?.unwrap_or_default(),
            max_runs: object.get("max_runs").map(|field| max_runs(&field)).transpose()?,
        },
        paused: object.get("paused").map(|field| field.boolean()).transpose()?,
    })
}

/// A cron's id, from a body or a path.
pub(crate) fn cron_id(field: &str, text: &str) -> Result<CronId, Reject> {
    if [".", ".."].contains(&text) {
        return Err(Reject::field(field, format!("expected another id: `{text}` can't be used in a path")));
    }
    CronId::parse(text).map_err(|error| Reject::field(field, error))
}

fn id(object: &Object<'_>, path: Option<&str>) -> Result<Option<CronId>, Reject> {
    let given = object.get("id").map(|field| cron_id(field.path(), &field.text()?)).transpose()?;
    let Some(path) = path else { return Ok(given) };
    let id = cron_id("id", path)?;
    if given.is_some_and(|given| given != id) {
        return Err(Reject::field("id", "expected that of the path, or none"));
    }
    Ok(Some(id))
}

fn when(object: &Object<'_>) -> Result<When, Reject> {
    let (cron, every) = (object.get("cron"), span(object, "every", ZeroRule::Reject)?);
    let zone = object.get("time_zone");
    match (cron, every) {
        (Some(cron), None) => {
            let zone = zone.map_or(Ok(TIME_ZONE_DEFAULT.to_owned()), |field| field.text())?;
            Ok(When::Cron(Box::new(
                CronExpression::parse(&cron.text()?, &zone).map_err(|error| refused("", &error))?,
            )))
        }
        (None, Some(_)) if zone.is_some() => {
            Err(Reject::field("time_zone", "expected cron beside it: intervals know no time zone"))
        }
        (None, Some(every)) => Interval::new(every.length).map(When::Every).map_err(|error| {
            every.field.refuse(format!("expected {}, found `{}`", error.expected, error.found))
        }),
        (Some(_), Some(every)) => Err(contradiction(every.field.path(), "cron")),
        (None, None) => Err(Reject::field("cron", "required; expected a cron expression, or every instead")),
    }
}

/// A refusal by the core, of a field under `prefix`.
fn refused(prefix: &str, error: &PolicyError) -> Reject {
    Reject::field(
        format!("{prefix}{}", error.path),
        format!("expected {}, found `{}`", error.expected, error.found),
    )
}

fn word<T: Copy + Default, const N: usize>(
    object: &Object<'_>,
    name: &str,
    words: [(&str, T); N],
) -> Result<T, Reject> {
    object.get(name).map_or(Ok(T::default()), |field| field.word(&words))
}

fn max_runs(field: &Field<'_>) -> Result<NonZeroU32, Reject> {
    let most = usize::try_from(u32::MAX).unwrap_or(usize::MAX);
    let count = u32::try_from(field.integer(1, most)?).ok().and_then(NonZeroU32::new);
    count.ok_or_else(|| field.wrong("a whole number above zero"))
}

fn work(object: &Object<'_>, now: Timestamp) -> Result<(CronWork, Option<IdTemplate>), Reject> {
    match (object.get("task"), object.get("execution")) {
        (Some(task), None) => {
            let inner = task.object(SCHEDULE_FIELDS)?;
            forbid(&inner, &["idempotency_key", "run_at"])?;
            let request = schedule(&inner.without("id"), now)?;
            let target = Target::Task { queue: request.queue.clone(), kind: request.kind.clone() };
            let template = template(&inner, "task.", &target)?;
            Ok((CronWork::Task(Box::new(request), task.payload()), template))
        }
        (None, Some(execution)) => {
            let inner = execution.object(START_FIELDS)?;
            forbid(&inner, &["policy"])?;
            let request = start(&inner.without("id"))?;
            let template =
                template(&inner, "execution.", &Target::Execution { workflow: request.workflow.clone() })?;
            Ok((CronWork::Execution(Box::new(request), execution.payload()), template))
        }
        (Some(_), Some(_)) => Err(contradiction("execution", "task")),
        (None, None) => {
            Err(Reject::field("task", "required; expected a request for a task, or execution instead"))
        }
    }
}

fn template(object: &Object<'_>, prefix: &str, target: &Target) -> Result<Option<IdTemplate>, Reject> {
    let Some(field) = object.get("id") else { return Ok(None) };
    IdTemplate::parse(&field.text()?, target).map(Some).map_err(|error| refused(prefix, &error))
}

/// Refuses fields that make no sense for a cron starts.
fn forbid(object: &Object<'_>, names: &[&str]) -> Result<(), Reject> {
    match names.iter().find_map(|name| object.get(name)) {
        Some(field) => Err(field.refuse("not allowed here: each run has an id and an instant of its own")),
        None => Ok(()),
    }
}
