//! A worker that polls its queues on AWS: in a container, on a machine, on a laptop.

use tickover_core::id::QueueName;

use super::ServeError;
use super::stop::asked_to_stop;
use crate::registry::Registry;
use crate::worker::{Worker, WorkerSettings};

/// Works until told to stop.
pub(super) async fn run(registry: Registry, settings: WorkerSettings) -> Result<(), ServeError> {
    let app = tickover_lambda::boot::app()
        .await
        .map_err(|error| ServeError::Environment { problem: error.to_string() })?;
    let worker = Worker::new(app.service, registry, settings)?;
    let names = |names: Vec<&str>| names.join(", ");
    let queues = worker.queues().iter();
    let unknown: Vec<_> = queues
        .clone()
        .filter(|queue| !app.config.queues.contains_key(*queue))
        .map(QueueName::as_str)
        .collect();
    // Nobody would ever take what is sent there, and nothing else would say so.
    if !unknown.is_empty() {
        let problem = format!("TICKOVER_QUEUES has no URL for what work is taken from: {}", names(unknown));
        return Err(ServeError::Environment { problem });
    }
    tracing::info!(queues = names(queues.map(QueueName::as_str).collect()), "work is taken");
    worker.announce().await;
    worker.run(asked_to_stop()).await;
    tracing::info!("stopped as told");
    app.metrics.flush();
    Ok(())
}
