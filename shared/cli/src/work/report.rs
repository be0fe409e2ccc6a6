//! Telling the server how an attempt ended, however often that takes.

use tickover_service::telemetry::field;
use tokio::time::sleep;

use crate::client::{CallError, ClaimedTask, Closed, Report};

use super::{Worker, backoff};

/// Tries in all: some twenty seconds.
const TRIES: u32 = 10;

/// Sends a report until it is answered. Repeating it is safe: the first one that arrives stands.
pub(super) async fn send(worker: &Worker, task: &ClaimedTask, report: &Report) -> Result<Closed, CallError> {
    let mut tries = 0;
    loop {
        match worker.client.report(&task.id, &task.lease, report).await {
            Err(error) if error.is_transient() && tries + 1 < TRIES => {
                tracing::debug!({ field::TASK_ID } = %task.id, %error, "report not answered, trying again");
                sleep(backoff::delay(tries, &error)).await;
                tries += 1;
            }
            answer => return answer,
        }
    }
}
