//! A request for a task.

pub(super) mod flow;
mod timeouts;

use tickover_core::error::Reject;
use tickover_core::id::{Capability, QueueName, TaskKind};
use tickover_core::kind::{KindDefaults, Policies, Policy};
use tickover_core::limits::SPAN_MAX;
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::time::Timestamp;
use tickover_service::tasks::schedule::{Asked, ScheduleRequest};
use tickover_wire::request::{self as wire, Retry, contradiction};
use tickover_wire::{IdempotencyKey, Instant, Labels};

use super::execution::default_queue;
use super::{payload, trace};
use flow::flow;
use timeouts::timeouts;

/// The service's request. `now` is only needed to check that `run_at` is at most a year ahead.
pub(crate) fn task(given: wire::ScheduleRequest, now: Timestamp) -> Result<ScheduleRequest, Reject> {
    let asked = asked(&given);
    let queue = queue(given.queue.clone(), given.requires.as_deref())?;
    Ok(ScheduleRequest {
        labels: given.labels.as_ref().map(Labels::to_json).transpose()?.flatten(),
        timeouts: timeouts(&given)?,
        flow: flow(&given)?,
        start: start(&given, now)?,
        retry: retry(given.retry, given.retries)?,
        trace: trace(given.traceparent.as_deref()),
        id: given.id,
        idempotency_key: given.idempotency_key.map(|IdempotencyKey(key)| key),
        queue,
        kind: given.kind,
        input: payload(given.input),
        asked,
    })
}

/// The defaults of a kind, read as a task's own policies.
pub(crate) fn kind_defaults(
    given: wire::KindDefaults,
    queue: QueueName,
    kind: TaskKind,
) -> Result<KindDefaults, Reject> {
    // It is kept in the form in which answers show it.
    let text = serde_json::to_string(&given).ok().and_then(Json::parse);
    let text = text.ok_or_else(|| Reject::field("body", "expected what can be stored as JSON"))?;
    let task = task(given.request(queue, kind), Timestamp::EPOCH)?;
    let policies = Policies { retry: task.retry, timeouts: task.timeouts, flow: task.flow };
    Ok(KindDefaults { given: text, policies, by: None })
}

/// The queue that is named, or the default one for a task that goes to whoever provides what it requires.
fn queue(named: Option<QueueName>, requires: Option<&[Capability]>) -> Result<QueueName, Reject> {
    match named {
        Some(queue) => Ok(queue),
        None if requires.is_none_or(<[_]>::is_empty) => {
            Err(Reject::field("queue", "required; expected a queue, or requires instead"))
        }
        None => default_queue(),
    }
}

fn asked(given: &wire::ScheduleRequest) -> Asked {
    let named = [
        (Policy::Retry, given.retry.is_some() || given.retries.is_some()),
        (Policy::Concurrency, given.concurrency.is_some()),
        (Policy::Priority, given.priority.is_some()),
        (Policy::Requires, given.requires.is_some()),
    ];
    let policies = named.into_iter().filter_map(|(policy, is_given)| is_given.then_some(policy)).collect();
    Asked { any_queue: given.queue.is_none(), given: policies, ..Asked::default() }
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
    match (given.delay, given.run_at) {
        (Some(_), Some(_)) => Err(contradiction("run_at", "delay")),
        (None, Some(Instant(at))) if at > now.plus(SPAN_MAX) => {
            let found = format!("`{}`", at.to_rfc3339());
            Err(Reject::instead_of("run_at", "expected an instant at most a year ahead", found))
        }
        (None, Some(Instant(at))) => Ok(Start::At(at)),
        (delay, None) => Ok(Start::After(delay.map(Into::into).unwrap_or_default())),
    }
}
