//! Taking tasks to work on.

use tickover_service::Service;
use tickover_service::claim::ClaimedTask;

use crate::answer::Answer;
use crate::body::{self, Empty};
use crate::parse::{self, CLAIM_FIELDS};
use crate::problem::Problem;
use crate::view::{ClaimAnswer, ClaimedView};

/// Takes tasks from a queue, up to `max`; waits up to `wait` for the first.
pub async fn claim(service: &Service, queue: &str, body: &[u8]) -> Result<Answer, Problem> {
    let queue = parse::queue_name("queue", queue)?;
    let object = body::object(body, CLAIM_FIELDS, Empty::IsObject)?;
    let request = parse::claim(&object, service.limits().lease)?;
    answer(service, service.claim(&queue, &request).await?)
}

/// Takes one task by id, if it can be had now: for workers that receive the queue's messages themselves.
/// `max` and `wait` are held to their ranges and make no difference.
pub async fn claim_by_id(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::task_id("id", id)?;
    let object = body::object(body, CLAIM_FIELDS, Empty::IsObject)?;
    let request = parse::claim(&object, service.limits().lease)?;
    answer(service, service.claim_by_id(&id, &request).await?)
}

fn answer(service: &Service, claimed: impl IntoIterator<Item = ClaimedTask>) -> Result<Answer, Problem> {
    let now = service.now();
    let tasks = claimed.into_iter().map(|claimed| ClaimedView::of(claimed, now)).collect();
    Answer::ok(&ClaimAnswer { tasks })
}
