//! The routes: the handler of each request, and its part of the `OpenAPI` document. Nothing is decided here.

mod crons;
mod events;
mod executions;
mod old_names;
mod queues;
mod system;
mod tasks;
mod workers;

use axum::Router;
use axum::handler::Handler;
use axum::middleware;
use axum::routing::on;
use pastey::paste;
use tickover_service::Service;
use utoipa::Path;
use utoipa_axum::PathItemExt as _;
use utoipa_axum::router::OpenApiRouter;

use crate::layers::layered;
use crate::openapi;

/// The API's router over a service.
pub fn router(service: Service) -> Router {
    layered(routed().with_state(service))
}

/// Routes a documented method and path to its handler. It reads nothing else from the document.
fn route<D: Path, H: Handler<T, Service>, T: 'static>(
    router: Router<Service>,
    handler: &H,
) -> Router<Service> {
    D::methods().iter().fold(router, |router, method| {
        let served = on(method.to_method_filter(), handler.clone());
        let router = match old_names::path(&D::path()) {
            Some(old) => router.route(&old, served.clone().layer(middleware::from_fn(old_names::answer))),
            None => router,
        };
        router.route(&D::path(), served)
    })
}

/// Makes the router and the document from one list of handlers.
macro_rules! routes {
    ($($module:ident::$handler:ident),* $(,)?) => {
        /// All routes, without the document: it would be compiled into each archive that has a router.
        fn routed() -> Router<Service> {
            let router = Router::new();
            $(let router = paste! { route::<$module::[<__path_ $handler>], _, _>(router, &$module::$handler) };)*
            router
        }

        /// All routes, with their parts of the document.
        pub(crate) fn documented() -> OpenApiRouter<Service> {
            OpenApiRouter::with_openapi(openapi::base())
                $(.routes(utoipa_axum::routes!($module::$handler)))*
        }
    };
}

routes!(
    tasks::schedule,
    tasks::list,
    tasks::schedule_batch,
    tasks::describe,
    tasks::cancel,
    tasks::retry,
    workers::claim,
    workers::claim_by_id,
    workers::complete,
    workers::complete_batch,
    workers::fail,
    workers::heartbeat,
    workers::release,
    queues::queues,
    queues::queue,
    queues::pause,
    queues::resume,
    executions::start,
    executions::list,
    executions::describe,
    executions::cancel,
    executions::terminate,
    executions::pause,
    executions::resume,
    executions::restart,
    executions::rerun,
    executions::retry_step,
    executions::timeline,
    events::events,
    events::send_event,
    events::clear_events,
    crons::create,
    crons::list,
    crons::describe,
    crons::replace,
    crons::delete,
    crons::pause,
    crons::resume,
    crons::trigger,
    system::health,
    system::document,
);
