//! HTTP requests as API Gateway and function URLs hand them over, led to the routes that the local server has.

use axum::Router;
use lambda_http::request::RequestContext;
use lambda_http::tower::ServiceExt as _;
use lambda_http::tower::util::MapRequest;
use lambda_http::{Request, RequestExt as _};
use tickover_service::Service;

/// The HTTP API as a handler.
pub(crate) fn routes(service: Service) -> MapRequest<Router, fn(Request) -> Request> {
    tickover_api::router(service).map_request(without_stage)
}

/// A stage is a matter of the deployment: the path that was asked for begins behind it.
fn without_stage(mut request: Request) -> Request {
    let path = path_behind_stage(&request);
    let target = match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    // A path that is no path stays as it is, and no route has it.
    if let Ok(uri) = target.parse() {
        *request.uri_mut() = uri;
    }
    request
}

/// HTTP APIs name the stage in the path unless it is the default one. REST APIs don't, but the adapter adds it.
fn path_behind_stage(request: &Request) -> &str {
    let path = request.raw_http_path();
    let stage = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV2(context)) => context.stage.as_deref(),
        _ => None,
    };
    let behind = stage.and_then(|stage| path.strip_prefix('/')?.strip_prefix(stage));
    behind.filter(|rest| rest.starts_with('/')).unwrap_or(path)
}
