//! Events: offered to executions, looked at, and thrown away.

use tickover_core::id::{EventName, ExecutionId};
use tickover_core::trace::TraceContext;
use tickover_service::Service;

use crate::answer::Answer;
use crate::body::{self, Empty};
use crate::calls::Call;
use crate::parse::{self, EVENT_FIELDS, EVENT_MESSAGE_FIELDS, EventBody};
use crate::problem::Problem;
use crate::view::{ClearEventsAnswer, EventsAnswer, SendEventAnswer};

/// Offers an event: it waits until the execution takes it.
pub async fn send_event(
    service: &Service,
    id: &str,
    name: &str,
    call: impl Into<Call<'_>>,
) -> Result<Answer, Problem> {
    let Call { body, trace } = call.into();
    let id = parse::execution_id("id", id)?;
    let name = parse::event_name("name", name)?;
    let event = parse::event(&body::object(body, EVENT_FIELDS, Empty::IsObject)?)?;
    take(service, &id, name, event, trace).await
}

/// The same, with the execution's `id` and the event's `name` in the body: for events that come by message.
pub async fn event(service: &Service, call: impl Into<Call<'_>>) -> Result<Answer, Problem> {
    let Call { body, trace } = call.into();
    let object = body::object(body, EVENT_MESSAGE_FIELDS, Empty::IsMissing)?;
    let id = object.require("id", "the execution's id")?;
    let id = parse::execution_id(id.path(), &id.text()?)?;
    let name = object.require("name", "the event's name")?;
    let name = parse::event_name(name.path(), &name.text()?)?;
    take(service, &id, name, parse::event(&object)?, trace).await
}

async fn take(
    service: &Service,
    id: &ExecutionId,
    name: EventName,
    event: EventBody,
    trace: Option<TraceContext>,
) -> Result<Answer, Problem> {
    let trace = event.trace.or(trace);
    let offered = service.send_event_traced(id, name, event.id, event.payload, trace).await?;
    Answer::ok(&SendEventAnswer { duplicate: offered.duplicate.then_some(true), pending: offered.pending })
}

/// A page of the events that wait for an execution. The query comes as names and values, already percent-decoded.
pub async fn events(service: &Service, id: &str, query: &[(String, String)]) -> Result<Answer, Problem> {
    let id = parse::execution_id("id", id)?;
    let page = parse::page_query(query)?;
    Answer::ok(&EventsAnswer::from(service.events_page(&id, page.limit, page.cursor.as_deref()).await?))
}

/// Throws away the waiting events of a name.
pub async fn clear_events(service: &Service, id: &str, name: &str) -> Result<Answer, Problem> {
    let id = parse::execution_id("id", id)?;
    let name = parse::event_name("name", name)?;
    Answer::ok(&ClearEventsAnswer { drained: service.clear_events(&id, name).await? })
}
