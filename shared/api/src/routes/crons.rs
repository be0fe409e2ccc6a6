//! Crons.

use axum::extract::State;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls;
use crate::http::{JsonBody, Name, NoBody, QueryPairs};
use crate::problem::Problem;

#[cfg(feature = "schema")]
use crate::openapi::{CallProblems, ReadProblems};
#[cfg(feature = "schema")]
use tickover_core::id::CronId;
#[cfg(feature = "schema")]
use tickover_wire::answer::{CronAnswer, CronsAnswer, DeletedAnswer, TriggerAnswer};
#[cfg(feature = "schema")]
use tickover_wire::request::{CronRequest, Nothing, PageQuery};

/// Create a cron.
///
/// `id` makes the call idempotent: repeating the same request answers with the cron that it created the first time.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/crons",
    operation_id = "create_cron",
    tag = "crons",
    request_body = CronRequest,
    responses(
        (status = 201, description = "The cron is made.", body = CronAnswer),
        (status = 200, description = "The same request had made it before.", body = CronAnswer),
        CallProblems,
    ),
))]
pub(super) async fn create(State(service): State<Service>, body: JsonBody) -> Result<Answer, Problem> {
    calls::create_cron(&service, &body.0).await
}

/// List crons.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/crons",
    operation_id = "list_crons",
    tag = "crons",
    params(PageQuery),
    responses((status = 200, description = "A page of crons.", body = CronsAnswer), ReadProblems),
))]
pub(super) async fn list(State(service): State<Service>, query: QueryPairs) -> Result<Answer, Problem> {
    calls::crons(&service, &query.0).await
}

/// Describe a cron: what it starts, what happens next, and the statuses of its last runs.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/crons/{id}",
    operation_id = "describe_cron",
    tag = "crons",
    params(("id" = CronId, Path, description = "The cron's id.")),
    responses((status = 200, description = "The cron.", body = CronAnswer), ReadProblems),
))]
pub(super) async fn describe(State(service): State<Service>, id: Name) -> Result<Answer, Problem> {
    calls::cron(&service, &id.0).await
}

/// Create or replace a cron.
///
/// The work that it has started goes on, and its counts stay. Occurrences that wait for the end of an open run are
/// dropped if the cron's instants or its runs' ids change.
#[cfg_attr(feature = "schema", utoipa::path(
    put,
    path = "/v1/crons/{id}",
    operation_id = "replace_cron",
    tag = "crons",
    params(("id" = CronId, Path, description = "The cron's id.")),
    request_body = CronRequest,
    responses(
        (status = 201, description = "The cron is made.", body = CronAnswer),
        (status = 200, description = "The cron is as asked for.", body = CronAnswer),
        CallProblems,
    ),
))]
pub(super) async fn replace(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::replace_cron(&service, &id.0, &body.0).await
}

/// Delete a cron. The work that it has started is not changed.
#[cfg_attr(feature = "schema", utoipa::path(
    delete,
    path = "/v1/crons/{id}",
    operation_id = "delete_cron",
    tag = "crons",
    params(("id" = CronId, Path, description = "The cron's id.")),
    responses((status = 200, description = "The cron is deleted.", body = DeletedAnswer), CallProblems),
))]
pub(super) async fn delete(State(service): State<Service>, id: Name, _: NoBody) -> Result<Answer, Problem> {
    calls::delete_cron(&service, &id.0).await
}

/// Pause a cron.
///
/// It starts no planned runs until it is resumed. Occurrences in between are not started later.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/crons/{id}/pause",
    operation_id = "pause_cron",
    tag = "crons",
    params(("id" = CronId, Path, description = "The cron's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The cron is paused.", body = CronAnswer), CallProblems),
))]
pub(super) async fn pause(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::pause_cron(&service, &id.0, &body.0).await
}

/// Resume a cron with its next occurrence.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/crons/{id}/resume",
    operation_id = "resume_cron",
    tag = "crons",
    params(("id" = CronId, Path, description = "The cron's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The cron goes on.", body = CronAnswer), CallProblems),
))]
pub(super) async fn resume(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::resume_cron(&service, &id.0, &body.0).await
}

/// Start a run of a cron now.
///
/// The run starts even if others are open, whatever the overlap policy. It doesn't count as a planned run.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/crons/{id}/trigger",
    operation_id = "trigger_cron",
    tag = "crons",
    params(("id" = CronId, Path, description = "The cron's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The run is started.", body = TriggerAnswer), CallProblems),
))]
pub(super) async fn trigger(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::trigger_cron(&service, &id.0, &body.0).await
}
