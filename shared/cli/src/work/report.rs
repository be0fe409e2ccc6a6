//! Telling the server how an attempt ended, however often that takes.

use tickover::client::ClientError;
use tickover_service::telemetry::field;
use tickover_wire::Verbatim;
use tickover_wire::answer::{ClaimedView, TaskAnswer};
use tickover_wire::request::{CompleteRequest, FailError, FailRequest, ReleaseRequest};
use tokio::time::sleep;

use super::{Worker, backoff};

/// Tries in all: some twenty seconds.
const TRIES: u32 = 10;

/// How an attempt ends.
#[derive(Debug)]
pub(super) enum Report {
    /// With this result.
    Complete(Option<Verbatim>),
    /// With an error.
    Fail(FailError),
    /// Undone: somebody else is to have it.
    Release,
}

/// Sends a report until it is answered. Repeating it is safe: the first one that arrives stands.
pub(super) async fn send(
    worker: &Worker,
    task: &ClaimedView,
    report: &Report,
) -> Result<TaskAnswer, ClientError> {
    let mut tries = 0;
    loop {
        match send_once(worker, task, report).await {
            Err(error) if error.is_transient() && tries + 1 < TRIES => {
                tracing::debug!({ field::TASK_ID } = %task.id, %error, "report not answered, trying again");
                sleep(backoff::delay(tries, &error)).await;
                tries += 1;
            }
            answer => return answer,
        }
    }
}

async fn send_once(worker: &Worker, task: &ClaimedView, report: &Report) -> Result<TaskAnswer, ClientError> {
    let (api, id, lease) = (worker.client.api(), &task.id, task.lease.clone());
    match report {
        Report::Complete(output) => {
            api.complete(id, &CompleteRequest { lease, output: output.clone() }).await
        }
        Report::Fail(error) => api.fail(id, &FailRequest { lease, error: error.clone() }).await,
        Report::Release => api.release(id, &ReleaseRequest { lease }).await,
    }
}
