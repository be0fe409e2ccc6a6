//! HTTP requests of API Gateway and function URLs, passed to the same routes as in the local server.

use axum::Router;
use lambda_http::request::RequestContext;
use lambda_http::tower::ServiceExt as _;
use lambda_http::tower::util::MapRequest;
use lambda_http::{Request, RequestExt as _};
use tickover_api::audit::RouteKey;
use tickover_service::Service;

use crate::identity::identity;

/// The routes of the HTTP API as a Lambda handler.
pub(crate) fn routes(service: Service) -> MapRequest<Router, fn(Request) -> Request> {
    tickover_api::router(service).map_request(as_it_came)
}

/// The request as the routes know it: without the stage, with the route by which it came, and with who sends it.
fn as_it_came(request: Request) -> Request {
    let mut request = without_stage(request);
    let identity = identity(&request);
    request.extensions_mut().insert(identity);
    if let Some(key) = route_key(&request) {
        request.extensions_mut().insert(RouteKey(key));
    }
    request
}

/// The key of the route of an HTTP API. A function URL has the same form of event, and no routes.
fn route_key(request: &Request) -> Option<String> {
    let Some(RequestContext::ApiGatewayV2(context)) = request.request_context_ref() else { return None };
    let domain = context.domain_name.as_deref().unwrap_or_default();
    let is_function_url = domain.contains(".lambda-url.");
    context.route_key.clone().filter(|_| !is_function_url)
}

/// Removes the stage from the path. The stage depends on the deployment, and the routes don't know it.
fn without_stage(mut request: Request) -> Request {
    let path = path_after_stage(&request);
    let target = match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    // An invalid path is not changed, and matches no route.
    if let Ok(uri) = target.parse() {
        *request.uri_mut() = uri;
    }
    request
}

/// In HTTP APIs the path contains the stage, unless it is the default one. In REST APIs it doesn't, but the adapter
/// adds it.
fn path_after_stage(request: &Request) -> &str {
    let path = request.raw_http_path();
    let stage = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV2(context)) => context.stage.as_deref(),
        _ => None,
    };
    let behind = stage.and_then(|stage| path.strip_prefix('/')?.strip_prefix(stage));
    behind.filter(|rest| rest.starts_with('/')).unwrap_or(path)
}
