//! Queues.

use tickover_service::Service;

use crate::answer::Answer;
use crate::body::{self, Empty};
use crate::parse;
use crate::problem::Problem;
use crate::view::{QueueAnswer, QueuesAnswer};

/// All queues with their depth.
pub async fn queues(service: &Service) -> Result<Answer, Problem> {
    let queues = service.list_queues().await?.into_iter().map(Into::into).collect();
    Answer::ok(&QueuesAnswer { queues })
}

/// A queue with its depth and the age of its oldest task.
pub async fn queue(service: &Service, queue: &str) -> Result<Answer, Problem> {
    let info = service.describe_queue(&parse::queue_name("queue", queue)?).await?;
    Answer::ok(&QueueAnswer { queue: info.into() })
}

/// Stops handing out a queue's tasks; deadlines keep running.
pub async fn pause(service: &Service, queue: &str, body: &[u8]) -> Result<Answer, Problem> {
    set_paused(service, queue, body, true).await
}

/// Hands out a queue's tasks again.
pub async fn resume(service: &Service, queue: &str, body: &[u8]) -> Result<Answer, Problem> {
    set_paused(service, queue, body, false).await
}

async fn set_paused(service: &Service, queue: &str, body: &[u8], paused: bool) -> Result<Answer, Problem> {
    let queue = parse::queue_name("queue", queue)?;
    body::object(body, &[], Empty::IsObject)?;
    let info = service.pause_queue(&queue, paused).await?;
    Answer::ok(&QueueAnswer { queue: info.into() })
}
