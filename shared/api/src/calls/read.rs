//! Reading tasks.

use tickover_service::Service;
use tickover_service::describe::Described;

use crate::answer::Answer;
use crate::parse;
use crate::problem::Problem;
use crate::view::{ListAnswer, TaskAnswer, TaskView};

/// A task with its payloads, its attempts, and what happens next.
pub async fn describe(service: &Service, id: &str) -> Result<Answer, Problem> {
    let described = service.describe(&parse::task_id("id", id)?).await?;
    Answer::ok(&TaskAnswer { task: TaskView::of(&described, service.now()), duplicate: None })
}

/// A page of tasks. The query comes as names and values, already percent-decoded.
pub async fn list(service: &Service, query: &[(String, String)]) -> Result<Answer, Problem> {
    let query = parse::list_query(query)?;
    let page = service.list(&query.filter, query.limit, query.cursor.as_deref()).await?;
    let now = service.now();
    let tasks = page.items.into_iter().map(|task| TaskView::of(&Described::inline(task), now)).collect();
    Answer::ok(&ListAnswer { tasks, cursor: page.next })
}
