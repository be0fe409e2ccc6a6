//! A worker of another process: of `tickover dev`, of another program's `serve`, or of a deployment's API.

use tickover_core::id::QueueName;
use tickover_service::stop::stop_requested;
use tickover_service::telemetry::{self, LogFormat};

use super::ServeError;
use crate::client::Http;
use crate::registry::Registry;
use crate::worker::{Worker, WorkerSettings};

/// Runs until the process is asked to stop. The other process may be restarted, or be started later.
pub(super) async fn run(
    registry: Registry,
    settings: WorkerSettings,
    http: Http,
    log: Option<&str>,
) -> Result<(), ServeError> {
    let directives = log.unwrap_or("info");
    let filter = telemetry::filter(directives).map_err(|error| ServeError::Environment {
        problem: format!("TICKOVER_LOG must be log directives such as \"info\", not {directives:?}: {error}"),
    })?;
    telemetry::init(filter, LogFormat::Text);
    let url = http.url().to_owned();
    let worker = Worker::over_http(http, registry, settings)?;
    let queues: Vec<&str> = worker.queues().iter().map(QueueName::as_str).collect();
    tracing::info!(queues = queues.join(", "), "a worker of {url}");
    worker.run(stop_requested()).await;
    tracing::info!("the worker has stopped");
    Ok(())
}

/// The address in `TICKOVER_ENDPOINT`.
pub(super) fn at(endpoint: &str) -> Result<Http, ServeError> {
    Http::new(endpoint)
        .map_err(|error| ServeError::Environment { problem: format!("TICKOVER_ENDPOINT: {error}") })
}
