//! The routes: the handler of each request, and its part of the `OpenAPI` document. Nothing is decided here.

#[cfg(feature = "http")]
mod callbacks;
#[cfg(feature = "http")]
mod crons;
#[cfg(feature = "http")]
mod events;
#[cfg(feature = "http")]
mod executions;
#[cfg(feature = "http")]
mod kinds;
#[cfg(feature = "http")]
mod limits;
#[cfg(feature = "http")]
mod operations;
#[cfg(feature = "http")]
mod queues;
#[cfg(feature = "http")]
mod system;
#[cfg(feature = "http")]
mod tasks;
#[cfg(feature = "http")]
mod workers;

#[cfg(feature = "http")]
use axum::Router;
#[cfg(feature = "http")]
use axum::routing::{MethodFilter, on};
#[cfg(feature = "http")]
use tickover_service::Service;
#[cfg(feature = "schema")]
use utoipa_axum::router::OpenApiRouter;

#[cfg(feature = "http")]
use crate::audit::Audited;
#[cfg(feature = "http")]
use crate::layers::layered;

#[cfg(test)]
pub(crate) use system::DOCUMENT;

/// The API's router over a service.
#[cfg(feature = "http")]
pub fn router(service: Service) -> Router {
    layered(routed().with_state(service))
}

/// The only mark that a route may have.
macro_rules! operators {
    (operators, $key:expr) => {
        $key
    };
}

/// The handler of a call. An operator's has an audit line.
#[cfg(feature = "http")]
macro_rules! handler {
    ($handler:path, $route:expr) => {
        $handler
    };
    ($handler:path, $route:expr, operators) => {
        Audited { route: $route, handler: $handler }
    };
}

/// Makes the router, the document and the list of operators' routes from one list of handlers. An operator's call steers
/// the work of others, or changes a cron, a limit, or what counts for all tasks of a kind.
macro_rules! routes {
    ($($method:ident $path:literal => $module:ident::$handler:ident $(for $operators:ident)?,)*) => {
        /// The methods and paths of all routes.
        #[cfg(test)]
        pub(crate) const ROUTES: &[(&str, &str)] = &[$((stringify!($method), $path)),*];

        /// The routes of operators' calls, each as its method, a space, and its path with names in braces: the keys of
        /// these routes in API Gateway. Deployments allow them apart from the others.
        pub const OPERATORS_ROUTES: &[&str] =
            &[$($(operators!($operators, concat!(stringify!($method), " ", $path)),)?)*];

        #[cfg(feature = "http")]
        fn routed() -> Router<Service> {
            let router = Router::new();
            $(let router = router.route($path, on(MethodFilter::$method, handler!(
                $module::$handler, concat!(stringify!($method), " ", $path) $(, $operators)?
            )));)*
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
    POST "/v1/tasks/{id}/retry" => tasks::retry for operators,
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
    POST "/v1/queues/{queue}/pause" => queues::pause for operators,
    POST "/v1/queues/{queue}/resume" => queues::resume for operators,
    GET "/v1/queues/{queue}/kinds" => kinds::list,
    GET "/v1/queues/{queue}/kinds/{kind}" => kinds::describe,
    PUT "/v1/queues/{queue}/kinds/{kind}" => kinds::set for operators,
    DELETE "/v1/queues/{queue}/kinds/{kind}" => kinds::delete for operators,
    GET "/v1/limits/{key}" => limits::limit,
    PUT "/v1/limits/{key}" => limits::set_limit for operators,
    DELETE "/v1/limits/{key}" => limits::unset_limit for operators,
    DELETE "/v1/limits/{key}/holders/{holder}" => limits::release_place for operators,
    DELETE "/v1/limits/{key}/rate" => limits::reset_rate for operators,
    POST "/v1/executions" => executions::start,
    GET "/v1/executions" => executions::list,
    GET "/v1/workflows" => executions::workflows,
    GET "/v1/executions/{id}" => executions::describe,
    POST "/v1/executions/{id}/cancel" => executions::cancel,
    POST "/v1/executions/{id}/terminate" => executions::terminate for operators,
    POST "/v1/executions/{id}/pause" => executions::pause for operators,
    POST "/v1/executions/{id}/resume" => executions::resume for operators,
    POST "/v1/executions/{id}/restart" => executions::restart for operators,
    POST "/v1/executions/{id}/rerun" => executions::rerun for operators,
    POST "/v1/executions/{id}/steps/{name}/retry" => executions::retry_step for operators,
    GET "/v1/executions/{id}/export" => executions::export,
    GET "/v1/executions/{id}/timeline" => executions::timeline,
    GET "/v1/executions/{id}/runs" => executions::runs,
    GET "/v1/executions/{id}/events" => events::events,
    POST "/v1/executions/{id}/events/{name}" => events::send_event,
    DELETE "/v1/executions/{id}/events/{name}" => events::clear_events,
    POST "/v1/crons" => crons::create for operators,
    GET "/v1/crons" => crons::list,
    GET "/v1/crons/{id}" => crons::describe,
    PUT "/v1/crons/{id}" => crons::replace for operators,
    DELETE "/v1/crons/{id}" => crons::delete for operators,
    POST "/v1/crons/{id}/pause" => crons::pause for operators,
    POST "/v1/crons/{id}/resume" => crons::resume for operators,
    POST "/v1/crons/{id}/trigger" => crons::trigger for operators,
    POST "/v1/operations" => operations::start for operators,
    GET "/v1/operations" => operations::list,
    GET "/v1/operations/{id}" => operations::describe,
    POST "/v1/operations/{id}/stop" => operations::stop for operators,
    GET "/healthz" => system::health,
    GET "/openapi.json" => system::document,
}
