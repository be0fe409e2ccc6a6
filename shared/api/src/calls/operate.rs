//! The calls of operators on tasks.

use tickover_core::task::{Status, Task};
use tickover_service::Service;
use tickover_service::tasks::describe::Described;
use tickover_service::tasks::operate::CancelReply;

use tickover_wire::OpenEnum;
use tickover_wire::answer::{CancelAnswer, CancelOutcome, TaskAnswer, TaskView};
use tickover_wire::request::CancelRequest;

use crate::answer::Answer;
use crate::problem::Problem;
use crate::{body, name, view};

/// Cancels a task: at once if no worker has it or with `force`, otherwise through its worker.
pub async fn cancel(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::task_id(id)?;
    let CancelRequest { force } = body::read_or_empty(body)?;
    let (task, reply) = service.cancel(&id, force.unwrap_or_default()).await?;
    let outcome = OpenEnum::Known(outcome(reply));
    Answer::ok(&CancelAnswer { task: inline(service, task), outcome })
}

/// Revives a task that ended without a result.
pub async fn retry(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::task_id(id)?;
    body::read_nothing(body)?;
    let task = service.retry(&id).await?;
    Answer::ok(&TaskAnswer { task: inline(service, task), duplicate: None })
}

/// The outcome of a cancellation.
pub(super) const fn outcome(reply: CancelReply) -> CancelOutcome {
    match reply {
        CancelReply::Cancelled => CancelOutcome::Cancelled,
        CancelReply::Requested => CancelOutcome::Requested,
        CancelReply::AlreadyFinished => CancelOutcome::AlreadyFinished,
    }
}

/// Shows only the payloads that are inline in the record: a call that has taken effect must not fail because a payload
/// can't be read.
fn inline(service: &Service, task: Task) -> TaskView {
    let in_paused_queue = task.status() == Status::Pending && service.is_known_as_paused(&task.queue);
    view::task(&Described { in_paused_queue, ..Described::inline(task) }, service.now())
}
