//! Events of executions.

use axum::extract::State;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls::executions;
use crate::http::{JsonBody, Name, Names, NoBody, QueryPairs};
use crate::problem::Problem;

#[cfg(feature = "schema")]
use crate::openapi::{CallProblems, ReadProblems};
#[cfg(feature = "schema")]
use tickover_core::id::{EventName, ExecutionId};
#[cfg(feature = "schema")]
use tickover_wire::answer::{ClearEventsAnswer, EventsAnswer, SendEventAnswer};
#[cfg(feature = "schema")]
use tickover_wire::request::{EventRequest, PageQuery};

/// Send an event to an execution.
///
/// The event is stored until the execution takes it. Events of one name are taken in the order in which they were sent.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/executions/{id}/events/{name}",
    tag = "executions",
    params(
        ("id" = ExecutionId, Path, description = "The execution's id."),
        ("name" = EventName, Path, description = "The event's name."),
    ),
    request_body = Option<EventRequest>,
    responses((status = 200, description = "The event waits.", body = SendEventAnswer), CallProblems),
))]
pub(super) async fn send_event(
    State(service): State<Service>,
    names: Names,
    body: JsonBody,
) -> Result<Answer, Problem> {
    executions::send_event(&service, &names.0, &names.1, body.call()).await
}

/// List and count an execution's pending events.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/executions/{id}/events",
    tag = "executions",
    params(
        ("id" = ExecutionId, Path, description = "The execution's id."),
        PageQuery,
    ),
    responses((status = 200, description = "A page of events, oldest first.", body = EventsAnswer), ReadProblems),
))]
pub(super) async fn events(
    State(service): State<Service>,
    id: Name,
    query: QueryPairs,
) -> Result<Answer, Problem> {
    executions::events(&service, &id.0, &query.0).await
}

/// Clear an execution's pending events of a name.
#[cfg_attr(feature = "schema", utoipa::path(
    delete,
    path = "/v1/executions/{id}/events/{name}",
    tag = "executions",
    params(
        ("id" = ExecutionId, Path, description = "The execution's id."),
        ("name" = EventName, Path, description = "The event's name."),
    ),
    responses((status = 200, description = "So many are gone.", body = ClearEventsAnswer), CallProblems),
))]
pub(super) async fn clear_events(
    State(service): State<Service>,
    names: Names,
    _: NoBody,
) -> Result<Answer, Problem> {
    executions::clear_events(&service, &names.0, &names.1).await
}
