//! The defaults of kinds of tasks, for operators.

use axum::extract::State;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls;
use crate::http::{JsonBody, Name, Names, NoBody};
use crate::problem::Problem;

#[cfg(feature = "schema")]
use crate::openapi::{CallProblems, ReadProblems};
#[cfg(feature = "schema")]
use tickover_core::id::{QueueName, TaskKind};
#[cfg(feature = "schema")]
use tickover_wire::answer::{DeletedKindAnswer, KindAnswer, KindsAnswer};
#[cfg(feature = "schema")]
use tickover_wire::request::KindDefaults;

/// List the kinds of a queue that have defaults.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/queues/{queue}/kinds",
    operation_id = "kinds",
    tag = "queues",
    params(("queue" = QueueName, Path, description = "The queue's name.")),
    responses((status = 200, description = "The kinds, by name.", body = KindsAnswer), ReadProblems),
))]
pub(super) async fn list(State(service): State<Service>, queue: Name) -> Result<Answer, Problem> {
    calls::kinds(&service, &queue.0).await
}

/// Describe the defaults of a kind.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/queues/{queue}/kinds/{kind}",
    operation_id = "kind",
    tag = "queues",
    params(
        ("queue" = QueueName, Path, description = "The queue's name."),
        ("kind" = TaskKind, Path, description = "The kind of task."),
    ),
    responses((status = 200, description = "The kind.", body = KindAnswer), ReadProblems),
))]
pub(super) async fn describe(State(service): State<Service>, names: Names) -> Result<Answer, Problem> {
    calls::kind(&service, &names.0, &names.1).await
}

/// Set the defaults of a kind, instead of those that it had.
///
/// They count for tasks that are scheduled afterwards, within 5 s everywhere, or within a minute if the queue had no
/// defaults before. What a task's own request gives goes before them. All kinds of a queue take at most 3 KiB together.
#[cfg_attr(feature = "schema", utoipa::path(
    put,
    path = "/v1/queues/{queue}/kinds/{kind}",
    operation_id = "set_kind",
    tag = "queues",
    params(
        ("queue" = QueueName, Path, description = "The queue's name."),
        ("kind" = TaskKind, Path, description = "The kind of task."),
    ),
    request_body = KindDefaults,
    responses((status = 200, description = "The kind has these defaults.", body = KindAnswer), CallProblems),
))]
pub(super) async fn set(
    State(service): State<Service>,
    names: Names,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::set_kind(&service, &names.0, &names.1, &body.0).await
}

/// Remove the defaults of a kind. Tasks that exist are not changed.
#[cfg_attr(feature = "schema", utoipa::path(
    delete,
    path = "/v1/queues/{queue}/kinds/{kind}",
    operation_id = "delete_kind",
    tag = "queues",
    params(
        ("queue" = QueueName, Path, description = "The queue's name."),
        ("kind" = TaskKind, Path, description = "The kind of task."),
    ),
    responses((status = 200, description = "The kind has no defaults.", body = DeletedKindAnswer), CallProblems),
))]
pub(super) async fn delete(
    State(service): State<Service>,
    names: Names,
    _: NoBody,
) -> Result<Answer, Problem> {
    calls::delete_kind(&service, &names.0, &names.1).await
}
