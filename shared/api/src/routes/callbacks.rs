//! Callbacks: calls that need a token and no credentials.

use axum::extract::State;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls;
use crate::http::{JsonBody, Name};
use crate::problem::Problem;

#[cfg(feature = "schema")]
use crate::openapi::CallProblems;
#[cfg(feature = "schema")]
use tickover_core::id::TaskId;
#[cfg(feature = "schema")]
use tickover_wire::answer::{CallbackAnswer, ReceivedAnswer};
#[cfg(feature = "schema")]
use tickover_wire::request::{CallbackFailure, CallbackRequest, CallbackResult, Nothing};

/// Make a token with which somebody else ends the attempt.
///
/// It needs no credentials, if the deployment allows callbacks. It is valid until the attempt's deadline, at most 30 days.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/tasks/{id}/callback",
    operation_id = "create_callback",
    tag = "workers",
    params(("id" = TaskId, Path, description = "The task's id.")),
    request_body = CallbackRequest,
    responses((status = 200, description = "The token.", body = CallbackAnswer), CallProblems),
))]
pub(super) async fn create(
    State(service): State<Service>,
    Name(id): Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::callback_of_attempt(&service, &id, &body.0).await
}

/// Report a result by callback.
///
/// Every token that isn't valid gets the same answer, whatever is wrong with it: 404, `unknown_callback`.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/callbacks/{token}/complete",
    operation_id = "complete_callback",
    tag = "callbacks",
    params(("token" = String, Path, description = "The callback's token.", min_length = 1, max_length = 400, pattern = "^[A-Za-z0-9_-]+$")),
    request_body = CallbackResult,
    responses((status = 200, description = "The result is recorded.", body = ReceivedAnswer), CallProblems),
))]
pub(super) async fn complete(
    State(service): State<Service>,
    Name(token): Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::complete_callback(&service, &token, &body.0).await
}

/// Report an error by callback.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/callbacks/{token}/fail",
    operation_id = "fail_callback",
    tag = "callbacks",
    params(("token" = String, Path, description = "The callback's token.", min_length = 1, max_length = 400, pattern = "^[A-Za-z0-9_-]+$")),
    request_body = CallbackFailure,
    responses((status = 200, description = "The error is recorded.", body = ReceivedAnswer), CallProblems),
))]
pub(super) async fn fail(
    State(service): State<Service>,
    Name(token): Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::fail_callback(&service, &token, &body.0).await
}

/// Report by callback that somebody still works on it.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/callbacks/{token}/heartbeat",
    operation_id = "callback_heartbeat",
    tag = "callbacks",
    params(("token" = String, Path, description = "The callback's token.", min_length = 1, max_length = 400, pattern = "^[A-Za-z0-9_-]+$")),
    request_body = Nothing,
    responses((status = 200, description = "It is recorded.", body = ReceivedAnswer), CallProblems),
))]
pub(super) async fn heartbeat(
    State(service): State<Service>,
    Name(token): Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::callback_heartbeat(&service, &token, &body.0).await
}
