//! Operators' calls over HTTP.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use axum::RequestExt as _;
use axum::extract::{Query, RawPathParams, Request};
use futures::FutureExt as _;
use tickover_core::by::By;
use tickover_service::Service;
use tickover_wire::Route;
use tickover_wire::request::ReasonQuery;

use super::{Identity, noted};
use crate::answer::Answer;
use crate::problem::Problem;

/// The key of the route by which an HTTP API of API Gateway let a request in, as an extension of the request. Without it,
/// nothing distinguishes operators' calls from others: a local server, or a function URL.
#[derive(Clone, Debug)]
pub struct RouteKey(pub String);

/// Makes an operator's call: it passes on whose call it is, and writes the audit line.
pub(crate) async fn operate(
    route: Route,
    service: Service,
    mut request: Request,
    call: impl AsyncFnOnce(Service, Request) -> Result<Answer, Problem>,
) -> Result<Answer, Problem> {
    let identity = request.extensions().get::<Identity>().cloned();
    let names: Vec<String> = match request.extract_parts::<RawPathParams>().await {
        Ok(names) => names.iter().map(|(_, name)| name.to_owned()).collect(),
        Err(_) => vec![],
    };
    let service = known(service, &request);
    let reason = reason(&request);
    let answered = async {
        if is_foreign(&request, route) {
            return Err(Problem::foreign_route());
        }
        AssertUnwindSafe(call(service, request))
            .catch_unwind()
            .await
            .unwrap_or_else(|payload| Err(panicked(payload)))
    };
    noted(identity, route, &names, reason.as_deref(), answered).await
}

/// The service for the caller of a request: what it changes says whose call it was.
pub(crate) fn known(service: Service, request: &Request) -> Service {
    match request.extensions().get::<Identity>() {
        Some(identity) => service.called_by(By::caller(identity.caller.clone())),
        None => service,
    }
}

/// Why a call is made, by its query.
fn reason(request: &Request) -> Option<String> {
    let Query(query) = Query::<ReasonQuery>::try_from_uri(request.uri()).ok()?;
    query.reason
}

/// Whether an operator's call came by another route than its own: that route may need less of the caller.
fn is_foreign(request: &Request, route: Route) -> bool {
    request.extensions().get::<RouteKey>().is_some_and(|RouteKey(came_by)| came_by != route.key())
}

/// The answer after a panic in a handler.
pub(crate) fn panicked(_payload: Box<dyn Any + Send>) -> Problem {
    // The panic message may contain parts of a payload, so it isn't logged.
    tracing::error!("a handler panicked");
    Problem::internal()
}
