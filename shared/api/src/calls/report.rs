//! What workers report.

use futures::stream::{self, StreamExt as _};
use tickover_core::time::Timestamp;
use tickover_service::Service;
use tickover_service::describe::Described;
use tickover_service::work::Closed;

use crate::answer::Answer;
use crate::body::{self, Empty};
use crate::parse::{
    self, COMPLETE_ENTRY_FIELDS, COMPLETE_FIELDS, CompleteEntry, FAIL_FIELDS, Field, HEARTBEAT_FIELDS,
    RELEASE_FIELDS,
};
use crate::problem::Problem;
use crate::view::{BatchAnswer, BatchResult, HeartbeatAnswer, TaskAnswer, TaskView};

use super::entries;

/// Completions of a batch that are written at once.
const AT_ONCE: usize = 16;

/// Records a result.
pub async fn complete(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::task_id("id", id)?;
    let completion = parse::complete(&body::object(body, COMPLETE_FIELDS, Empty::IsMissing)?)?;
    Answer::ok(&complete_one(service, CompleteEntry { id, completion }).await?)
}

/// Records many results: `{"tasks": [{id, lease, output}]}`, one answer each, in order.
pub async fn complete_batch(service: &Service, body: &[u8]) -> Result<Answer, Problem> {
    let read = |entry: &Field<'_>| parse::complete_entry(&entry.entry(COMPLETE_ENTRY_FIELDS)?);
    let parsed: Vec<_> = entries(body, service.limits().batch)?.iter().map(read).collect();
    let results = stream::iter(parsed)
        .map(|entry| async move {
            let answered = match entry {
                Ok(entry) => complete_one(service, entry).await,
                Err(reject) => Err(reject.into()),
            };
            answered.map_or_else(BatchResult::failure, |answer| BatchResult::success(200, answer))
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    Answer::ok(&BatchAnswer { results })
}

/// Records an error; the task's policy says whether it is tried again.
pub async fn fail(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::task_id("id", id)?;
    let report = parse::fail(&body::object(body, FAIL_FIELDS, Empty::IsMissing)?)?;
    let closed = service.fail(&id, &report.lease, report.error, report.retryable).await?;
    Answer::ok(&answer(service, closed).await?)
}

/// Renews a lease and the heartbeat timeout, and tells how much time is left.
pub async fn heartbeat(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::task_id("id", id)?;
    let sign = parse::heartbeat(&body::object(body, HEARTBEAT_FIELDS, Empty::IsMissing)?)?;
    let renewed = service.heartbeat(&id, &sign.lease, sign.progress).await?;
    let now = service.now();
    Answer::ok(&HeartbeatAnswer {
        lease_expires_at: renewed.lease_expires_at.to_rfc3339(),
        deadline_at: renewed.deadline_at.map(Timestamp::to_rfc3339),
        remaining_ms: renewed.deadline_at.map(|deadline| deadline.since(now).as_u64()),
        cancel_requested: renewed.cancel_requested,
    })
}

/// Gives a task back undone; the attempt doesn't count.
pub async fn release(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::task_id("id", id)?;
    let lease = parse::release(&body::object(body, RELEASE_FIELDS, Empty::IsMissing)?)?;
    let closed = service.release(&id, &lease).await?;
    Answer::ok(&answer(service, closed).await?)
}

async fn complete_one(service: &Service, entry: CompleteEntry) -> Result<TaskAnswer, Problem> {
    let CompleteEntry { id, completion } = entry;
    let closed = service.complete(&id, &completion.lease, completion.output).await?;
    answer(service, closed).await
}

/// A repetition is answered with the whole stored record; a first report with what is at hand, because reading
/// back what its sender knows would cost every task a read.
async fn answer(service: &Service, closed: Closed) -> Result<TaskAnswer, Problem> {
    let Closed { task, duplicate, output } = closed;
    let described = if duplicate {
        service.with_payloads(task).await?
    } else {
        let inline = Described::inline(task);
        Described { output: output.or(inline.output), ..inline }
    };
    let task = TaskView::of(&described, service.now());
    Ok(TaskAnswer { task, duplicate: duplicate.then_some(true) })
}
