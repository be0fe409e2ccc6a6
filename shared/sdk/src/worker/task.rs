//! Remote steps that this worker runs: runs an attempt, sends heartbeats, and reports the outcome.

use std::panic::AssertUnwindSafe;
use std::pin::pin;

use futures::FutureExt as _;
use futures::future::{Either, select};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::TYPED_ERROR;
use tickover_core::id::TaskId;
use tickover_core::payload::Json;
use tickover_core::task;
use tickover_core::time::{Timestamp, earliest};
use tickover_service::ServiceError;
use tickover_service::claim::ClaimedTask;
use tickover_service::telemetry::field;
use tickover_service::warn_unless_logged;
use tokio::sync::watch;

use super::Worker;
use crate::busy::watch;
use crate::codec;
use crate::error::Failure;
use crate::registry::{ErasedStep, StepFailed};
use crate::step::{ProgressSender, StepInfo};
use crate::turn::panics;

/// The shortest time between two heartbeats that only report progress. Each is a write.
const PROGRESS_INTERVAL: Millis = Millis::from_secs(10);

/// Receives the progress that an attempt reports.
pub(super) type ProgressReceiver = watch::Receiver<Option<f64>>;

/// How an attempt ended for this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskEnd {
    /// Its outcome was reported.
    Reported,
    /// Its lease was lost, or the report failed.
    Lost,
    /// This worker doesn't know the kind.
    Unknown,
}

/// How the body ended.
pub(super) enum Ran {
    Done(Result<Json, StepFailed>),
    Panicked(String),
    /// A cancellation was requested.
    Cancelled,
    /// The lease was lost.
    Lost,
}

impl Worker {
    /// Runs an attempt and reports its outcome.
    pub(crate) async fn attempt(&self, claimed: ClaimedTask) -> TaskEnd {
        let Some(step) = self.registry.step(claimed.task.kind.as_str()) else {
            return self.release_unknown(&claimed).await;
        };
        if step.batch().is_some() {
            let ends = self.attempt_together(vec![claimed]).await;
            return ends.first().map_or(TaskEnd::Lost, |(_, end)| *end);
        }
        let Some(input) = self.input_in_time(&claimed) else { return self.give_back(&claimed).await.1 };
        let info = info_of(step, &claimed);
        let progress_sender = info.progress_sender.clone();
        let mut progress_receiver = progress_sender.listen();
        let (step, states) = (step.clone(), self.registry.states().clone());
        let kind = step.kind;
        let body =
            AssertUnwindSafe(info.scope(async move { step.run(&input, &states).await })).catch_unwind();
        let body = watch().over(kind, body.boxed());
        let body = async {
            match body.await {
                Ok(done) => Ran::Done(done),
                Err(panic) => Ran::Panicked(panics::message_of(&*panic)),
            }
        };
        let mut ends_at = claimed.lease_expires_at;
        let alive = self.keep_alive(&claimed, &mut ends_at, &mut progress_receiver);
        let ran = match select(pin!(body), pin!(alive)).await {
            Either::Left((ran, _)) | Either::Right((ran, _)) => ran,
        };
        self.report_end(&claimed, ran, unsent(&progress_sender, &progress_receiver)).await
    }

    /// Gives back a task whose kind isn't known here.
    async fn release_unknown(&self, claimed: &ClaimedTask) -> TaskEnd {
        let id = &claimed.task.id;
        tracing::warn!({ field::TASK_ID } = %id, kind = %claimed.task.kind, "no step of this kind here");
        let released = self.service.release(id, &claimed.token).await;
        if released.is_ok() { TaskEnd::Unknown } else { TaskEnd::Lost }
    }

    /// The input of an attempt that may start at once. `None` if its lease is over.
    pub(super) fn input_in_time(&self, claimed: &ClaimedTask) -> Option<Json> {
        if claimed.lease_expires_at <= self.service.now() {
            return None;
        }
        claimed.input.clone().or_else(|| Json::parse("null"))
    }

    /// Gives back a task whose lease was over before its attempt started: this process was frozen after the claim.
    /// Another worker may have started the task. If none has, the release lets one start it.
    pub(super) async fn give_back(&self, claimed: &ClaimedTask) -> (TaskId, TaskEnd) {
        let id = &claimed.task.id;
        tracing::info!({ field::TASK_ID } = %id, "the lease had expired before the attempt started");
        // If the release fails, another worker has the task, or its message is delivered again.
        drop(self.service.release(id, &claimed.token).await);
        (id.clone(), TaskEnd::Lost)
    }

    /// Reports how an attempt ended.
    pub(super) async fn report_end(&self, claimed: &ClaimedTask, ran: Ran, unsent: Option<f64>) -> TaskEnd {
        match self.report(claimed, ran, unsent).await {
            Ok(end) => end,
            Err(error) => {
                let id = &claimed.task.id;
                warn_unless_logged!(error; { field::TASK_ID } = %id, %error, "can't report the outcome");
                TaskEnd::Lost
            }
        }
    }

    /// The interval of heartbeats: a third of the lease or of the step's own heartbeat timeout, whichever is shorter.
    /// `None` if the lease is long enough without heartbeats.
    fn pace(&self, claimed: &ClaimedTask) -> Option<Millis> {
        let left = claimed.lease_expires_at.since(self.service.now());
        let own = claimed.task.timeouts.heartbeat.map(|timeout| timeout.after);
        let lease = self.settings.heartbeat.then_some(self.settings.lease);
        let longest = match lease {
            Some(lease) => Some(own.map_or(lease, |own| own.min(lease))),
            None => own.filter(|own| *own < left),
        };
        longest.map(|longest| Millis::new((longest.as_u64() / 3).max(1)))
    }

    /// Sends heartbeats and progress for as long as it is polled. It returns when the lease has ended, or a
    /// cancellation was requested. `ends_at` is when the lease ends.
    pub(super) async fn keep_alive(
        &self,
        claimed: &ClaimedTask,
        ends_at: &mut Timestamp,
        progress_receiver: &mut ProgressReceiver,
    ) -> Ran {
        let id: &TaskId = &claimed.task.id;
        let (clock, pace) = (self.service.clock(), self.pace(claimed));
        let begun = self.service.now();
        let (mut next, mut tells_at) = (pace.map(|pace| begun.plus(pace)), begun.plus(PROGRESS_INTERVAL));
        loop {
            let tells = progress_receiver.has_changed().is_ok_and(|changed| changed).then_some(tells_at);
            let wakes_at = earliest([Some(*ends_at), next, tells]).unwrap_or(*ends_at);
            let mut news = progress_receiver.clone();
            let news = async {
                // The progress that waits to be sent needs no wake-up.
                if tells.is_some() || news.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            if let Either::Right(_) = select(pin!(clock.sleep_until(wakes_at)), pin!(news)).await {
                continue;
            }
            let now = self.service.now();
            if *ends_at <= now {
                return Ran::Lost;
            }
            let progress = *progress_receiver.borrow();
            let renewed = match (pace, progress) {
                // The lease is long enough: only the progress is reported, and the lease isn't extended.
                (None, Some(progress)) => self.service.report_progress(id, &claimed.token, progress).await,
                (_, progress) => self.service.heartbeat(id, &claimed.token, progress).await,
            };
            match renewed {
                Ok(renewed) if renewed.cancel_requested => {
                    *ends_at = renewed.lease_expires_at;
                    return Ran::Cancelled;
                }
                Ok(renewed) => {
                    if *progress_receiver.borrow() == progress {
                        progress_receiver.mark_unchanged();
                    }
                    *ends_at = renewed.lease_expires_at;
                    let now = self.service.now();
                    (next, tells_at) = (pace.map(|pace| now.plus(pace)), now.plus(PROGRESS_INTERVAL));
                }
                Err(ServiceError::Rejected(reject)) => {
                    tracing::info!({ field::TASK_ID } = %id, %reject, "attempt given up");
                    return Ran::Lost;
                }
                Err(error) => {
                    warn_unless_logged!(error; { field::TASK_ID } = %id, %error, "heartbeat failed");
                    let again = pace.unwrap_or(PROGRESS_INTERVAL).min(PROGRESS_INTERVAL);
                    let soon = self.service.now().plus(Millis::new((again.as_u64() / 4).max(1)));
                    (next, tells_at) = (pace.map(|_| soon), soon);
                }
            }
        }
    }

    async fn report(
        &self,
        claimed: &ClaimedTask,
        ran: Ran,
        unsent: Option<f64>,
    ) -> Result<TaskEnd, ServiceError> {
        let (id, token) = (&claimed.task.id, &claimed.token);
        let (failure, retryable) = match ran {
            Ran::Lost => return Ok(TaskEnd::Lost),
            Ran::Done(Ok(output)) => {
                self.service.complete(id, token, Some(output)).await?;
                return Ok(TaskEnd::Reported);
            }
            Ran::Done(Err(failed)) => {
                // The code that is sent may be `TYPED_ERROR`, so the policy is applied to the step's own code here.
                let retryable = failed.retryable && claimed.task.retry.is_retryable(&failed.failure.code);
                (sent(failed, claimed.task.parent.is_some()), retryable)
            }
            Ran::Panicked(text) => {
                (task::Failure::new("panic", text), claimed.task.retry.is_retryable("panic"))
            }
            Ran::Cancelled => (task::Failure::new("cancelled", "stopped on request"), false),
        };
        // The next attempt continues from this progress.
        if let Some(progress) = unsent.filter(|_| retryable)
            && let Err(error) = self.service.report_progress(id, token, progress).await
        {
            tracing::debug!({ field::TASK_ID } = %id, %error, "can't report the progress");
        }
        self.service.fail(id, token, failure, retryable).await?;
        Ok(TaskEnd::Reported)
    }
}

/// What an attempt can read about itself.
pub(super) fn info_of(step: &ErasedStep, claimed: &ClaimedTask) -> StepInfo {
    StepInfo {
        // The task's id is the same for all attempts, and different in each run.
        idempotency_key: claimed.task.id.to_string(),
        attempt: claimed.task.attempt,
        name: step.kind.to_owned(),
        traceparent: claimed.task.trace.map(|trace| trace.traceparent()),
        progress: claimed.task.progress,
        progress_sender: ProgressSender::default(),
    }
}

/// The progress that no heartbeat has reported.
pub(super) fn unsent(sender: &ProgressSender, receiver: &ProgressReceiver) -> Option<f64> {
    receiver.has_changed().is_ok_and(|changed| changed).then(|| sender.last()).flatten()
}

/// A failure as it is sent: for a workflow, a typed error is sent in full.
fn sent(failed: StepFailed, is_step: bool) -> task::Failure {
    let StepFailed { failure, error, .. } = failed;
    let plain = |error: &Json| codec::decode::<Failure>(error).is_ok_and(|same| same == failure);
    match error.filter(|error| is_step && !plain(error)) {
        Some(error) => task::Failure::new(TYPED_ERROR, error.as_str()),
        None => failure.into(),
    }
}
