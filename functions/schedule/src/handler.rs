//! Events that schedule tasks, start executions and send events to executions. Messages may also contain reports, so a
//! sender needs only one queue.

use serde_json::value::RawValue;
use tickover_api::{Answer, Problem, calls};
use tickover_lambda::fields::Fields;
use tickover_lambda::ingress::{Accepted, Kind};
use tickover_lambda::{App, Event, Failure, Invocation, answer, message, sqs};

const EXPECTED: &str = "a direct invocation with a task, or a batch of messages from the ingress queue";
const KINDS: &[Kind] = &[Kind::Task, Kind::Execution, Kind::Event, Kind::Complete, Kind::Fail];
const DIRECT: Accepted = Accepted { kinds: KINDS, without_envelope: Some(Kind::Task) };
const INGRESS: Accepted = Accepted { kinds: KINDS, without_envelope: None };
/// Messages of a batch that are processed concurrently: SQS delivers up to 10 at once.
const MESSAGES_CONCURRENT: usize = 10;

pub(crate) async fn handle(app: App, invocation: Invocation) -> Result<Box<RawValue>, Failure> {
    match invocation.event {
        Event::Invoke(body) => answer::of(direct(&app, body.get()).await),
        Event::Messages(batch) => {
            let take = |sqs_message| message::take(&app.service, &INGRESS, sqs_message);
            answer::json(&sqs::each(batch, MESSAGES_CONCURRENT, take).await)
        }
        other @ (Event::Tick(_) | Event::BadTick(..) | Event::Unsupported(_)) => {
            Err(other.unexpected(EXPECTED))
        }
    }
}

/// A task, a batch `{"tasks":[…]}`, or any kind of request in an envelope.
async fn direct(app: &App, body: &str) -> Result<Answer, Problem> {
    if Fields::read("body", body)?.has("tasks") {
        return calls::schedule_batch(&app.service, body.as_bytes()).await;
    }
    DIRECT.read(body)?.run(&app.service).await
}
