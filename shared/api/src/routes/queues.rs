//! Queues, for operators.

use axum::extract::State;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls;
use crate::http::{JsonBody, Name};
use crate::problem::Problem;

#[cfg(feature = "schema")]
use crate::openapi::{CallProblems, ReadProblems};
#[cfg(feature = "schema")]
use tickover_core::id::QueueName;
#[cfg(feature = "schema")]
use tickover_wire::answer::{QueueAnswer, QueuesAnswer};
#[cfg(feature = "schema")]
use tickover_wire::request::Nothing;

/// List all queues with their depth.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/queues",
    tag = "queues",
    responses((status = 200, description = "The queues, by name.", body = QueuesAnswer), ReadProblems),
))]
pub(super) async fn queues(State(service): State<Service>) -> Result<Answer, Problem> {
    calls::queues(&service).await
}

/// Describe a queue: its depth and its oldest waiting task.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/queues/{queue}",
    tag = "queues",
    params(("queue" = QueueName, Path, description = "The queue's name.")),
    responses((status = 200, description = "The queue.", body = QueueAnswer), ReadProblems),
))]
pub(super) async fn queue(State(service): State<Service>, queue: Name) -> Result<Answer, Problem> {
    calls::queue(&service, &queue.0).await
}

/// Pause a queue.
///
/// Its tasks are not leased to workers until it is resumed. Their deadlines still apply.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/queues/{queue}/pause",
    tag = "queues",
    params(("queue" = QueueName, Path, description = "The queue's name.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The queue is paused.", body = QueueAnswer), CallProblems),
))]
pub(super) async fn pause(
    State(service): State<Service>,
    queue: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::pause(&service, &queue.0, &body.0).await
}

/// Resume a queue.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/queues/{queue}/resume",
    tag = "queues",
    params(("queue" = QueueName, Path, description = "The queue's name.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The queue is handed out again.", body = QueueAnswer), CallProblems),
))]
pub(super) async fn resume(
    State(service): State<Service>,
    queue: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::resume(&service, &queue.0, &body.0).await
}
