//! Events that claim tasks: of a queue, or one by its id.

use serde_json::value::RawValue;
use tickover_api::{Answer, Problem, calls};
use tickover_core::error::Reject;
use tickover_lambda::fields::Fields;
use tickover_lambda::{App, Event, Failure, Invocation, answer};

const EXPECTED: &str = "a direct invocation with the queue, or the id, to claim from";

pub(crate) async fn handle(app: App, invocation: Invocation) -> Result<Box<RawValue>, Failure> {
    match invocation.event {
        Event::Invoke(body) => answer::of(direct(&app, body.get()).await),
        other @ (Event::Messages(_) | Event::Tick(_) | Event::BadTick(..) | Event::Unsupported(_)) => {
            Err(other.unexpected(EXPECTED))
        }
    }
}

/// Over HTTP the path names the queue or the task. Here `queue` or `id` does, beside the other fields.
async fn direct(app: &App, body: &str) -> Result<Answer, Problem> {
    let mut fields = Fields::read("body", body)?;
    let (queue, id) = (fields.take_text("queue")?, fields.take_text("id")?);
    let rest = fields.to_json()?;
    let rest = rest.get().as_bytes();
    match (queue, id) {
        (Some(queue), None) => calls::claim(&app.service, &queue, rest).await,
        (None, Some(id)) => calls::claim_by_id(&app.service, &id, rest).await,
        (None, None) => Err(Reject::field("queue", "expected a queue's name here, or a task's `id`").into()),
        (Some(_), Some(_)) => Err(Reject::field("queue", "expected either this or `id`, found both").into()),
    }
}
