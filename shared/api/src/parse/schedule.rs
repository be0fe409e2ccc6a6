//! A request for a task.

use serde_json::{Map, Value};
use tickover_core::duration::ZeroRule;
use tickover_core::error::Reject;
use tickover_core::id::TaskKind;
use tickover_core::limits::{self, SPAN_MAX};
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::time::Timestamp;
use tickover_core::trace::TraceContext;
use tickover_service::schedule::ScheduleRequest;

use super::object::{pairs, twice};
use super::timeouts::{contradiction, duration, timeouts};
use super::{Field, Object, excerpt, queue_name, task_id};

/// Most labels of a task.
pub(crate) const LABELS_MAX: usize = 16;
/// Longest name of a label, in characters.
pub(crate) const LABEL_NAME_MAX: usize = 64;
/// Longest value of a label, in characters.
pub(crate) const LABEL_VALUE_MAX: usize = 256;

/// All fields of the request.
pub(crate) const SCHEDULE_FIELDS: &[&str] = &[
    "queue",
    "kind",
    "input",
    "id",
    "idempotency_key",
    "delay",
    "delay_seconds",
    "delay_ms",
    "run_at",
    "timeout",
    "timeout_seconds",
    "timeout_ms",
    "timeout_scope",
    "schedule_to_start_timeout",
    "schedule_to_start_timeout_seconds",
    "schedule_to_start_timeout_ms",
    "start_to_close_timeout",
    "start_to_close_timeout_seconds",
    "start_to_close_timeout_ms",
    "heartbeat_timeout",
    "heartbeat_timeout_seconds",
    "heartbeat_timeout_ms",
    "on_timeout",
    "error_on_timeout",
    "retry",
    "labels",
    "maxInactivity",
    "maxRuntime",
    "deadline",
    "retries",
    "traceparent",
];

/// Reads the request. The time is only needed to hold `run_at` to a year.
pub(crate) fn schedule(object: &Object<'_>, now: Timestamp) -> Result<ScheduleRequest, Reject> {
    let queue = object.require("queue", "the queue's name")?;
    let kind = object.require("kind", "what sort of work it is")?;
    let id = object.get("id").map(|field| task_id(field.path(), &field.text()?)).transpose()?;
    Ok(ScheduleRequest {
        id,
        idempotency_key: object.get("idempotency_key").map(|field| key(&field)).transpose()?,
        queue: queue_name(queue.path(), &queue.text()?)?,
        kind: kind.name(TaskKind::parse)?,
        input: object.get_with_null("input").map(|field| field.payload()),
        labels: object.get("labels").map(|field| labels(&field)).transpose()?.flatten(),
        retry: retry(object)?,
        timeouts: timeouts(object)?,
        start: start(object, now)?,
        trace: trace(object)?,
    })
}

/// The trace that work belongs to. A text that isn't one is ignored, as W3C's recommendation asks for.
pub(super) fn trace(object: &Object<'_>) -> Result<Option<TraceContext>, Reject> {
    let text = object.get("traceparent").map(|field| field.text()).transpose()?;
    Ok(text.and_then(|text| TraceContext::parse(&text)))
}

fn key(field: &Field<'_>) -> Result<String, Reject> {
    let text = field.text()?;
    if text.is_empty() {
        return Err(field.refuse("must not be empty"));
    }
    Ok(text)
}

fn retry(object: &Object<'_>) -> Result<RetryPolicy, Reject> {
    match (object.get("retry"), object.get("retries")) {
        (Some(_), Some(_)) => Err(contradiction("retries", "retry")),
        (Some(field), None) | (None, Some(field)) => field.policy(RetryPolicy::from_json),
        (None, None) => Ok(RetryPolicy::none()),
    }
}

fn start(object: &Object<'_>, now: Timestamp) -> Result<Start, Reject> {
    let delay = duration(object, "delay", ZeroRule::Allow)?;
    match (delay, object.get("run_at")) {
        (Some(_), Some(_)) => {
            Err(Reject::field("run_at", "expected only one of delay and run_at, found both"))
        }
        (None, Some(field)) => run_at(&field, now).map(Start::At),
        (delay, None) => Ok(Start::After(delay.unwrap_or_default())),
    }
}

fn run_at(field: &Field<'_>, now: Timestamp) -> Result<Timestamp, Reject> {
    let text = field.text()?;
    let instant = Timestamp::parse_rfc3339(&text)
        .ok_or_else(|| field.wrong("an RFC 3339 instant such as \"2026-01-31T12:00:00Z\""))?;
    if instant > now.plus(SPAN_MAX) {
        return Err(field.wrong("an instant at most a year ahead"));
    }
    Ok(instant)
}

/// Labels in the order of their names, so that their order in the request makes no difference.
pub(super) fn labels(field: &Field<'_>) -> Result<Option<Json>, Reject> {
    let given = pairs(field.path(), field.raw())?;
    limits::check("labels", given.len(), LABELS_MAX)?;
    let mut labels = Map::new();
    for (name, raw) in given {
        let label = Field::new(format!("{}.{}", field.path(), excerpt(&name)), raw);
        if !(1..=LABEL_NAME_MAX).contains(&name.chars().count()) {
            return Err(label.refuse(format!("expected a name of 1 to {LABEL_NAME_MAX} characters")));
        }
        let text = label.text()?;
        if text.chars().count() > LABEL_VALUE_MAX {
            return Err(label.refuse(format!("expected a string of at most {LABEL_VALUE_MAX} characters")));
        }
        if labels.insert(name, Value::String(text)).is_some() {
            return Err(twice(label.path()));
        }
    }
    if labels.is_empty() {
        return Ok(None);
    }
    Ok(Json::parse(Value::Object(labels).to_string()))
}
