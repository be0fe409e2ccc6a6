//! The layers around all routes: the log line, the catching of panics, and problems for unknown paths and methods.

use std::time::Instant;

use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{MatchedPath, RawPathParams, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use tickover_core::by::Caller;
use tickover_service::telemetry::field;
use tickover_service::to_end::to_end;
use tower_http::catch_panic::CatchPanicLayer;

use crate::audit::{Identity, about, panicked};
use crate::problem::Problem;

/// Puts the layers around a router that has all its routes.
pub(crate) fn layered(router: Router) -> Router {
    router
        .fallback(async || Problem::no_route())
        .method_not_allowed_fallback(async || Problem::wrong_method())
        .layer(CatchPanicLayer::custom(|payload| panicked(payload).into_response()))
        .layer(middleware::from_fn(log))
        .layer(middleware::from_fn(until_the_end))
}

/// Carries a request that changes something out to its end, also when its caller has gone. A claim isn't: nobody would get
/// its tasks.
async fn until_the_end(request: Request, next: Next) -> Response {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let route = request.extensions().get::<MatchedPath>();
    // The path itself may end with a key, an event or a kind of that name.
    if is_read || route.is_some_and(|route| route.as_str().ends_with("/claim")) {
        return next.run(request).await;
    }
    to_end(next.run(request)).await
}

/// Writes one log line for each request: at `info` if it was refused or failed, else at `debug`. That a record isn't there is
/// an ordinary answer: whoever has an id asks for a task and then for an execution. The path is the route's pattern; the
/// names in it are beside it if they were accepted, but not the token of a callback.
async fn log(names: Result<RawPathParams, RawPathParamsRejection>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let about = names.ok().and_then(|names| about(&names));
    let caller = request.extensions().get::<Identity>().map(|identity| identity.caller.clone());
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    macro_rules! line {
        ($level:expr) => {
            tracing::event!(
                $level,
                %method,
                caller = caller.as_ref().map(Caller::as_str),
                id = about.as_ref().filter(|_| response.status().is_success()),
                path = path.as_ref().map_or("unmatched", MatchedPath::as_str),
                status = response.status().as_u16(),
                { field::DURATION_MS } = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                "request"
            )
        };
    }
    let is_absent = response.status() == StatusCode::NOT_FOUND && method == Method::GET && path.is_some();
    if response.status().is_success() || is_absent {
        line!(tracing::Level::DEBUG);
    } else {
        line!(tracing::Level::INFO);
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    async fn body(router: &Router, path: &str) -> (u16, String) {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_panic_is_a_500_that_leaks_nothing_and_the_next_request_is_served() {
        let bad = async || -> &'static str { panic!("secret at {}", file!()) };
        let router = layered(Router::new().route("/bad", get(bad)).route("/good", get(async || "fine")));
        let (status, text) = body(&router, "/bad").await;
        assert_eq!(status, 500);
        assert!(!text.contains("secret") && !text.contains(".rs"), "{text}");
        let problem: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(problem["code"], "internal");
        assert_eq!(body(&router, "/good").await, (200, "fine".to_owned()));
    }
}
