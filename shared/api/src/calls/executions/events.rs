//! Events of executions: send, list and clear.

use tickover_core::id::{EventName, ExecutionId};
use tickover_core::trace::TraceContext;
use tickover_service::Service;
use tickover_service::executions::SentEvent;

use tickover_wire::answer::{ClearEventsAnswer, SendEventAnswer};
use tickover_wire::request::{EventMessage, EventQuery, EventRequest};
use tickover_wire::{Verbatim, read};

use crate::answer::Answer;
use crate::calls::Call;
use crate::problem::Problem;
use crate::request::Event;
use crate::{body, name, request, view};

/// Sends an event. It is stored until the execution takes it. With `answer` in the query, the call waits for the answer of
/// its code. The query is a list of names and values, already percent-decoded.
pub async fn send_event(
    service: &Service,
    id: &str,
    name: &str,
    query: &[(String, String)],
    call: impl Into<Call<'_>>,
) -> Result<Answer, Problem> {
    let Call { body, trace } = call.into();
    let (id, name) = (name::execution_id(id)?, name::event(name)?);
    let EventQuery { answer } = read::query(query)?;
    let mut event = request::event(body::read_or_empty(body)?);
    let Some(wait) = answer else {
        return Answer::ok(&take(service, &id, name, event, trace).await?);
    };
    let event_id = event.id.get_or_insert_with(|| service.new_event_id()).clone();
    let sent = take(service, &id, name.clone(), event, trace).await?;
    let found = service.wait_for_answer(&id, &name, &event_id, wait.into()).await?;
    let status = if found.is_some() { 200 } else { 202 };
    Answer::new(status, &SendEventAnswer { event_id: Some(event_id), answer: found.map(Verbatim), ..sent })
}

/// Sends an event whose execution's `id` and whose `name` are in the body: for events that arrive as messages.
pub async fn event(service: &Service, call: impl Into<Call<'_>>) -> Result<Answer, Problem> {
    let Call { body, trace } = call.into();
    let EventMessage { id, name, payload, event_id, traceparent } = body::read(body)?;
    let event = request::event(EventRequest { payload, event_id, traceparent });
    Answer::ok(&take(service, &id, name, event, trace).await?)
}

async fn take(
    service: &Service,
    id: &ExecutionId,
    name: EventName,
    event: Event,
    trace: Option<TraceContext>,
) -> Result<SendEventAnswer, Problem> {
    let trace = event.trace.or(trace);
    let event = SentEvent { name, id: event.id, payload: event.payload };
    let offered = service.send_event_traced(id, event, trace).await?;
    let duplicate = offered.duplicate.then_some(true);
    Ok(SendEventAnswer { duplicate, pending: offered.pending, event_id: None, answer: None })
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
