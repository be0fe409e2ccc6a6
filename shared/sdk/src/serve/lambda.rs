//! A worker inside Lambda. Each message of a batch is a turn or a remote step. A message that can't be processed now
//! goes back to its queue, without the others of its batch. If the process dies, it isn't known which message caused
//! the death: each of them is then processed alone.
//!
//! Leases last as long as the invocation. So the worker sends no heartbeats of its own, only what the steps' code
//! reports. It starts no work for which too little time is left.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aws_lambda_events::sqs::SqsMessage;
use futures::future::{Either, select};
use futures::stream;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::value::RawValue;
use tickover_api::Problem;
use tickover_core::batch::Gathering;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::message::TurnHint;
use tickover_core::task::hint::Hint;
use tickover_core::time::Timestamp;
use tickover_lambda::{App, Event, Failure, Invocation, answer, sqs};
use tickover_service::claim::{ClaimRequest, Delivered, Hinted, Isolation};
use tickover_service::telemetry::{execution_of, field, step_of};

use super::ServeError;
use crate::registry::Registry;
use crate::turn::{TurnEnd, TurnSettings};
use crate::worker::{Worker, WorkerSettings};

const EXPECTED: &str = "a batch of messages from a queue of workflows or remote steps";
/// Time at the end of an invocation that is reserved for recording the state of all work.
const MARGIN: Millis = Millis::from_secs(2);
/// No work starts if less time than this is left.
const START_TIME_MIN: Millis = Millis::from_secs(1);
/// A message that was received more often than this is processed alone and before the others of its batch. Otherwise
/// the others could use the whole time of each invocation.
const SHARED_RECEIVES_MAX: u32 = 3;
/// Claims of a batch that are in progress at the same time.
const CLAIMS_AT_ONCE: usize = 50;

/// Handles events until the Lambda sandbox ends.
pub(super) async fn run(registry: Registry, settings: WorkerSettings) -> Result<(), ServeError> {
    let app = tickover_lambda::prepare()
        .await
        .map_err(|error| ServeError::Environment { problem: error.to_string() })?;
    let at_once = settings.concurrency;
    let settings = WorkerSettings { heartbeat: Some(Millis::ZERO), ..settings };
    let worker = Arc::new(Worker::new(app.service.clone(), registry, settings)?);
    let announced = Arc::new(AtomicBool::new(false));
    let handle = move |app: App, invocation: Invocation| {
        let worker = Arc::clone(&worker);
        if !announced.swap(true, Ordering::Relaxed) {
            let worker = Arc::clone(&worker);
            // It runs in parallel with the first work, which doesn't wait for it.
            tokio::spawn(async move { worker.announce().await });
        }
        async move { handle(&app, &worker, at_once, invocation).await }
    };
    tickover_lambda::serve(app, handle)
        .await
        .map_err(|error| ServeError::System { problem: error.to_string() })
}

/// One invocation.
pub async fn handle(
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
            let work = InvocationWork { app, worker, limit_at, deadline_at, suspects: Mutex::default() };
            // A type of its own: with this in the invocation's, the compiler gives up on its future.
            answer::json(&sqs::answer(work.process_all(batch.records, at_once).boxed().await))
        }
        other @ (Event::Invoke(_) | Event::Tick(_) | Event::BadTick(..) | Event::Unsupported(_)) => {
            Err(other.unexpected(EXPECTED))
        }
    }
}

/// An invocation's work.
struct InvocationWork<'a> {
    app: &'a App,
    worker: &'a Worker,
    /// When all work must have stopped.
    limit_at: Timestamp,
    /// When Lambda ends the process.
    deadline_at: Timestamp,
    /// Messages that may have killed another worker.
    suspects: Mutex<Vec<SqsMessage>>,
}

impl InvocationWork<'_> {
    /// Processes the messages, and returns the ids of those that must be delivered again. Messages that were received
    /// often come first, each of them alone. Messages that may have killed another worker come last, each of them
    /// alone. Among the others, tasks that run in batches are processed with those of their kind and fairness key.
    async fn process_all(&self, messages: Vec<SqsMessage>, at_once: usize) -> Vec<String> {
        let is_single = at_once == 1 || messages.len() == 1;
        let isolation = if is_single { Isolation::Alone } else { Isolation::Shared };
        let (first, others): (Vec<_>, Vec<_>) = messages
            .into_iter()
            .partition(|message| !is_single && sqs::receives(message) > SHARED_RECEIVES_MAX);
        let mut failed = sqs::failures(first, 1, |message| self.process(message, Isolation::Alone)).await;
        let process = |group| self.process_group(group, isolation);
        failed.extend(sqs::failures_together(self.grouped(others), at_once, process).await);
        let suspects = std::mem::take(&mut *self.suspects.lock().unwrap_or_else(PoisonError::into_inner));
        failed.extend(sqs::failures(suspects, 1, |message| self.process(message, Isolation::Alone)).await);
        failed
    }

    /// The messages in groups: each batch of tasks, and each other message alone.
    fn grouped(&self, messages: Vec<SqsMessage>) -> Vec<Vec<SqsMessage>> {
        let (mut groups, mut batches) = (Vec::new(), Gathering::default());
        let now = self.app.service.now();
        for message in messages {
            let hint = Hint::parse(message.body.as_deref().unwrap_or_default()).ok();
            let known = hint.and_then(|hint| Some((self.worker.batch_of(hint.task.kind.as_str())?, hint)));
            match known {
                Some((batch, hint)) => {
                    groups.extend(batches.add(&hint.task.batch_key(), message, batch.max(), now));
                }
                None => groups.push(vec![message]),
            }
        }
        groups.extend(batches.take_all());
        groups
    }

    /// Processes the messages of a group, and returns a result for each.
    async fn process_group(
        &self,
        mut group: Vec<SqsMessage>,
        isolation: Isolation,
    ) -> Vec<Result<(), Problem>> {
        if group.len() > 1 {
            return self.tasks(group).await;
        }
        match group.pop() {
            Some(message) => vec![self.process(message, isolation).await],
            None => vec![],
        }
    }

    /// Claims and runs the tasks of a batch. Each is reported on its own.
    async fn tasks(&self, messages: Vec<SqsMessage>) -> Vec<Result<(), Problem>> {
        let now = self.app.service.now();
        if self.limit_at.since(now) < START_TIME_MIN {
            return messages.iter().map(|_| Err(too_late())).collect();
        }
        let request = self.request(self.deadline_at.since(now));
        let receipts: Vec<_> = messages.iter().map(|message| sqs::receipt(self.app, message)).collect();
        let claims: Vec<_> = messages
            .iter()
            .zip(&receipts)
            .map(|(message, receipt)| {
                let delivered = delivered(message, receipt.as_deref());
                self.app.service.claim_hinted(delivered, &request, Isolation::Shared)
            })
            .collect();
        let claims: Vec<_> = stream::iter(claims).buffered(CLAIMS_AT_ONCE).collect().await;
        let (mut results, mut claimed) = (Vec::new(), Vec::new());
        for (message, claim) in messages.into_iter().zip(claims) {
            results.push(match claim {
                Ok(Hinted::Taken(task)) => {
                    claimed.push((results.len(), *task));
                    // Replaced by how its attempt ends.
                    Err(not_now("the attempt takes longer than this invocation"))
                }
                Ok(Hinted::Spent) => Ok(()),
                Ok(Hinted::Suspect) => {
                    self.suspects.lock().unwrap_or_else(PoisonError::into_inner).push(message);
                    Ok(())
                }
                Err(error) => Err(error.into()),
            });
        }
        let (places, tasks): (Vec<_>, Vec<_>) =
            claimed.into_iter().map(|(place, task)| ((task.task.id.clone(), place), task)).unzip();
        let places: BTreeMap<_, _> = places.into_iter().collect();
        let limit = pin!(self.app.service.clock().sleep_until(self.limit_at));
        if let Either::Left((ends, _)) = select(pin!(self.worker.batch(tasks)), limit).await {
            for (id, is_reported) in ends {
                if let Some(result) = places.get(&id).and_then(|place| results.get_mut(*place)) {
                    *result = if is_reported { Ok(()) } else { Err(not_now("the attempt was lost")) };
                }
            }
        }
        results
    }

    fn request(&self, lease: Millis) -> ClaimRequest {
        let provides = self.worker.provides();
        ClaimRequest { worker: None, max: 1, lease, wait: Millis::ZERO, provides }
    }

    /// Processes one message. An error sends it back to its queue.
    async fn process(&self, message: SqsMessage, isolation: Isolation) -> Result<(), Problem> {
        let now = self.app.service.now();
        if self.limit_at.since(now) < START_TIME_MIN {
            return Err(too_late());
        }
        let request = self.request(self.deadline_at.since(now));
        let receipt = sqs::receipt(self.app, &message);
        let delivered = delivered(&message, receipt.as_deref());
        let is_suspect = if TurnHint::is_turn_hint(delivered.body) {
            self.turn(delivered, &request, isolation).await?
        } else {
            self.task(delivered, &request, isolation).await?
        };
        if is_suspect {
            self.suspects.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        }
        Ok(())
    }

    /// Runs a turn. `true` if it must run alone, and nothing was done.
    async fn turn(
        &self,
        message: Delivered<'_>,
        request: &ClaimRequest,
        isolation: Isolation,
    ) -> Result<bool, Problem> {
        let Some(service) = self.worker.service() else { return Err(not_now("no service")) };
        let turn = match service.start_turn_among(message, request, isolation).await? {
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

    /// Runs a remote step. `true` if it must run alone, and nothing was done.
    async fn task(
        &self,
        message: Delivered<'_>,
        request: &ClaimRequest,
        isolation: Isolation,
    ) -> Result<bool, Problem> {
        let hint = Hint::parse(message.body).map_err(|error| Reject::field("body", error))?;
        // If this worker claimed and released the task, its message would come back at once, and again without end.
        let is_unknown = !self.worker.knows(hint.task.kind.as_str());
        if is_unknown && !(message.receives > 1 && self.app.service.is_over(&hint.task).await) {
            let (id, kind, of) = (&hint.task.id, &hint.task.kind, hint.task.parent.as_ref());
            tracing::warn!(
                { field::TASK_ID } = %id, { field::EXECUTION_ID } = execution_of(of), { field::STEP_NAME } = step_of(of),
                %kind, "this worker has no step of this kind"
            );
            self.app.service.leave_to_others(message).await?;
            return Ok(false);
        }
        let claimed = match self.app.service.claim_hinted(message, request, isolation).await? {
            Hinted::Taken(claimed) => *claimed,
            Hinted::Spent => return Ok(false),
            Hinted::Suspect => return Ok(true),
        };
        let attempt = pin!(self.worker.task(claimed));
        let limit = pin!(self.app.service.clock().sleep_until(self.limit_at));
        match select(attempt, limit).await {
            Either::Left((true, _)) => Ok(false),
            Either::Left((false, _)) => Err(not_now("the attempt was lost")),
            // The other messages are answered now. The lease of this one expires.
            Either::Right(_) => Err(not_now("the attempt takes longer than this invocation")),
        }
    }
}

fn delivered<'a>(message: &'a SqsMessage, receipt: Option<&'a str>) -> Delivered<'a> {
    let body = message.body.as_deref().unwrap_or_default();
    Delivered { body, receipt, receives: sqs::receives(message) }
}

fn too_late() -> Problem {
    not_now("too little time is left in this invocation")
}

fn not_now(reason: &str) -> Problem {
    tickover_service::ServiceError::unavailable(reason).into()
}

/// A short invocation reserves at most half of its time.
fn stop_at(now: Timestamp, deadline_at: Timestamp) -> Timestamp {
    let half = Millis::new(deadline_at.since(now).as_u64() / 2);
    deadline_at.minus(MARGIN.min(half))
}

#[cfg(test)]
mod tests;
