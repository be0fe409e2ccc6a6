//! A worker that polls its queues on AWS: in a container, on a server, on a laptop.

use tickover_core::id::QueueName;
use tickover_service::stop::stop_requested;

use super::ServeError;
use crate::registry::Registry;
use crate::worker::{Worker, WorkerSettings};

/// Runs until the process is asked to stop.
pub(super) async fn run(registry: Registry, settings: WorkerSettings) -> Result<(), ServeError> {
    let app = tickover_lambda::boot::app()
        .await
        .map_err(|error| ServeError::Environment { problem: error.to_string() })?;
    let worker = Worker::new(app.service, registry, settings)?;
    let names = |names: Vec<&str>| names.join(", ");
    let queues = worker.queues().iter();
    let unknown: Vec<_> = queues
        .clone()
        .filter(|queue| {
            let is_found = app.config.any_queue.as_ref().is_some_and(|pattern| pattern.url(queue).is_some());
            !is_found && !app.config.queues.contains_key(*queue)
        })
        .map(QueueName::as_str)
        .collect();
    // A queue without a URL would never be polled, and no other check would report it.
    if !unknown.is_empty() {
        let problem = format!("TICKOVER_QUEUES has no URL for the worker's queues {}", names(unknown));
        return Err(ServeError::Environment { problem });
    }
    tracing::info!(queues = names(queues.map(QueueName::as_str).collect()), "the worker polls its queues");
    worker.announce().await;
    worker.run(stop_requested()).await;
    tracing::info!("the worker has stopped");
    app.metrics.flush();
    Ok(())
}
