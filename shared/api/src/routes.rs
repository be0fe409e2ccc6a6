//! The router: each call of the API over HTTP. Nothing is decided here.

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use http::Method;
use http::header::CONTENT_TYPE;
use tickover_service::Service;
use tickover_wire::Route;

use crate::audit;
use crate::calls::{self, Call};
use crate::http::Given;
use crate::layers::layered;

/// The `OpenAPI` document. It is a file: to generate it would take longer than the rest of a function's start.
const DOCUMENT: &str = include_str!("../openapi.json");

/// The API's router over a service.
pub fn router(service: Service) -> Router {
    let routed = Route::ALL.iter().fold(Router::new(), |router, route| {
        let serve = |State(service), request| serve(*route, service, request);
        router.route(route.path(), on(filter(*route), serve))
    });
    layered(routed.with_state(service))
}

fn filter(route: Route) -> MethodFilter {
    let method = Method::from_bytes(route.method().as_bytes()).ok();
    method.and_then(|method| MethodFilter::try_from(method).ok()).unwrap_or(MethodFilter::GET)
}

async fn serve(route: Route, service: Service, request: Request) -> Response {
    if route == Route::Document {
        return ([(CONTENT_TYPE, "application/json")], DOCUMENT).into_response();
    }
    let answer = async |service: Service, request| {
        let Given { names, query, body, trace } = Given::read(route, request).await?;
        let call = Call { body: &body, trace };
        Box::pin(calls::answer(&service, route, &names, &query, call)).await
    };
    if route.is_operators() {
        audit::http::operate(route, service, request, answer).await.into_response()
    } else if route.takes_reason() {
        let service = audit::http::known(service, &request);
        answer(service, request).await.into_response()
    } else {
        answer(service, request).await.into_response()
    }
}
