//! The layers around all routes: the log line, the catching of panics, the check of operators' calls, and problems for
//! unknown paths and methods.

use std::any::Any;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use tickover_service::telemetry::field;
use tickover_service::to_end::to_end;
use tower_http::catch_panic::CatchPanicLayer;

use crate::problem::Problem;
use crate::routes::OPERATORS_ROUTES;

/// Puts the layers around a router that has all its routes.
pub(crate) fn layered(router: Router) -> Router {
    router
        .fallback(async || Problem::no_route())
        .method_not_allowed_fallback(async || Problem::wrong_method())
        .layer(middleware::from_fn(by_its_own_route))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn(log))
        .layer(middleware::from_fn(until_the_end))
}

/// The key of the route by which an HTTP API of API Gateway let a request in, as an extension of the request. Without it,
/// nothing distinguishes operators' calls from others: a local server, or a function URL.
#[derive(Clone, Debug)]
pub struct RouteKey(pub String);

/// Refuses an operator's call that came by another route than its own: that route may need less of the caller.
async fn by_its_own_route(request: Request, next: Next) -> Response {
    let came_by = request.extensions().get::<RouteKey>();
    if let (Some(RouteKey(came_by)), Some(route)) = (came_by, request.extensions().get::<MatchedPath>()) {
        let own = format!("{} {}", request.method(), route.as_str());
        if *came_by != own && OPERATORS_ROUTES.contains(&own.as_str()) {
            return Problem::foreign_route().into_response();
        }
    }
    next.run(request).await
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

fn panicked(_payload: Box<dyn Any + Send>) -> Response {
    // The panic message may contain parts of a payload, so it isn't logged.
    tracing::error!("a handler panicked");
    Problem::internal().into_response()
}

/// Writes one log line for each request: at `info` if it was refused or failed, else at `debug`. That a record isn't there is
/// an ordinary answer: whoever has an id asks for a task and then for an execution. The path is the route's pattern; ids are
/// in the task's own log lines.
async fn log(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    macro_rules! line {
        ($level:expr) => {
            tracing::event!(
                $level,
                %method,
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
