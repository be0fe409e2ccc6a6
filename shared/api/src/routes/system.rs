//! Calls about the server itself, for machines.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls;
use crate::problem::Problem;

#[cfg(feature = "schema")]
use tickover_wire::answer::HealthAnswer;

/// The `OpenAPI` document. It is a file: to generate it would take longer than the rest of a function's start.
pub(crate) const DOCUMENT: &str = include_str!("../../openapi.json");

/// Check that the server answers.
///
/// It doesn't read the store: a throttled table must not make a supervisor restart the server. It lists the names of
/// records that couldn't be read at the start, and says why a local server's disk refuses writes.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/healthz",
    tag = "system",
    responses((status = 200, description = "It does.", body = HealthAnswer)),
))]
pub(super) async fn health(State(service): State<Service>) -> Result<Answer, Problem> {
    calls::health(&service)
}

/// This document.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/openapi.json",
    tag = "system",
    responses((status = 200, description = "The API in OpenAPI 3.1.", body = serde_json::Value)),
))]
pub(super) async fn document() -> Response {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT).into_response()
}
