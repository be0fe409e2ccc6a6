//! Operators' calls over HTTP.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;

use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::handler::Handler;
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use http::request::Parts;
use tickover_core::by::By;
use tickover_service::Service;

use super::{Identity, about, line};
use crate::problem::Problem;

/// The key of the route by which an HTTP API of API Gateway let a request in, as an extension of the request. Without it,
/// nothing distinguishes operators' calls from others: a local server, or a function URL.
#[derive(Clone, Debug)]
pub struct RouteKey(pub String);

/// What an answer says for the audit line, as an extension of the response.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    /// What the call is about, if its path doesn't name it.
    Id(String),
    /// The code of a problem.
    Code(&'static str),
}

/// The handler of an operator's call: it passes on whose call it is, and writes the audit line.
#[derive(Clone, Copy)]
pub(crate) struct Audited<H> {
    pub(crate) route: &'static str,
    pub(crate) handler: H,
}

impl<H, T> Handler<T, Service> for Audited<H>
where
    H: Handler<T, Service>,
    T: 'static,
{
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn call(self, request: Request, service: Service) -> Self::Future {
        let Self { route, handler } = self;
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let identity = parts.extensions.get::<Identity>().cloned();
            let names = RawPathParams::from_request_parts(&mut parts, &()).await;
            let about = names.ok().and_then(|names| about(&names));
            let response = if is_foreign(&parts, route) {
                Problem::foreign_route().into_response()
            } else {
                let service = match &identity {
                    Some(identity) => service.called_by(By::caller(identity.caller.clone())),
                    None => service,
                };
                let call = handler.call(Request::from_parts(parts, body), service);
                AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(panicked)
            };
            let (id, code) = match response.extensions().get() {
                Some(Said::Id(id)) => (Some(id.as_str()), None),
                Some(Said::Code(code)) => (None, Some(*code)),
                None => (None, None),
            };
            line(identity.as_ref(), route, about.as_deref().or(id), response.status().as_u16(), code);
            response
        })
    }
}

/// Whether an operator's call came by another route than its own: that route may need less of the caller.
fn is_foreign(parts: &Parts, route: &str) -> bool {
    parts.extensions.get::<RouteKey>().is_some_and(|RouteKey(came_by)| came_by != route)
}

/// The answer after a panic in a handler.
pub(crate) fn panicked(_payload: Box<dyn Any + Send>) -> Response {
    // The panic message may contain parts of a payload, so it isn't logged.
    tracing::error!("a handler panicked");
    Problem::internal().into_response()
}
