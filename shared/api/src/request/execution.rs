//! Requests for executions, and what operators ask of them.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::ExecutionTimeouts;
use tickover_core::id::{EventId, QueueName, StepName};
use tickover_core::payload::Json;
use tickover_core::trace::TraceContext;
use tickover_service::executions::StartRequest;
use tickover_wire::Word;
use tickover_wire::request::{self as wire, one_of};

use super::{payload, trace};
use crate::name::reachable;

/// Where executions go that don't say where.
const QUEUE_DEFAULT: &str = "workflows";

/// What the service takes.
pub(crate) fn start(given: wire::StartRequest) -> Result<StartRequest, Reject> {
    let any_queue = given.queue.is_none();
    let queue = given.queue.map_or_else(default_queue, Ok)?;
    reachable("queue", queue.as_str())?;
    if let Some(id) = &given.id {
        reachable("id", id.as_str())?;
    }
    let execution = one_of(
        "execution_timeout",
        given.execution_timeout,
        given.execution_timeout_seconds,
        given.execution_timeout_ms,
    )?;
    let run = one_of("run_timeout", given.run_timeout, given.run_timeout_seconds, given.run_timeout_ms)?;
    let on_failure = one_of(
        "on_failure_timeout",
        given.on_failure_timeout,
        given.on_failure_timeout_seconds,
        given.on_failure_timeout_ms,
    )?;
    let delay = one_of("delay", given.delay, given.delay_seconds, given.delay_ms)?;
    Ok(StartRequest {
        id: given.id,
        input: payload(given.input),
        labels: given.labels.map(|labels| labels.to_json()).transpose()?.flatten(),
        // A memo of null is none.
        memo: payload(given.memo).filter(|memo| memo.as_str() != "null"),
        timeouts: ExecutionTimeouts { execution: execution.map(Millis::from), run: run.map(Millis::from) },
        on_failure: on_failure.map(Millis::from),
        delay: delay.map(Millis::from).unwrap_or_default(),
        policy: given.policy.map(|Word(policy)| policy).unwrap_or_default(),
        trace: trace(given.traceparent.as_deref()),
        any_queue,
        ..StartRequest::new(given.workflow, queue)
    })
}

fn default_queue() -> Result<QueueName, Reject> {
    QueueName::parse(QUEUE_DEFAULT).map_err(|error| Reject::field("queue", error))
}

/// What comes with an event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: Option<EventId>,
    pub(crate) payload: Option<Json>,
    pub(crate) trace: Option<TraceContext>,
}

/// An event, from its body.
pub(crate) fn event(given: wire::EventRequest) -> Event {
    Event { id: given.event_id, payload: payload(given.payload), trace: trace(given.traceparent.as_deref()) }
}

/// Which steps run again, and whether the others' results are kept.
pub(crate) fn rerun(given: wire::RerunRequest) -> Result<(Vec<StepName>, bool), Reject> {
    let steps = given.steps.unwrap_or_default();
    for (index, step) in steps.iter().enumerate() {
        reachable(&format!("steps[{index}]"), step.as_str())?;
    }
    Ok((steps, given.preserve.unwrap_or(true)))
}

#[cfg(test)]
mod tests;
