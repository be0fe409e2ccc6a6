//! Sends events to other executions.

use std::fmt::Display;
use std::sync::Arc;

use serde::Serialize;
use tickover_core::id::{EventId, EventName, ExecutionId};
use tickover_core::payload::Json;
use tickover_service::ServiceError;

use crate::codec;
use crate::error::Failure;
use crate::step::{Step, step};
use crate::turn::shared::Shared;

/// The retry policy if the service doesn't answer.
const RETRY: &str = "exponential(6, 1s)";

/// The result of sending: `Ok(Err(…))` is final, `Err(…)` is retried.
type Sent = Result<Result<(), Failure>, Failure>;

/// A step that sends an event. The event's id is derived from the run and the step's name. So the event is stored once,
/// however often sending is retried.
pub(super) fn send(
    shared: &Arc<Shared>,
    name: String,
    execution: String,
    event: String,
    payload: &impl Serialize,
) -> Step<Result<(), Failure>, Failure> {
    let (id, trace) = {
        let state = shared.lock();
        (state.facts.identity(&name), state.facts.trace)
    };
    let request = read(execution, event, id, payload);
    let service = shared.service().clone();
    let attempt = move || {
        let (service, request) = (service.clone(), request.clone());
        async move {
            let (execution, event, id, payload) = match request {
                Ok(request) => request,
                Err(refused) => return Sent::Ok(Err(refused)),
            };
            match service.send_event_traced(&execution, event, Some(id), Some(payload), trace).await {
                Ok(_) => Ok(Ok(())),
                Err(ServiceError::Rejected(reject)) => {
                    Ok(Err(Failure::new(reject.code(), reject.to_string())))
                }
                Err(error) => Err(Failure::new("unavailable", error.to_string())),
            }
        }
    };
    step(name, attempt).retry(RETRY)
}

fn read(
    execution: String,
    event: String,
    id: String,
    payload: &impl Serialize,
) -> Result<(ExecutionId, EventName, EventId, Json), Failure> {
    let payload = codec::encode(payload).map_err(|problem| refusal("payload", problem))?;
    let execution = ExecutionId::parse(execution).map_err(|problem| refusal("id", problem))?;
    let event = EventName::parse(event).map_err(|problem| refusal("event", problem))?;
    let id = EventId::parse(id).map_err(|problem| refusal("event_id", problem))?;
    Ok((execution, event, id, payload))
}

fn refusal(what: &str, problem: impl Display) -> Failure {
    Failure::new("invalid_request", format!("{what}: {problem}"))
}
