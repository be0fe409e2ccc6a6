//! A worker that polls its queues on AWS: in a container, on a server, on a laptop.

use tickover_core::id::QueueName;
use tickover_lambda::App;
use tickover_service::stop::stop_requested;

use super::ServeError;
use crate::registry::Registry;
use crate::worker::{Worker, WorkerSettings};

/// Runs until the process is asked to stop.
pub(super) async fn run(
    registry: Registry,
    settings: WorkerSettings,
    system: Option<String>,
) -> Result<(), ServeError> {
    let app = match system {
        Some(system) => found(&system).await?,
        None => tickover_lambda::boot::app().await.map_err(environment)?,
    };
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

/// What the worker works with, found by the system's name.
#[cfg(feature = "client-aws")]
async fn found(system: &str) -> Result<App, ServeError> {
    let aws = crate::client::aws::Aws::from_env().await.map_err(environment)?;
    aws.core(system).await.map_err(environment)?.app().await.map_err(environment)
}

#[cfg(not(feature = "client-aws"))]
async fn found(_: &str) -> Result<App, ServeError> {
    std::future::ready(Err(ServeError::Feature { feature: "client-aws" })).await
}

fn environment(error: impl std::fmt::Display) -> ServeError {
    ServeError::Environment { problem: error.to_string() }
}
