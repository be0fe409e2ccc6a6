//! A worker inside Lambda: each message of a batch is a turn or a remote step, and those that can't be dealt with
//! now go back to their queue alone.
//!
//! Leases last as long as the invocation, so nothing is renewed. Nothing is begun for which there is too little time
//! left.

use std::pin::pin;
use std::sync::Arc;

use aws_lambda_events::sqs::SqsMessage;
use futures::future::{Either, select};
use serde_json::value::RawValue;
use tickover_api::Problem;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::message::TurnHint;
use tickover_core::hint::Hint;
use tickover_core::time::Timestamp;
use tickover_lambda::{App, Event, Failure, Invocation, answer, sqs};
use tickover_service::claim::ClaimRequest;

use super::ServeError;
use crate::registry::Registry;
use crate::turn::{TurnEnd, TurnSettings};
use crate::worker::{Worker, WorkerSettings};

const EXPECTED: &str = "a batch of messages from a queue of workflows or remote steps";
/// What writing down where everything stands gets at the end of an invocation.
const MARGIN: Millis = Millis::from_secs(2);
/// Less than this isn't worth beginning with.
const WORTH_STARTING: Millis = Millis::from_secs(1);

/// Answers events until the sandbox ends.
pub(super) async fn run(registry: Registry, settings: WorkerSettings) -> Result<(), ServeError> {
    let app = tickover_lambda::prepare()
        .await
        .map_err(|error| ServeError::Environment { problem: error.to_string() })?;
    let at_once = settings.concurrency;
    let settings = WorkerSettings { heartbeat: false, ..settings };
    let worker = Arc::new(Worker::new(app.service.clone(), registry, settings)?);
    let handle = move |app: App, invocation: Invocation| {
        let worker = Arc::clone(&worker);
        async move { handle(&app, &worker, at_once, invocation).await }
    };
    tickover_lambda::serve(app, handle)
        .await
        .map_err(|error| ServeError::System { problem: error.to_string() })
}

async fn handle(
    app: &App,
    worker: &Worker,
    at_once: usize,
    invocation: Invocation,
) -> Result<Box<RawValue>, Failure> {
    let limit_at = stop_at(app.service.now(), invocation.deadline_at);
    match invocation.event {
        Event::Messages(batch) => {
            let take = |message: SqsMessage| take(app, worker, message, limit_at, invocation.deadline_at);
            answer::json(&sqs::each(batch, at_once, take).await)
        }
        other @ (Event::Invoke(_) | Event::Tick(_) | Event::BadTick(..) | Event::Foreign(_)) => {
            Err(other.unexpected(EXPECTED))
        }
    }
}

/// One message. An error sends it back to its queue.
async fn take(
    app: &App,
    worker: &Worker,
    message: SqsMessage,
    limit_at: Timestamp,
    deadline_at: Timestamp,
) -> Result<(), Problem> {
    let body = message.body.unwrap_or_default();
    let now = app.service.now();
    if limit_at.since(now) < WORTH_STARTING {
        return Err(not_now("too little time is left in this invocation"));
    }
    let request = ClaimRequest { worker: None, max: 1, lease: deadline_at.since(now), wait: Millis::ZERO };
    if TurnHint::is_one(&body) {
        turn(app, worker, &body, &request, limit_at).await
    } else {
        task(app, worker, &body, &request, limit_at).await
    }
}

async fn turn(
    app: &App,
    worker: &Worker,
    body: &str,
    request: &ClaimRequest,
    limit_at: Timestamp,
) -> Result<(), Problem> {
    let Some(turn) = app.service.take_turn(body, request).await? else { return Ok(()) };
    let settings = TurnSettings { limit_at: Some(limit_at), ..worker.turn_settings() };
    match worker.turn(turn, &settings).await {
        TurnEnd::Suspended | TurnEnd::Closed | TurnEnd::Released => Ok(()),
        TurnEnd::Lost => Err(not_now("the turn was lost")),
    }
}

async fn task(
    app: &App,
    worker: &Worker,
    body: &str,
    request: &ClaimRequest,
    limit_at: Timestamp,
) -> Result<(), Problem> {
    let hint = Hint::parse(body).map_err(|error| Reject::field("body", error))?;
    // Given back after a claim, it would be here again at once, and so for ever.
    if !worker.knows(hint.task.kind.as_str()) {
        return Err(not_now("no step of this kind is known here"));
    }
    let Some(claimed) = app.service.claim_hinted(body, request).await? else { return Ok(()) };
    let attempt = pin!(worker.task(claimed));
    let limit = pin!(app.service.clock().sleep_until(limit_at));
    match select(attempt, limit).await {
        Either::Left((true, _)) => Ok(()),
        Either::Left((false, _)) => Err(not_now("the attempt was lost")),
        // The other messages have their answer; this one's lease runs out.
        Either::Right(_) => Err(not_now("the attempt takes longer than this invocation")),
    }
}

fn not_now(reason: &str) -> Problem {
    tickover_service::ServiceError::Unavailable { reason: reason.to_owned() }.into()
}

/// A short invocation keeps half of its time.
fn stop_at(now: Timestamp, deadline_at: Timestamp) -> Timestamp {
    let half = Millis::new(deadline_at.since(now).as_u64() / 2);
    deadline_at.minus(MARGIN.min(half))
}
