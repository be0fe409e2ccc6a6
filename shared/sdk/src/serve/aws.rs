//! A worker that polls its queues on AWS: in a container, on a machine, on a laptop.

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
    worker.run(asked_to_stop()).await;
    Ok(())
}
