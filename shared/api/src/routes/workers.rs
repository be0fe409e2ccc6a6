//! The calls of workers.

use axum::extract::State;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls;
use crate::http::{JsonBody, Name};
use crate::problem::Problem;

#[cfg(feature = "schema")]
use crate::openapi::CallProblems;
#[cfg(feature = "schema")]
use tickover_core::id::{QueueName, TaskId};
#[cfg(feature = "schema")]
use tickover_wire::answer::{BatchAnswer, ClaimAnswer, HeartbeatAnswer, TaskAnswer};
#[cfg(feature = "schema")]
use tickover_wire::request::{
    ClaimRequest, CompleteBatchRequest, CompleteRequest, FailRequest, HeartbeatRequest, ReleaseRequest,
};

/// Claim tasks from a queue.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/queues/{queue}/claim",
    tag = "workers",
    params(("queue" = QueueName, Path, description = "The queue's name.")),
    request_body = Option<ClaimRequest>,
    responses((status = 200, description = "Tasks; none if there are none.", body = ClaimAnswer), CallProblems),
))]
pub(super) async fn claim(
    State(service): State<Service>,
    queue: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::claim(&service, &queue.0, &body.0).await
}

/// Claim one task by id.
///
/// It is for workers that receive the queue's messages themselves. `max`, `wait`, `same_key` and `fill` have no
/// effect here.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/tasks/{id}/claim",
    tag = "workers",
    params(("id" = TaskId, Path, description = "The task's id.")),
    request_body = Option<ClaimRequest>,
    responses(
        (status = 200, description = "The task; none if it can't be had now.", body = ClaimAnswer),
        CallProblems,
    ),
))]
pub(super) async fn claim_by_id(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::claim_by_id(&service, &id.0, &body.0).await
}

/// Report a result.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/tasks/{id}/complete",
    tag = "workers",
    params(("id" = TaskId, Path, description = "The task's id.")),
    request_body = CompleteRequest,
    responses((status = 200, description = "The result is recorded.", body = TaskAnswer), CallProblems),
))]
pub(super) async fn complete(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::complete(&service, &id.0, &body.0).await
}

/// Report many results.
///
/// Each entry succeeds or fails on its own. `results` has one result for each, in order.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/tasks/complete",
    tag = "workers",
    request_body = CompleteBatchRequest,
    responses((status = 200, description = "One result for each entry.", body = BatchAnswer), CallProblems),
))]
pub(super) async fn complete_batch(
    State(service): State<Service>,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::complete_batch(&service, &body.0).await
}

/// Report that an attempt failed.
///
/// The task's retry policy decides whether there is another attempt, unless the error says that it isn't retryable.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/tasks/{id}/fail",
    tag = "workers",
    params(("id" = TaskId, Path, description = "The task's id.")),
    request_body = FailRequest,
    responses((status = 200, description = "The failure is recorded.", body = TaskAnswer), CallProblems),
))]
pub(super) async fn fail(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::fail(&service, &id.0, &body.0).await
}

/// Send a heartbeat.
///
/// It says that the worker and its work are alive: it extends the lease and restarts the heartbeat timeout. A worker that
/// sends heartbeats by a timer sets `worker_only`: they extend the lease alone, so work that hangs is found. The answer has the time that is left and whether the task is to be
/// cancelled. It never moves the deadline.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/tasks/{id}/heartbeat",
    tag = "workers",
    params(("id" = TaskId, Path, description = "The task's id.")),
    request_body = HeartbeatRequest,
    responses((status = 200, description = "The lease is renewed.", body = HeartbeatAnswer), CallProblems),
))]
pub(super) async fn heartbeat(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::heartbeat(&service, &id.0, &body.0).await
}

/// Release a task without a result.
///
/// The attempt doesn't count, and another worker may claim the task at once.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/tasks/{id}/release",
    tag = "workers",
    params(("id" = TaskId, Path, description = "The task's id.")),
    request_body = ReleaseRequest,
    responses((status = 200, description = "The task waits again.", body = TaskAnswer), CallProblems),
))]
pub(super) async fn release(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::release(&service, &id.0, &body.0).await
}
