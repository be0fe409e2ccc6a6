//! Events that report the outcome of attempts.

use serde_json::value::RawValue;
use tickover_api::{Answer, Problem, calls};
use tickover_lambda::fields::Fields;
use tickover_lambda::ingress::{Accepted, Kind};
use tickover_lambda::{App, Event, Failure, Invocation, answer, message, sqs};

const EXPECTED: &str = "a direct invocation with a report, or a batch of messages from the completions queue";
const DIRECT: Accepted = Accepted {
    kinds: &[Kind::Complete, Kind::Fail, Kind::Heartbeat, Kind::Release],
    without_envelope: Some(Kind::Complete),
};
/// A heartbeat and a release can't be sent as messages: the worker needs a heartbeat's answer, and a released task
/// should be available at once.
const COMPLETIONS: Accepted =
    Accepted { kinds: &[Kind::Complete, Kind::Fail], without_envelope: Some(Kind::Complete) };
/// Messages of a batch that are processed concurrently: SQS delivers up to 10 at once.
const MESSAGES_CONCURRENT: usize = 10;

pub(crate) async fn handle(app: App, invocation: Invocation) -> Result<Box<RawValue>, Failure> {
    match invocation.event {
        Event::Invoke(body) => answer::of(direct(&app, body.get()).await),
        Event::Messages(batch) => {
            let take = |sqs_message| message::take(&app.service, &COMPLETIONS, sqs_message);
            answer::json(&sqs::each(batch, MESSAGES_CONCURRENT, take).await)
        }
        other @ (Event::Tick(_) | Event::BadTick(..) | Event::Unsupported(_)) => {
            Err(other.unexpected(EXPECTED))
        }
    }
}

/// A result `{"id","lease","output"}`, a batch of results `{"tasks":[…]}`, or any report in an envelope.
async fn direct(app: &App, body: &str) -> Result<Answer, Problem> {
    if Fields::read("body", body)?.has("tasks") {
        return calls::complete_batch(&app.service, body.as_bytes()).await;
    }
    DIRECT.read(body)?.run(&app.service).await
}
