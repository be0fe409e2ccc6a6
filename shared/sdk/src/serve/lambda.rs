//! A worker inside Lambda: each message of a batch is a turn or a remote step, and those that can't be dealt with
//! now go back to their queue alone. If the process dies, nobody knows by which of them: each is then done alone.
//!
//! Leases last as long as the invocation, so nothing is renewed but what asks for heartbeats. Nothing is begun for
//! which there is too little time left.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aws_lambda_events::sqs::SqsMessage;
use futures::future::{Either, select};
use serde_json::value::RawValue;
use tickover_api::Problem;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::message::TurnHint;
use tickover_core::task::hint::Hint;
use tickover_core::time::Timestamp;
use tickover_lambda::{App, Event, Failure, Invocation, answer, sqs};
use tickover_service::claim::{ClaimRequest, Delivered, Hinted, Isolation};
use tickover_service::telemetry::field;

use super::ServeError;
use crate::registry::Registry;
use crate::turn::{TurnEnd, TurnSettings};
use crate::worker::{Worker, WorkerSettings};

const EXPECTED: &str = "a batch of messages from a queue of workflows or remote steps";
/// What writing down where everything stands gets at the end of an invocation.
const MARGIN: Millis = Millis::from_secs(2);
/// Less than this isn't worth beginning with.
const WORTH_STARTING: Millis = Millis::from_secs(1);
/// A message that has been received more often is dealt with alone and before the others of its batch: those may take
/// all the time there is, each time.
const PUT_OFF_MAX: u32 = 3;

/// Answers events until the sandbox ends.
pub(super) async fn run(registry: Registry, settings: WorkerSettings) -> Result<(), ServeError> {
    let app = tickover_lambda::prepare()
        .await
        .map_err(|error| ServeError::Environment { problem: error.to_string() })?;
    let at_once = settings.concurrency;
    let settings = WorkerSettings { heartbeat: false, ..settings };
    let worker = Arc::new(Worker::new(app.service.clone(), registry, settings)?);
    let announced = Arc::new(AtomicBool::new(false));
    let handle = move |app: App, invocation: Invocation| {
        let worker = Arc::clone(&worker);
        if !announced.swap(true, Ordering::Relaxed) {
            let worker = Arc::clone(&worker);
            // Beside the first work, which doesn't wait for it, neither to begin nor to end.
            tokio::spawn(async move { worker.announce().await });
        }
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
    let deadline_at = invocation.deadline_at;
    match invocation.event {
        Event::Messages(batch) => {
            sqs::hide_until_over(app, &batch.records, deadline_at).await;
            let limit_at = stop_at(app.service.now(), deadline_at);
            let shift = Shift { app, worker, limit_at, deadline_at, suspects: Mutex::default() };
            answer::json(&sqs::answer(shift.work(batch.records, at_once).await))
        }
        other @ (Event::Invoke(_) | Event::Tick(_) | Event::BadTick(..) | Event::Foreign(_)) => {
            Err(other.unexpected(EXPECTED))
        }
    }
}

/// An invocation's work.
struct Shift<'a> {
    app: &'a App,
    worker: &'a Worker,
    /// When nothing more is to be done.
    limit_at: Timestamp,
    /// When Lambda ends the process.
    deadline_at: Timestamp,
    /// What may have killed another worker.
    suspects: Mutex<Vec<SqsMessage>>,
}

impl Shift<'_> {
    /// Does what the messages ask for, and names those that have to come back. What may have killed another worker is
    /// done alone, one after the other: last, unless it has been put off often.
    async fn work(&self, messages: Vec<SqsMessage>, at_once: usize) -> Vec<String> {
        let is_single = at_once == 1 || messages.len() == 1;
        let company = if is_single { Isolation::Alone } else { Isolation::Shared };
        let (first, others): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|message| !is_single && sqs::receives(message) > PUT_OFF_MAX);
        let mut failed = sqs::failures(first, 1, |message| self.take(message, Isolation::Alone)).await;
        failed.extend(sqs::failures(others, at_once, |message| self.take(message, company)).await);
        let suspects = std::mem::take(&mut *self.suspects.lock().unwrap_or_else(PoisonError::into_inner));
        failed.extend(sqs::failures(suspects, 1, |message| self.take(message, Isolation::Alone)).await);
        failed
    }

    /// One message. An error sends it back to its queue.
    async fn take(&self, message: SqsMessage, company: Isolation) -> Result<(), Problem> {
        let now = self.app.service.now();
        if self.limit_at.since(now) < WORTH_STARTING {
            return Err(not_now("too little time is left in this invocation"));
        }
        let lease = self.deadline_at.since(now);
        let request = ClaimRequest { worker: None, max: 1, lease, wait: Millis::ZERO };
        let body = message.body.as_deref().unwrap_or_default();
        let receives = sqs::receives(&message);
        let delivered = Delivered { body, receipt: message.receipt_handle.as_deref(), receives };
        let is_suspect = if TurnHint::is_one(body) {
            self.turn(delivered, &request, company).await?
        } else {
            self.task(delivered, &request, company).await?
        };
        if is_suspect {
            self.suspects.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        }
        Ok(())
    }

    /// A turn. Whether it has to be done alone, and nothing was done.
    async fn turn(
        &self,
        message: Delivered<'_>,
        request: &ClaimRequest,
        company: Isolation,
    ) -> Result<bool, Problem> {
        let turn = match self.worker.service().start_turn_among(message.body, request, company).await? {
            Hinted::Taken(turn) => *turn,
            Hinted::Spent => return Ok(false),
            Hinted::Suspect => return Ok(true),
        };
        let settings = TurnSettings { limit_at: Some(self.limit_at), ..self.worker.turn_settings() };
        match self.worker.turn(turn, &settings).await {
            TurnEnd::Suspended | TurnEnd::Closed | TurnEnd::Released => Ok(false),
            TurnEnd::Lost => Err(not_now("the turn was lost")),
        }
    }

    /// A remote step. Whether it has to be done alone, and nothing was done.
    async fn task(
        &self,
        message: Delivered<'_>,
        request: &ClaimRequest,
        company: Isolation,
    ) -> Result<bool, Problem> {
        let hint = Hint::parse(message.body).map_err(|error| Reject::field("body", error))?;
        // Given back after a claim, it would be here again at once, and so for ever.
        if !self.worker.knows(hint.task.kind.as_str()) {
            let kind = &hint.task.kind;
            tracing::warn!({ field::TASK_ID } = %hint.task.id, %kind, "no step of this kind here; left to others");
            self.app.service.leave_to_others(message).await?;
            return Ok(false);
        }
        let claimed = match self.app.service.claim_hinted(message, request, company).await? {
            Hinted::Taken(claimed) => *claimed,
            Hinted::Spent => return Ok(false),
            Hinted::Suspect => return Ok(true),
        };
        let attempt = pin!(self.worker.task(claimed));
        let limit = pin!(self.app.service.clock().sleep_until(self.limit_at));
        match select(attempt, limit).await {
            Either::Left((true, _)) => Ok(false),
            Either::Left((false, _)) => Err(not_now("the attempt was lost")),
            // The other messages have their answer; this one's lease runs out.
            Either::Right(_) => Err(not_now("the attempt takes longer than this invocation")),
        }
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
