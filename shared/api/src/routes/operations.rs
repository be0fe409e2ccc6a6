//! Operations on many executions or tasks.

use axum::extract::State;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls;
use crate::http::{JsonBody, Name, QueryPairs};
use crate::problem::Problem;

#[cfg(feature = "schema")]
use crate::openapi::{CallProblems, ReadProblems};
#[cfg(feature = "schema")]
use tickover_core::id::OperationId;
#[cfg(feature = "schema")]
use tickover_wire::answer::{OperationAnswer, OperationStopAnswer, OperationsAnswer};
#[cfg(feature = "schema")]
use tickover_wire::request::{Nothing, OperationRequest, PageQuery};

/// Do the same with many executions or tasks.
///
/// The operation is recorded and carried out page by page, also if processes die. `id` makes the call idempotent:
/// repeating the same request answers with the operation that it started the first time.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/operations",
    operation_id = "start_operation",
    tag = "operations",
    request_body = OperationRequest,
    responses(
        (status = 201, description = "The operation is recorded.", body = OperationAnswer),
        (status = 200, description = "The same request had started it before.", body = OperationAnswer),
        CallProblems,
    ),
))]
pub(super) async fn start(State(service): State<Service>, body: JsonBody) -> Result<Answer, Problem> {
    calls::start_operation(&service, &body.0).await
}

/// List operations, latest first. They are kept for seven days after their end.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/operations",
    operation_id = "list_operations",
    tag = "operations",
    params(PageQuery),
    responses((status = 200, description = "A page of operations.", body = OperationsAnswer), ReadProblems),
))]
pub(super) async fn list(State(service): State<Service>, query: QueryPairs) -> Result<Answer, Problem> {
    calls::operations(&service, &query.0).await
}

/// Describe an operation: what it does, and how far it has come.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/operations/{id}",
    operation_id = "describe_operation",
    tag = "operations",
    params(("id" = OperationId, Path, description = "The operation's id.")),
    responses((status = 200, description = "The operation.", body = OperationAnswer), ReadProblems),
))]
pub(super) async fn describe(State(service): State<Service>, id: Name) -> Result<Answer, Problem> {
    calls::operation(&service, &id.0).await
}

/// Stop an operation. The page that is under way is its last one; nothing is undone.
///
/// Its status is `stopping` until that page is counted.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/operations/{id}/stop",
    operation_id = "stop_operation",
    tag = "operations",
    params(("id" = OperationId, Path, description = "The operation's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The operation ends, or is over.", body = OperationStopAnswer), CallProblems),
))]
pub(super) async fn stop(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::stop_operation(&service, &id.0, &body.0).await
}
