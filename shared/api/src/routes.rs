//! Every route: where a request goes, and what the `OpenAPI` document says of it. Nothing is decided here.

mod events;
mod executions;
mod queues;
mod recurrences;
mod system;
mod tasks;
mod workers;

use axum::Router;
use tickover_service::Service;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::layers::layered;
use crate::openapi;

/// The API over a service, ready to be served.
pub fn router(service: Service) -> Router {
    layered(all().split_for_parts().0.with_state(service))
}

/// All routes, each with its part of the document.
pub(crate) fn all() -> OpenApiRouter<Service> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(tasks::schedule, tasks::list))
        .routes(routes!(tasks::schedule_batch))
        .routes(routes!(tasks::describe))
        .routes(routes!(tasks::cancel))
        .routes(routes!(tasks::retry))
        .routes(routes!(workers::claim))
        .routes(routes!(workers::claim_by_id))
        .routes(routes!(workers::complete))
        .routes(routes!(workers::complete_batch))
        .routes(routes!(workers::fail))
        .routes(routes!(workers::heartbeat))
        .routes(routes!(workers::release))
        .routes(routes!(queues::queues))
        .routes(routes!(queues::queue))
        .routes(routes!(queues::pause))
        .routes(routes!(queues::resume))
        .routes(routes!(executions::start, executions::list))
        .routes(routes!(executions::describe))
        .routes(routes!(executions::cancel))
        .routes(routes!(executions::terminate))
        .routes(routes!(executions::pause))
        .routes(routes!(executions::resume))
        .routes(routes!(executions::restart))
        .routes(routes!(executions::rerun))
        .routes(routes!(executions::retry_step))
        .routes(routes!(executions::timeline))
        .routes(routes!(events::events))
        .routes(routes!(events::offer, events::drain))
        .routes(routes!(recurrences::create, recurrences::list))
        .routes(routes!(recurrences::describe, recurrences::replace, recurrences::delete))
        .routes(routes!(recurrences::pause))
        .routes(routes!(recurrences::resume))
        .routes(routes!(recurrences::trigger))
        .routes(routes!(system::health))
        .routes(routes!(system::document))
}
