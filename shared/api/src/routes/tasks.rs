//! Tasks as those who schedule and operate them see them.

use axum::extract::State;
use tickover_core::id::TaskId;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls;
use crate::http::{JsonBody, Name, QueryPairs};
use crate::openapi::{CallProblems, ReadProblems};
use crate::problem::Problem;
use tickover_wire::answer::{BatchAnswer, CancelAnswer, ListAnswer, TaskAnswer};
use tickover_wire::request::{CancelRequest, Nothing, ScheduleBatchRequest, ScheduleRequest, TasksQuery};

/// Schedule a task.
///
/// `id` or `idempotency_key` makes the call repeatable: the same request again is answered with the task it
/// made the first time.
#[utoipa::path(
    post,
    path = "/v1/tasks",
    tag = "tasks",
    request_body = ScheduleRequest,
    responses(
        (status = 201, description = "The task is scheduled.", body = TaskAnswer),
        (status = 200, description = "The same request had scheduled it before.", body = TaskAnswer),
        CallProblems,
    ),
)]
pub(super) async fn schedule(State(service): State<Service>, body: JsonBody) -> Result<Answer, Problem> {
    calls::schedule(&service, body.call()).await
}

/// Schedule many tasks.
///
/// Each entry succeeds or fails by itself: `results` has one result for each, in order.
#[utoipa::path(
    post,
    path = "/v1/tasks/batch",
    tag = "tasks",
    request_body = ScheduleBatchRequest,
    responses((status = 200, description = "One result for each entry.", body = BatchAnswer), CallProblems),
)]
pub(super) async fn schedule_batch(
    State(service): State<Service>,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::schedule_batch(&service, body.call()).await
}

/// Describe a task.
///
/// With its payloads, its last attempts, all its instants, and what happens next by itself, and when.
#[utoipa::path(
    get,
    path = "/v1/tasks/{id}",
    tag = "tasks",
    params(("id" = TaskId, Path, description = "The task's id.")),
    responses((status = 200, description = "The task.", body = TaskAnswer), ReadProblems),
)]
pub(super) async fn describe(State(service): State<Service>, id: Name) -> Result<Answer, Problem> {
    calls::describe(&service, &id.0).await
}

/// List tasks.
///
/// Live, failed and timed-out tasks are listed through indexes; for the others, or without `status`, the whole
/// table is walked.
#[utoipa::path(
    get,
    path = "/v1/tasks",
    tag = "tasks",
    params(TasksQuery),
    responses((status = 200, description = "A page of tasks.", body = ListAnswer), ReadProblems),
)]
pub(super) async fn list(State(service): State<Service>, query: QueryPairs) -> Result<Answer, Problem> {
    calls::list(&service, &query.0).await
}

/// Cancel a task.
///
/// One that waits has ended with the answer; the worker of one that runs is told with its next heartbeat.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/cancel",
    tag = "tasks",
    params(("id" = TaskId, Path, description = "The task's id.")),
    request_body = Option<CancelRequest>,
    responses((status = 200, description = "What became of it.", body = CancelAnswer), CallProblems),
)]
pub(super) async fn cancel(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::cancel(&service, &id.0, &body.0).await
}

/// Retry a task that ended without a result.
///
/// Its old deadline is cleared; its timeout then counts for each attempt, as a fresh duration.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/retry",
    tag = "tasks",
    params(("id" = TaskId, Path, description = "The task's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The task waits again.", body = TaskAnswer), CallProblems),
)]
pub(super) async fn retry(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::retry(&service, &id.0, &body.0).await
}
