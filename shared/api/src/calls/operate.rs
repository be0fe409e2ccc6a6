//! What operators do to tasks.

use tickover_core::task::Task;
use tickover_service::Service;
use tickover_service::describe::Described;
use tickover_service::operate::CancelReply;

use crate::answer::Answer;
use crate::body::{self, Empty};
use crate::parse::{self, CANCEL_FIELDS};
use crate::problem::Problem;
use crate::view::{CancelAnswer, TaskAnswer, TaskView};

/// Ends a task, or asks its worker to; with `force` at once.
pub async fn cancel(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::task_id("id", id)?;
    let force = parse::cancel(&body::object(body, CANCEL_FIELDS, Empty::IsObject)?)?;
    let (task, reply) = service.cancel(&id, force).await?;
    let outcome = match reply {
        CancelReply::Cancelled => "cancelled",
        CancelReply::Requested => "requested",
        CancelReply::AlreadyFinished => "already_finished",
    };
    Answer::ok(&CancelAnswer { task: view(service, task), outcome })
}

/// Revives a task that ended without a result.
pub async fn retry(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::task_id("id", id)?;
    body::object(body, &[], Empty::IsObject)?;
    let task = service.retry(&id).await?;
    Answer::ok(&TaskAnswer { task: view(service, task), duplicate: None })
}

/// Only what the record holds itself: a call that has taken effect must not fail for want of a payload.
fn view(service: &Service, task: Task) -> TaskView {
    TaskView::of(&Described::inline(task), service.now())
}
