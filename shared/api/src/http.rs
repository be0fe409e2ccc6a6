//! Between HTTP and the calls: reads bodies, and writes answers and problems.

use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequestParts as _, Query, RawPathParams, Request};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use tickover_core::error::Reject;
use tickover_core::trace::TraceContext;
use tickover_wire::Route;

use crate::answer::Answer;
use crate::body::BODY_BYTES_MAX;
use crate::name::excerpt;
use crate::problem::Problem;

/// How many bytes of a body that is too large are still read and discarded. A caller that is still sending gets the
/// answer about the limit only if the server goes on reading.
const READ_BYTES_MAX: usize = 64 * 1024 * 1024;

const TRACEPARENT: &str = "traceparent";
const XRAY_TRACE: &str = "x-amzn-trace-id";

/// What a request says beside its route.
pub(crate) struct Given {
    /// The names in its path, percent-decoded.
    pub(crate) names: Vec<String>,
    /// Its query's names and values, percent-decoded.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// From its headers.
    pub(crate) trace: Option<TraceContext>,
}

impl Given {
    /// Reads a request. Its body has at most [`BODY_BYTES_MAX`] and is declared as JSON even if it is empty: a browser sends
    /// other media types for a page of any site without asking the server first (no CORS preflight). A call that only
    /// reads has none, and one that deletes needs none.
    pub(crate) async fn read(route: Route, request: Request) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Ok(names) = RawPathParams::from_request_parts(&mut parts, &()).await else {
            return Err(Reject::field("path", "expected names in percent-encoded UTF-8").into());
        };
        let names = names.iter().map(|(_, name)| name.to_owned()).collect();
        let Ok(Query(query)) = Query::from_request_parts(&mut parts, &()).await else {
            return Err(Reject::field("query", "expected names and values in percent-encoded UTF-8").into());
        };
        let has_body = route.changes() && !(route.method() == "DELETE" && body.is_end_stream());
        let body = if has_body { self::read(body).await? } else { Bytes::new() };
        if has_body {
            // After the body: a caller that is still sending gets this answer only if the server reads to the end.
            check_media_type(&parts.headers)?;
        }
        Ok(Self { names, query, body, trace: trace_of(&parts.headers) })
    }
}

/// The trace from W3C's header, or else from AWS X-Ray's. A header that occurs twice is ignored, as W3C's
/// recommendation says.
fn trace_of(headers: &HeaderMap) -> Option<TraceContext> {
    let text = |name| {
        let mut values = headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())?.to_str().ok()
    };
    text(TRACEPARENT)
        .and_then(TraceContext::parse)
        .or_else(|| text(XRAY_TRACE).and_then(TraceContext::parse_xray))
}

async fn read(mut body: Body) -> Result<Bytes, Problem> {
    let announced = body.size_hint().lower();
    if announced > READ_BYTES_MAX as u64 {
        return Err(too_large(usize::try_from(announced).unwrap_or(usize::MAX)));
    }
    let (mut kept, mut length) = (BytesMut::new(), 0_usize);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Reject::instead_of("body", "expected all of it", "a part"))?;
        let Ok(data) = frame.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length > READ_BYTES_MAX {
            break;
        }
        if length <= BODY_BYTES_MAX {
            kept.extend_from_slice(&data);
        }
    }
    if length > BODY_BYTES_MAX { Err(too_large(length)) } else { Ok(kept.freeze()) }
}

fn too_large(value: usize) -> Problem {
    Reject::LimitExceeded { limit: "body_bytes", value, maximum: BODY_BYTES_MAX }.into()
}

/// Rejects a content type that is missing or isn't JSON.
fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |value: &HeaderValue| excerpt(&String::from_utf8_lossy(value.as_bytes()));
    if let Some(encoding) = headers.get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        return Err(Problem::wrong_media_type(&format!("something compressed with {}", text(encoding))));
    }
    match headers.get(CONTENT_TYPE) {
        Some(given) if is_json(given) => Ok(()),
        Some(given) => Err(Problem::wrong_media_type(&text(given))),
        None => Err(Problem::wrong_media_type("something that has no content-type")),
    }
}

fn is_json(media_type: &HeaderValue) -> bool {
    let Ok(text) = media_type.to_str() else { return false };
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

fn response(status: u16, media_type: &'static str, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(CONTENT_TYPE, HeaderValue::from_static(media_type))], body).into_response()
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        response(self.status, "application/json", String::from(Box::<str>::from(self.body)))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // Strings and numbers only: it always serialises.
        let body = serde_json::to_string(self.answer()).unwrap_or_default();
        let mut response = response(self.status(), "application/problem+json", body);
        if let Some(secs) = self.answer().retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(secs));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_its_relatives_are_media_types_for_a_body() {
        for (media_type, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/vnd.api+json", true),
            ("text/json", false),
            ("application/x-www-form-urlencoded", false),
            ("text/plain", false),
            ("", false),
        ] {
            assert_eq!(is_json(&HeaderValue::from_static(media_type)), expected, "{media_type}");
        }
    }

    #[test]
    fn a_trace_is_named_once_by_either_header_and_the_standards_own_counts_more() {
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let other = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
        let xray = "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=0";
        for (given, expected) in [
            (vec![], None),
            (vec![("traceparent", trace)], Some(trace)),
            (vec![("x-amzn-trace-id", xray)], Some(other)),
            (vec![("x-amzn-trace-id", xray), ("traceparent", trace)], Some(trace)),
            (vec![("x-amzn-trace-id", xray), ("traceparent", "nonsense")], Some(other)),
            (vec![("traceparent", trace), ("traceparent", other)], None),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in &given {
                headers.append(*name, HeaderValue::from_static(value));
            }
            let found = trace_of(&headers).map(|trace| trace.traceparent());
            assert_eq!(found.as_deref(), expected, "{given:?}");
        }
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_measured_without_being_kept() {
        let problem = read(Body::from(vec![b' '; BODY_BYTES_MAX + 7])).await.unwrap_err();
        assert_eq!(
            (problem.status(), problem.answer().value),
            (413, Some(u32::try_from(BODY_BYTES_MAX + 7).unwrap()))
        );
        assert_eq!(read(Body::from(vec![b' '; BODY_BYTES_MAX])).await.unwrap().len(), BODY_BYTES_MAX);
    }
}
