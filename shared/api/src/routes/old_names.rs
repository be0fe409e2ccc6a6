//! `/v1/schedules`, the name of `/v1/crons` in version 0.1. The calls and their answers are the same, except for the
//! name of the field that has a cron. The `OpenAPI` document doesn't list these paths.

use std::collections::BTreeMap;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::CONTENT_LENGTH;
use serde_json::value::RawValue;

/// The old name of a path, if it has one.
pub(super) fn path(new: &str) -> Option<String> {
    new.strip_prefix("/v1/crons").map(|rest| format!("/v1/schedules{rest}"))
}

/// Renames the fields of an answer to their old names.
pub(super) async fn answer(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if !response.status().is_success() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // The body is our own and in memory: reading it can't fail, and it isn't too large.
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
