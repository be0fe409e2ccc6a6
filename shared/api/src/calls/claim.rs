//! Claiming tasks.

use tickover_service::Service;
use tickover_service::claim::ClaimedTask;

use crate::answer::Answer;
use tickover_wire::answer::ClaimAnswer;
use tickover_wire::request as wire;

use crate::problem::Problem;
use crate::{body, name, request, view};

/// Claims up to `max` tasks of a queue. Waits up to `wait` for the first one, and then up to `fill` for others.
pub async fn claim(service: &Service, queue: &str, body: &[u8]) -> Result<Answer, Problem> {
    let queue = name::queue(queue)?;
    let given: wire::ClaimRequest = body::read_or_empty(body)?;
    let service = service.clone().with_version(given.version.clone());
    let (request, together) = request::claim(given, service.limits().lease)?;
    answer(&service, service.claim_together(&queue, &request, together).await?)
}

/// Claims one task by id, if it is available now. It is for workers that receive the queue's messages themselves. `max`,
/// `wait`, `same_key` and `fill` must be in range and have no effect.
pub async fn claim_by_id(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::task_id(id)?;
    let (request, _) = request::claim(body::read_or_empty(body)?, service.limits().lease)?;
    answer(service, service.claim_by_id(&id, &request).await?)
}

fn answer(service: &Service, claimed: impl IntoIterator<Item = ClaimedTask>) -> Result<Answer, Problem> {
    let now = service.now();
    let tasks = claimed.into_iter().map(|claimed| view::claimed(claimed, now)).collect();
    Answer::ok(&ClaimAnswer { tasks })
}
