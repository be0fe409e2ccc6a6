//! `/v1/schedules`, the name that `/v1/crons` had in version 0.1. The calls are the same, and so are their answers, but
//! for the name of the field that holds a cron. The `OpenAPI` document doesn't list them.

use std::collections::BTreeMap;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::CONTENT_LENGTH;
use serde_json::value::RawValue;

/// The old name of a path, if it had one.
pub(super) fn path(new: &str) -> Option<String> {
    new.strip_prefix("/v1/crons").map(|rest| format!("/v1/schedules{rest}"))
}

/// Gives an answer's fields their old names.
pub(super) async fn answer(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if !response.status().is_success() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // Our own answer, which is in memory: it can neither fail nor be too large.
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    parts.headers.remove(CONTENT_LENGTH);
    let body = renamed(&bytes).map_or_else(|| Body::from(bytes.clone()), Body::from);
    Response::from_parts(parts, body)
}

fn renamed(answer: &[u8]) -> Option<String> {
    let fields: BTreeMap<&str, &RawValue> = serde_json::from_slice(answer).ok()?;
    let old = |name| match name {
        "cron" => "schedule",
        "crons" => "schedules",
        other => other,
    };
    let fields: BTreeMap<&str, &RawValue> =
        fields.into_iter().map(|(name, value)| (old(name), value)).collect();
    serde_json::to_string(&fields).ok()
}
