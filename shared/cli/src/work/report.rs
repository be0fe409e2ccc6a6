//! The report of an attempt's outcome to the server, with retries.

use tickover::client::ClientError;
use tickover_service::telemetry::field;
use tickover_wire::Verbatim;
use tickover_wire::answer::{ClaimedView, TaskAnswer};
use tickover_wire::request::{CompleteRequest, FailError, FailRequest, ReleaseRequest};
use tokio::time::sleep;

use super::{Worker, backoff};

/// Tries in total: about 20 s.
const TRIES: u32 = 10;

/// The outcome of an attempt.
#[derive(Debug)]
pub(super) enum Report {
    /// With this result.
    Complete(Option<Verbatim>),
    /// With an error.
    Fail(FailError),
    /// Released without a result: another worker may claim it.
    Release,
}

/// Sends a report until it is answered. A repeated report is safe: the first one that is recorded counts.
pub(super) async fn send(
    worker: &Worker,
    task: &ClaimedView,
    report: &Report,
) -> Result<TaskAnswer, ClientError> {
    let mut tries = 0;
    loop {
        match send_once(worker, task, report).await {
            Err(error) if error.is_transient() && tries + 1 < TRIES => {
                tracing::debug!({ field::TASK_ID } = %task.id, %error, "report not answered, retrying");
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
