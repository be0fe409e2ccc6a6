//! The routes: the handler of each request, and its part of the `OpenAPI` document. Nothing is decided here.

mod callbacks;
mod crons;
mod events;
mod executions;
mod kinds;
mod limits;
mod old_names;
mod operations;
mod queues;
mod system;
mod tasks;
mod workers;

use axum::Router;
use axum::handler::Handler;
use axum::middleware;
use axum::routing::{MethodFilter, on};
use tickover_service::Service;
#[cfg(feature = "schema")]
use utoipa_axum::router::OpenApiRouter;

use crate::layers::layered;

#[cfg(test)]
pub(crate) use system::DOCUMENT;

/// The API's router over a service.
pub fn router(service: Service) -> Router {
    layered(routed().with_state(service))
}

fn route<H: Handler<T, Service>, T: 'static>(
    router: Router<Service>,
    method: MethodFilter,
    path: &str,
    handler: H,
) -> Router<Service> {
    let served = on(method, handler);
    let router = match old_names::path(path) {
        Some(old) => router.route(&old, served.clone().layer(middleware::from_fn(old_names::answer))),
        None => router,
    };
    router.route(path, served)
}

/// Makes the router and the document from one list of handlers.
macro_rules! routes {
    ($($method:ident $path:literal => $module:ident::$handler:ident,)*) => {
        /// The methods and paths of all routes.
        #[cfg(test)]
        pub(crate) const ROUTES: &[(&str, &str)] = &[$((stringify!($method), $path)),*];

        fn routed() -> Router<Service> {
            let router = Router::new();
            $(let router = route(router, MethodFilter::$method, $path, $module::$handler);)*
            router
        }

        /// All routes, with their parts of the document.
        #[cfg(feature = "schema")]
        pub(crate) fn documented() -> OpenApiRouter<Service> {
            OpenApiRouter::with_openapi(crate::openapi::base())
                $(.routes(utoipa_axum::routes!($module::$handler)))*
        }
    };
}

routes! {
    POST "/v1/tasks" => tasks::schedule,
    GET "/v1/tasks" => tasks::list,
    POST "/v1/tasks/batch" => tasks::schedule_batch,
    GET "/v1/tasks/{id}" => tasks::describe,
    POST "/v1/tasks/{id}/cancel" => tasks::cancel,
    POST "/v1/tasks/{id}/retry" => tasks::retry,
    POST "/v1/queues/{queue}/claim" => workers::claim,
    POST "/v1/tasks/{id}/claim" => workers::claim_by_id,
    POST "/v1/tasks/{id}/complete" => workers::complete,
    POST "/v1/tasks/complete" => workers::complete_batch,
    POST "/v1/tasks/{id}/fail" => workers::fail,
    POST "/v1/tasks/{id}/heartbeat" => workers::heartbeat,
    POST "/v1/tasks/{id}/release" => workers::release,
    POST "/v1/tasks/{id}/callback" => callbacks::create,
    POST "/v1/callbacks/{token}/complete" => callbacks::complete,
    POST "/v1/callbacks/{token}/fail" => callbacks::fail,
    POST "/v1/callbacks/{token}/heartbeat" => callbacks::heartbeat,
    GET "/v1/queues" => queues::queues,
    GET "/v1/queues/{queue}" => queues::queue,
    POST "/v1/queues/{queue}/pause" => queues::pause,
    POST "/v1/queues/{queue}/resume" => queues::resume,
    GET "/v1/queues/{queue}/kinds" => kinds::list,
    GET "/v1/queues/{queue}/kinds/{kind}" => kinds::describe,
    PUT "/v1/queues/{queue}/kinds/{kind}" => kinds::set,
    DELETE "/v1/queues/{queue}/kinds/{kind}" => kinds::delete,
    GET "/v1/limits/{key}" => limits::limit,
    PUT "/v1/limits/{key}" => limits::set_limit,
    DELETE "/v1/limits/{key}" => limits::unset_limit,
    DELETE "/v1/limits/{key}/holders/{holder}" => limits::release_place,
    DELETE "/v1/limits/{key}/rate" => limits::reset_rate,
    POST "/v1/executions" => executions::start,
    GET "/v1/executions" => executions::list,
    GET "/v1/workflows" => executions::workflows,
    GET "/v1/executions/{id}" => executions::describe,
    POST "/v1/executions/{id}/cancel" => executions::cancel,
    POST "/v1/executions/{id}/terminate" => executions::terminate,
    POST "/v1/executions/{id}/pause" => executions::pause,
    POST "/v1/executions/{id}/resume" => executions::resume,
    POST "/v1/executions/{id}/restart" => executions::restart,
    POST "/v1/executions/{id}/rerun" => executions::rerun,
    POST "/v1/executions/{id}/steps/{name}/retry" => executions::retry_step,
    GET "/v1/executions/{id}/export" => executions::export,
    GET "/v1/executions/{id}/timeline" => executions::timeline,
    GET "/v1/executions/{id}/runs" => executions::runs,
    GET "/v1/executions/{id}/events" => events::events,
    POST "/v1/executions/{id}/events/{name}" => events::send_event,
    DELETE "/v1/executions/{id}/events/{name}" => events::clear_events,
    POST "/v1/crons" => crons::create,
    GET "/v1/crons" => crons::list,
    GET "/v1/crons/{id}" => crons::describe,
    PUT "/v1/crons/{id}" => crons::replace,
    DELETE "/v1/crons/{id}" => crons::delete,
    POST "/v1/crons/{id}/pause" => crons::pause,
    POST "/v1/crons/{id}/resume" => crons::resume,
    POST "/v1/crons/{id}/trigger" => crons::trigger,
    POST "/v1/operations" => operations::start,
    GET "/v1/operations" => operations::list,
    GET "/v1/operations/{id}" => operations::describe,
    POST "/v1/operations/{id}/stop" => operations::stop,
    GET "/healthz" => system::health,
    GET "/openapi.json" => system::document,
}
