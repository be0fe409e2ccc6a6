//! A request for a task.

mod flow;
mod timeouts;

use tickover_core::error::Reject;
use tickover_core::limits::SPAN_MAX;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::time::Timestamp;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_wire::request::{self as wire, Retry, contradiction, one_of};
use tickover_wire::{IdempotencyKey, Instant, Labels};

use super::{payload, trace};
use crate::name::{reachable, reachable_task};
use flow::flow;
use timeouts::timeouts;

/// The service's request. `now` is only needed to check that `run_at` is at most a year ahead.
pub(crate) fn task(given: wire::ScheduleRequest, now: Timestamp) -> Result<ScheduleRequest, Reject> {
    reachable("queue", given.queue.as_str())?;
    if let Some(id) = &given.id {
        reachable_task("id", id)?;
    }
    Ok(ScheduleRequest {
        labels: given.labels.as_ref().map(Labels::to_json).transpose()?.flatten(),
        timeouts: timeouts(&given)?,
        flow: flow(&given)?,
        start: start(&given, now)?,
        retry: retry(given.retry, given.retries)?,
        trace: trace(given.traceparent.as_deref()),
        id: given.id,
        idempotency_key: given.idempotency_key.map(|IdempotencyKey(key)| key),
        queue: given.queue,
        kind: given.kind,
        input: payload(given.input),
    })
}

fn retry(ours: Option<Retry>, steeps: Option<Retry>) -> Result<RetryPolicy, Reject> {
    let (field, policy) = match (ours, steeps) {
        (Some(_), Some(_)) => return Err(contradiction("retries", "retry")),
        (Some(policy), None) => ("retry", policy),
        (None, Some(policy)) => ("retries", policy),
        (None, None) => return Ok(RetryPolicy::none()),
    };
    RetryPolicy::try_from(policy).map_err(|error| error.under(field).into())
}

fn start(given: &wire::ScheduleRequest, now: Timestamp) -> Result<Start, Reject> {
    let delay = one_of("delay", given.delay, given.delay_seconds, given.delay_ms)?;
    match (delay, given.run_at) {
        (Some(delay), Some(_)) => Err(contradiction("run_at", &delay.field)),
        (None, Some(Instant(at))) if at > now.plus(SPAN_MAX) => {
            let found = format!("`{}`", at.to_rfc3339());
            Err(Reject::instead_of("run_at", "expected an instant at most a year ahead", found))
        }
        (None, Some(Instant(at))) => Ok(Start::At(at)),
        (delay, None) => Ok(Start::After(delay.map(|delay| delay.span).unwrap_or_default())),
    }
}
