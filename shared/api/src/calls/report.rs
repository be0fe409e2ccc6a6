//! The reports of workers.

use futures::stream::{self, StreamExt as _};
use tickover_core::task::command::SignOfLife;
use tickover_service::Service;
use tickover_service::tasks::describe::Described;
use tickover_service::tasks::work::{Beat, Closed};

use tickover_wire::answer::{BatchAnswer, HeartbeatAnswer, TaskAnswer};
use tickover_wire::request::{
    CompleteBatchEntry, CompleteRequest, FailRequest, HeartbeatRequest, ReleaseRequest,
};
use tickover_wire::{Instant, LeaseToken, Progress};

use crate::answer::{Answer, result};
use crate::problem::Problem;
use crate::{body, name, request, view};

use super::entries;

/// How many completions of a batch are written concurrently.
const COMPLETIONS_CONCURRENT: usize = 16;

/// Records a result.
pub async fn complete(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::task_id(id)?;
    let CompleteRequest { lease, output } = body::read(body)?;
    Answer::ok(&complete_one(service, CompleteBatchEntry { id, lease, output }).await?)
}

/// Records many results: `{"tasks": [{id, lease, output}]}`. It answers with one result for each, in order.
pub async fn complete_batch(service: &Service, body: &[u8]) -> Result<Answer, Problem> {
    let results = stream::iter(entries(body, service.limits().batch)?)
        .map(|entry| async move {
            let answered = match entry {
                Ok(entry) => complete_one(service, entry).await,
                Err(reject) => Err(reject.into()),
            };
            result(answered.map(|answer| (200, answer)))
        })
        .buffered(COMPLETIONS_CONCURRENT)
        .collect()
        .await;
    Answer::ok(&BatchAnswer { results })
}

/// Records an error. The task's retry policy decides whether there is another attempt.
pub async fn fail(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::task_id(id)?;
    let FailRequest { lease: LeaseToken(lease), error } = body::read_failure(body)?;
    let (error, retryable) = request::failure(error);
    let closed = service.fail(&id, &lease, error, retryable).await?;
    Answer::ok(&answer(service, closed).await?)
}

/// Extends the lease, restarts the heartbeat timeout unless the worker speaks for itself alone, and answers with the time
/// that is left.
pub async fn heartbeat(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::task_id(id)?;
    let HeartbeatRequest { lease: LeaseToken(lease), progress, details, worker_only } = body::read(body)?;
    let beat = Beat {
        sign_of: if worker_only == Some(true) { SignOfLife::Worker } else { SignOfLife::Both },
        progress: progress.map(|Progress(part)| part),
        details: request::payload(details),
    };
    let renewed = service.beat(&id, &lease, beat).await?;
    let now = service.now();
    Answer::ok(&HeartbeatAnswer {
        lease_expires_at: renewed.lease_expires_at.into(),
        heartbeat_at: renewed.heartbeat_at.map(Instant),
        deadline_at: renewed.deadline_at.map(Instant),
        remaining_ms: renewed.deadline_at.map(|deadline| deadline.since(now).as_u64()),
        cancel_requested: renewed.cancel_requested,
    })
}

/// Releases a task without a result. The attempt doesn't count.
pub async fn release(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::task_id(id)?;
    let ReleaseRequest { lease: LeaseToken(lease) } = body::read(body)?;
    let closed = service.release(&id, &lease).await?;
    Answer::ok(&answer(service, closed).await?)
}

async fn complete_one(service: &Service, entry: CompleteBatchEntry) -> Result<TaskAnswer, Problem> {
    let CompleteBatchEntry { id, lease: LeaseToken(lease), output } = entry;
    let closed = service.complete(&id, &lease, request::payload(output)).await?;
    answer(service, closed).await
}

/// A repeated report is answered with the whole stored record. A first report is answered without reading payloads
/// back: the caller knows them, and it would cost a read for each task.
async fn answer(service: &Service, closed: Closed) -> Result<TaskAnswer, Problem> {
    let Closed { task, duplicate, output } = closed;
    let described = if duplicate {
        service.with_payloads(task).await?
    } else {
        let inline = Described::inline(task);
        Described { output: output.or(inline.output), ..inline }
    };
    let task = view::task(&described, service.now());
    Ok(TaskAnswer { task, duplicate: duplicate.then_some(true) })
}
