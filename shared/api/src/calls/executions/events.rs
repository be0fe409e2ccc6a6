//! Events of executions: send, list and clear.

use tickover_core::id::{EventName, ExecutionId};
use tickover_core::trace::TraceContext;
use tickover_service::Service;
use tickover_service::executions::SentEvent;

use tickover_wire::answer::{ClearEventsAnswer, SendEventAnswer};
use tickover_wire::read;
use tickover_wire::request::{EventMessage, EventRequest};

use crate::answer::Answer;
use crate::calls::Call;
use crate::problem::Problem;
use crate::request::Event;
use crate::{body, name, request, view};

/// Sends an event. It is stored until the execution takes it.
pub async fn send_event(
    service: &Service,
    id: &str,
    name: &str,
    call: impl Into<Call<'_>>,
) -> Result<Answer, Problem> {
    let Call { body, trace } = call.into();
    let (id, name) = (name::execution_id(id)?, name::event(name)?);
    let event = request::event(body::read_or_empty(body)?);
    take(service, &id, name, event, trace).await
}

/// Sends an event whose execution's `id` and whose `name` are in the body: for events that arrive as messages.
pub async fn event(service: &Service, call: impl Into<Call<'_>>) -> Result<Answer, Problem> {
    let Call { body, trace } = call.into();
    let EventMessage { id, name, payload, event_id, traceparent } = body::read(body)?;
    let event = request::event(EventRequest { payload, event_id, traceparent });
    take(service, &id, name, event, trace).await
}

async fn take(
    service: &Service,
    id: &ExecutionId,
    name: EventName,
    event: Event,
    trace: Option<TraceContext>,
) -> Result<Answer, Problem> {
    let trace = event.trace.or(trace);
    let event = SentEvent { name, id: event.id, payload: event.payload };
    let offered = service.send_event_traced(id, event, trace).await?;
    Answer::ok(&SendEventAnswer { duplicate: offered.duplicate.then_some(true), pending: offered.pending })
}

/// A page of an execution's pending events. The query is a list of names and values, already percent-decoded.
pub async fn events(service: &Service, id: &str, query: &[(String, String)]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let page = request::page(read::query(query)?);
    Answer::ok(&view::events(service.events_page(&id, page.limit, page.cursor.as_deref()).await?))
}

/// Clears the pending events of a name.
pub async fn clear_events(service: &Service, id: &str, name: &str) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let name = name::event(name)?;
    Answer::ok(&ClearEventsAnswer { cleared: service.clear_events(&id, name).await? })
}
