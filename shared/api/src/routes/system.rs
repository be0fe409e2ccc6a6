//! What machines ask of the server itself.

use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;

use crate::answer::Answer;
use crate::openapi;
use crate::problem::Problem;
use crate::view::HealthAnswer;

/// Say that the server answers.
///
/// It says nothing of the store: whoever restarts servers that don't answer shouldn't because a table throttles.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "system",
    responses((status = 200, description = "It does.", body = HealthAnswer)),
)]
pub(super) async fn health() -> Result<Answer, Problem> {
    Answer::ok(&HealthAnswer { status: "ok" })
}

/// This document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "system",
    responses((status = 200, description = "The API in OpenAPI 3.1.", body = serde_json::Value)),
)]
pub(super) async fn document() -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi::TEXT).into_response()
}
