//! The jobs of the system: one for each message and each tick.

use std::sync::Arc;

use futures::future::join_all;
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::task;
use tickover_core::task::hint::Hint;
use tickover_core::time::Timestamp;
use tickover_service::Service;
use tickover_service::claim::{ClaimRequest, ClaimedTask, Hinted, Isolation};
use tickover_service::executions::StartedTurn;
use tickover_service::ports::Received;

use super::answers::Answers;
use super::system::LEASE;
use crate::client::null;
use crate::turn::TurnSettings;
use crate::worker::Worker;

/// How long a tick or a timer starts new work.
const TICK_LENGTH: Millis = Millis::from_secs(50);

/// The parts that a system's jobs need.
#[derive(Clone)]
pub(super) struct JobContext {
    pub(super) service: Service,
    pub(super) worker: Worker,
    pub(super) answers: Arc<Answers>,
}

fn request() -> ClaimRequest {
    ClaimRequest { worker: None, max: 1, lease: LEASE, wait: Millis::ZERO, provides: vec![] }
}

/// A test's worker provides whatever a task requires.
fn request_for(message: &Received) -> ClaimRequest {
    let flow = Hint::parse(&message.body).ok().and_then(|hint| hint.task.flow);
    ClaimRequest { provides: flow.map(|flow| flow.requires).unwrap_or_default(), ..request() }
}

/// The tick of a minute.
pub(super) async fn tick(service: Service, minute: Timestamp) {
    if let Err(error) = service.tick(minute, service.now().plus(TICK_LENGTH)).await {
        tracing::warn!(%error, "the tick failed");
    }
}

/// A message of the timer queue. If it fails, it is delivered again.
pub(super) async fn timer(service: Service, message: Received) {
    match service.fire(&message, service.now().plus(TICK_LENGTH)).await {
        Ok(_) => service.done_with(&QueueName::timers(), &message.receipt).await,
        Err(error) => tracing::warn!(%error, "a timer failed"),
    }
}

/// The hint of a turn.
pub(super) async fn turn(job_context: JobContext, queue: QueueName, message: Received) {
    let Some(service) = job_context.worker.service() else { return };
    match service.start_turn_among((&message).into(), &request(), Isolation::Alone).await {
        Ok(Hinted::Taken(taken)) => {
            let taken = StartedTurn { receipt: Some(message.receipt), ..*taken };
            job_context.worker.turn(taken, &TurnSettings::default()).await;
        }
        Ok(Hinted::Spent | Hinted::Suspect) => job_context.service.done_with(&queue, &message.receipt).await,
        // The message is delivered again.
        Err(error) => tracing::warn!(%error, "a turn wasn't started"),
    }
}

/// The hint of a task whose kind has code or an answer.
pub(super) async fn task(job_context: JobContext, queue: QueueName, message: Received) {
    let Some(claimed) = claim(&job_context.service, &queue, &message).await else { return };
    match job_context.answers.of(claimed.task.kind.as_str()) {
        Some(answer) => answer_task(&job_context.service, &claimed, &answer).await,
        None => {
            job_context.worker.attempt(claimed).await;
        }
    }
    job_context.service.done_with(&queue, &message.receipt).await;
}

/// The hints of tasks that run together.
pub(super) async fn batch(job_context: JobContext, queue: QueueName, members: Vec<Received>) {
    let claims = members.iter().map(|message| claim(&job_context.service, &queue, message));
    let (mut claimed, mut done) = (vec![], vec![]);
    for (task, message) in join_all(claims).await.into_iter().zip(&members) {
        if let Some(task) = task {
            claimed.push(task);
            done.push(message);
        }
    }
    job_context.worker.attempt_together(claimed).await;
    for message in done {
        job_context.service.done_with(&queue, &message.receipt).await;
    }
}

/// Claims the task of a message, as a worker in Lambda does.
async fn claim(service: &Service, queue: &QueueName, message: &Received) -> Option<ClaimedTask> {
    match service.claim_hinted(message.into(), &request_for(message), Isolation::Alone).await {
        Ok(Hinted::Taken(claimed)) => Some(*claimed),
        Ok(Hinted::Spent | Hinted::Suspect) => {
            service.done_with(queue, &message.receipt).await;
            None
        }
        // Another worker has leased it, or a call failed: the message is delivered again.
        Err(error) => {
            tracing::debug!(%error, "a task wasn't claimed");
            None
        }
    }
}

/// An attempt that the test answers.
async fn answer_task(service: &Service, claimed: &ClaimedTask, answer: &super::answers::Answer) {
    let (id, token) = (&claimed.task.id, &claimed.token);
    let input = claimed.input.clone().unwrap_or_else(null);
    let reported = match answer(&input) {
        Ok(output) => service.complete(id, token, Some(output)).await,
        Err(failure) => {
            let failure = task::Failure::from(failure);
            let retryable = claimed.task.retry.is_retryable(&failure.code);
            service.fail(id, token, failure, retryable).await
        }
    };
    if let Err(error) = reported {
        tracing::debug!(%error, "the answer came too late");
    }
}
