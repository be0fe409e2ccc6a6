//! Recurring schedules.

use axum::extract::State;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls;
use crate::http::{JsonBody, Name, NoBody, QueryPairs};
use crate::openapi::{CallProblems, ReadProblems};
use crate::problem::Problem;
use crate::request::{Nothing, RecurrenceRequest};
use crate::view::{DeletedAnswer, RecurrenceAnswer, RecurrencesAnswer, TriggerAnswer};

/// Make a recurring schedule.
///
/// `id` makes the call repeatable: the same request again is answered with the schedule it made the first time.
#[utoipa::path(
    post,
    path = "/v1/schedules",
    operation_id = "create_schedule",
    tag = "schedules",
    request_body = RecurrenceRequest,
    responses(
        (status = 201, description = "The schedule is made.", body = RecurrenceAnswer),
        (status = 200, description = "The same request had made it before.", body = RecurrenceAnswer),
        CallProblems,
    ),
)]
pub(super) async fn create(State(service): State<Service>, body: JsonBody) -> Result<Answer, Problem> {
    calls::create_recurrence(&service, &body.0).await
}

/// List recurring schedules.
#[utoipa::path(
    get,
    path = "/v1/schedules",
    operation_id = "list_schedules",
    tag = "schedules",
    params(
        ("cursor" = Option<String>, Query, description = "The `cursor` of the page before."),
        ("limit" = Option<u16>, Query, description = "Schedules on a page: 1 to 500, 50 by default.",
            minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page of schedules.", body = RecurrencesAnswer), ReadProblems),
)]
pub(super) async fn list(State(service): State<Service>, query: QueryPairs) -> Result<Answer, Problem> {
    calls::recurrences(&service, &query.0).await
}

/// Describe a recurring schedule: what it starts, what comes next, and where its last runs stand.
#[utoipa::path(
    get,
    path = "/v1/schedules/{id}",
    operation_id = "describe_schedule",
    tag = "schedules",
    params(("id" = String, Path, description = "The schedule's id.")),
    responses((status = 200, description = "The schedule.", body = RecurrenceAnswer), ReadProblems),
)]
pub(super) async fn describe(State(service): State<Service>, id: Name) -> Result<Answer, Problem> {
    calls::recurrence(&service, &id.0).await
}

/// Make or replace a recurring schedule.
///
/// What it has started goes on, and what it has counted stays. What waits for an open run's end is dropped where
/// its instants or its runs' ids change.
#[utoipa::path(
    put,
    path = "/v1/schedules/{id}",
    operation_id = "replace_schedule",
    tag = "schedules",
    params(("id" = String, Path, description = "The schedule's id.")),
    request_body = RecurrenceRequest,
    responses(
        (status = 201, description = "The schedule is made.", body = RecurrenceAnswer),
        (status = 200, description = "The schedule is as asked for.", body = RecurrenceAnswer),
        CallProblems,
    ),
)]
pub(super) async fn replace(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::replace_recurrence(&service, &id.0, &body.0).await
}

/// Delete a recurring schedule. What it has started is left alone.
#[utoipa::path(
    delete,
    path = "/v1/schedules/{id}",
    operation_id = "delete_schedule",
    tag = "schedules",
    params(("id" = String, Path, description = "The schedule's id.")),
    responses((status = 200, description = "The schedule is deleted.", body = DeletedAnswer), CallProblems),
)]
pub(super) async fn delete(State(service): State<Service>, id: Name, _: NoBody) -> Result<Answer, Problem> {
    calls::delete_recurrence(&service, &id.0).await
}

/// Pause a recurring schedule.
///
/// Nothing of it starts by plan until it is resumed, and what would have started is not made up for.
#[utoipa::path(
    post,
    path = "/v1/schedules/{id}/pause",
    operation_id = "pause_schedule",
    tag = "schedules",
    params(("id" = String, Path, description = "The schedule's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The schedule is paused.", body = RecurrenceAnswer), CallProblems),
)]
pub(super) async fn pause(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::pause_recurrence(&service, &id.0, &body.0).await
}

/// Resume a recurring schedule with its next occurrence.
#[utoipa::path(
    post,
    path = "/v1/schedules/{id}/resume",
    operation_id = "resume_schedule",
    tag = "schedules",
    params(("id" = String, Path, description = "The schedule's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The schedule goes on.", body = RecurrenceAnswer), CallProblems),
)]
pub(super) async fn resume(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::resume_recurrence(&service, &id.0, &body.0).await
}

/// Start a run of a recurring schedule now.
///
/// It starts beside whatever is open, whatever the overlap policy says; it doesn't count as a planned one.
#[utoipa::path(
    post,
    path = "/v1/schedules/{id}/trigger",
    operation_id = "trigger_schedule",
    tag = "schedules",
    params(("id" = String, Path, description = "The schedule's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The run is started.", body = TriggerAnswer), CallProblems),
)]
pub(super) async fn trigger(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::trigger_recurrence(&service, &id.0, &body.0).await
}
