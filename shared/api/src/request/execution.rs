//! Requests for executions and of operators on them.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::ExecutionTimeouts;
use tickover_core::id::{EventId, QueueName};
use tickover_core::payload::Json;
use tickover_core::trace::TraceContext;
use tickover_service::executions::{Again, SentEvent, StartRequest};
use tickover_service::flow::lane;
use tickover_wire::request as wire;
use tickover_wire::{RunTimeout, Word};

use super::task::flow;
use super::{payload, trace};

/// The queue of executions whose request names none.
const QUEUE_DEFAULT: &str = "workflows";

/// The service's request.
pub(crate) fn start(given: wire::StartRequest) -> Result<StartRequest, Reject> {
    let any_queue = given.queue.is_none();
    let flow = Box::new(flow::of_start(&given)?);
    let queue = given.queue.map_or_else(default_queue, Ok)?;
    let span = |given: Option<RunTimeout>| given.map(Millis::from);
    Ok(StartRequest {
        id: given.id,
        input: payload(given.input),
        labels: given.labels.map(|labels| labels.to_json()).transpose()?.flatten(),
        // A memo of `null` is the same as no memo.
        memo: payload(given.memo).filter(|memo| memo.as_str() != "null"),
        event: given.event.map(|event| SentEvent {
            name: event.name,
            id: event.event_id,
            payload: payload(event.payload),
        }),
        timeouts: ExecutionTimeouts {
            execution: span(given.execution_timeout),
            run: span(given.run_timeout),
        },
        on_failure: span(given.on_failure_timeout),
        delay: given.delay.map(Millis::from).unwrap_or_default(),
        lane: lane(given.priority.map(|word| word.0).unwrap_or_default(), given.fairness_key.as_ref()),
        flow,
        policy: given.policy.map(|Word(policy)| policy).unwrap_or_default(),
        trace: trace(given.traceparent.as_deref()),
        any_queue,
        ..StartRequest::new(given.workflow, queue)
    })
}

pub(super) fn default_queue() -> Result<QueueName, Reject> {
    QueueName::parse(QUEUE_DEFAULT).map_err(|error| Reject::field("queue", error))
}

/// The payload and the id of an event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: Option<EventId>,
    pub(crate) payload: Option<Json>,
    pub(crate) trace: Option<TraceContext>,
}

/// Reads an event from its body.
pub(crate) fn event(given: wire::EventRequest) -> Event {
    Event { id: given.event_id, payload: payload(given.payload), trace: trace(given.traceparent.as_deref()) }
}

/// What the new run takes from the last one.
pub(crate) fn rerun(given: wire::RerunRequest) -> Again {
    Again {
        steps: given.steps.unwrap_or_default(),
        from: given.from,
        preserve: given.preserve.unwrap_or(true),
        input: payload(given.input),
    }
}

#[cfg(test)]
mod tests;
