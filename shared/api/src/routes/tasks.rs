//! Tasks, for callers that schedule and operate them.

use axum::extract::State;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls;
use crate::http::{JsonBody, Name, QueryPairs};
use crate::problem::Problem;

#[cfg(feature = "schema")]
use crate::openapi::{CallProblems, ReadProblems};
#[cfg(feature = "schema")]
use tickover_core::id::TaskId;
#[cfg(feature = "schema")]
use tickover_wire::answer::{BatchAnswer, CancelAnswer, ListAnswer, TaskAnswer};
#[cfg(feature = "schema")]
use tickover_wire::request::{CancelRequest, Nothing, ScheduleBatchRequest, ScheduleRequest, TasksQuery};

/// Schedule a task.
///
/// `id` or `idempotency_key` makes the call idempotent: repeating the same request answers with the task that it
/// scheduled the first time.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/tasks",
    tag = "tasks",
    request_body = ScheduleRequest,
    responses(
        (status = 201, description = "The task is scheduled.", body = TaskAnswer),
        (status = 200, description = "The same request had scheduled it before.", body = TaskAnswer),
        CallProblems,
    ),
))]
pub(super) async fn schedule(State(service): State<Service>, body: JsonBody) -> Result<Answer, Problem> {
    calls::schedule(&service, body.call()).await
}

/// Schedule many tasks.
///
/// Each entry succeeds or fails on its own. `results` has one result for each, in order.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/tasks/batch",
    tag = "tasks",
    request_body = ScheduleBatchRequest,
    responses((status = 200, description = "One result for each entry.", body = BatchAnswer), CallProblems),
))]
pub(super) async fn schedule_batch(
    State(service): State<Service>,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::schedule_batch(&service, body.call()).await
}

/// Describe a task.
///
/// The answer has its payloads, its last attempts, all its instants, what happens next without any call, and when.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/tasks/{id}",
    tag = "tasks",
    params(("id" = TaskId, Path, description = "The task's id.")),
    responses((status = 200, description = "The task.", body = TaskAnswer), ReadProblems),
))]
pub(super) async fn describe(State(service): State<Service>, id: Name) -> Result<Answer, Problem> {
    calls::describe(&service, &id.0).await
}

/// List tasks.
///
/// Nothing that happens to a task moves it in the list: a walk over the pages finds it once. A local server lists the
/// latest scheduled first. On AWS, live tasks are listed by id and failed or timed-out ones by when they were scheduled,
/// each through an index; for other statuses, for both together, or without `status`, the call scans the whole table, in
/// no order.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/tasks",
    tag = "tasks",
    params(TasksQuery),
    responses((status = 200, description = "A page of tasks.", body = ListAnswer), ReadProblems),
))]
pub(super) async fn list(State(service): State<Service>, query: QueryPairs) -> Result<Answer, Problem> {
    calls::list(&service, &query.0).await
}

/// Cancel a task.
///
/// A task that waits ends at once. If a worker runs it, the answer to the worker's next heartbeat says that it is to be
/// cancelled.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/tasks/{id}/cancel",
    tag = "tasks",
    params(("id" = TaskId, Path, description = "The task's id.")),
    request_body = Option<CancelRequest>,
    responses((status = 200, description = "What became of it.", body = CancelAnswer), CallProblems),
))]
pub(super) async fn cancel(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::cancel(&service, &id.0, &body.0).await
}

/// Retry a task that ended without a result.
///
/// Its old deadline is cleared. From then on its timeout applies to each attempt separately.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/tasks/{id}/retry",
    tag = "tasks",
    params(("id" = TaskId, Path, description = "The task's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The task waits again.", body = TaskAnswer), CallProblems),
))]
pub(super) async fn retry(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::retry(&service, &id.0, &body.0).await
}
