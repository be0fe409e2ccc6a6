//! Queues.

use tickover_service::Service;

use tickover_wire::answer::{QueueAnswer, QueuesAnswer, WorkersAnswer};
use tickover_wire::read;
use tickover_wire::request::FailuresQuery;

use crate::answer::Answer;
use crate::problem::Problem;
use crate::request::period;
use crate::{body, name, view};

/// All queues with their depth.
pub async fn queues(service: &Service) -> Result<Answer, Problem> {
    let queues = service.list_queues().await?.into_iter().map(view::queue).collect();
    Answer::ok(&QueuesAnswer { queues })
}

/// A queue with its depth and the age of its oldest task.
pub async fn queue(service: &Service, queue: &str) -> Result<Answer, Problem> {
    let info = service.describe_queue(&name::queue(queue)?).await?;
    Answer::ok(&QueueAnswer { queue: view::queue(info) })
}

/// All queues with their workers.
pub async fn workers(service: &Service) -> Result<Answer, Problem> {
    let now = service.now();
    let queues = service.list_workers().await?.into_iter().map(|found| view::workers(found, now)).collect();
    Answer::ok(&WorkersAnswer { queues })
}

/// What an operator looks at first.
pub async fn overview(service: &Service) -> Result<Answer, Problem> {
    Answer::ok(&view::overview(service.overview().await?))
}

/// What has failed, in groups. The query is a list of names and values, already percent-decoded.
pub async fn failures(service: &Service, query: &[(String, String)]) -> Result<Answer, Problem> {
    let FailuresQuery { ended_from, ended_before } = read::query(query)?;
    Answer::ok(&view::failures(service.failures(period(ended_from, ended_before)).await?))
}

/// Pauses a queue: its tasks are not leased to workers, and their deadlines still apply.
pub async fn pause(service: &Service, queue: &str, body: &[u8]) -> Result<Answer, Problem> {
    set_paused(service, queue, body, true).await
}

/// Resumes a queue: its tasks are leased to workers again.
pub async fn resume(service: &Service, queue: &str, body: &[u8]) -> Result<Answer, Problem> {
    set_paused(service, queue, body, false).await
}

async fn set_paused(service: &Service, queue: &str, body: &[u8], paused: bool) -> Result<Answer, Problem> {
    let queue = name::queue(queue)?;
    body::read_nothing(body)?;
    let info = service.pause_queue(&queue, paused).await?;
    Answer::ok(&QueueAnswer { queue: view::queue(info) })
}
