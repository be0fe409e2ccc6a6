//! Reading tasks.

use tickover_core::task::Status;
use tickover_service::Service;
use tickover_service::tasks::describe::Described;

use tickover_wire::answer::{ListAnswer, TaskAnswer};
use tickover_wire::{Cursor, read};

use crate::answer::Answer;
use crate::problem::Problem;
use crate::{name, request};

use super::schedule::waiting;

/// A task with its payloads, its attempts, and what happens next.
pub async fn describe(service: &Service, id: &str) -> Result<Answer, Problem> {
    let described = service.describe(&name::task_id(id)?).await?;
    Answer::ok(&TaskAnswer { task: waiting(service, &described).await?, duplicate: None })
}

/// A page of tasks. The query is a list of names and values, already percent-decoded.
pub async fn list(service: &Service, query: &[(String, String)]) -> Result<Answer, Problem> {
    let query = request::tasks(read::query(query)?);
    let page = service.list(&query.of, query.limit, query.cursor.as_deref()).await?;
    let mut tasks = Vec::with_capacity(page.items.len());
    for task in page.items {
        // Each queue is read once in some seconds.
        let in_paused_queue = task.status() == Status::Pending && service.is_paused(&task.queue).await?;
        let described = Described { in_paused_queue, ..Described::inline(task) };
        tasks.push(waiting(service, &described).await?);
    }
    Answer::ok(&ListAnswer { tasks, cursor: page.next.map(Cursor) })
}
