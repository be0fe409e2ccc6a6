//! Remote steps that this worker runs: runs an attempt, keeps it alive, and reports the outcome.

use std::panic::AssertUnwindSafe;
use std::pin::pin;

use futures::FutureExt as _;
use futures::future::{Either, select};
use tickover_core::execution::journal::TYPED_ERROR;
use tickover_core::id::TaskId;
use tickover_core::payload::Json;
use tickover_core::task;
use tickover_core::task::command::SignOfLife;
use tickover_service::ServiceError;
use tickover_service::claim::ClaimedTask;
use tickover_service::executions::idempotency_key;
use tickover_service::tasks::work;
use tickover_service::telemetry::{execution_of, field, step_of};
use tickover_service::warn_unless_logged;

use super::Worker;
use super::pulse::Pulse;
use crate::busy::watch;
use crate::codec;
use crate::error::Failure;
use crate::registry::{ErasedStep, StepFailed};
use crate::step::{Beat, ProgressSender, StepInfo};
use crate::turn::panics;

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
    /// The attempt is over for the server, or will be without a call: the lease was lost, or a timeout has passed.
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
        let mut pulse = Pulse::new(self, &claimed, &info);
        pulse.keeper.begin().await;
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
        let ran = {
            let alive = self.keep_alive(&claimed, &mut pulse);
            match select(pin!(body), pin!(alive)).await {
                Either::Left((ran, _)) | Either::Right((ran, _)) => ran,
            }
        };
        self.report_end(&claimed, ran, pulse.unsent_values()).await
    }

    /// Gives back a task whose kind isn't known here.
    async fn release_unknown(&self, claimed: &ClaimedTask) -> TaskEnd {
        let (id, of) = (&claimed.task.id, claimed.task.parent.as_ref());
        tracing::warn!({ field::TASK_ID } = %id, { field::EXECUTION_ID } = execution_of(of), { field::STEP_NAME } = step_of(of), kind = %claimed.task.kind, "no step of this kind here");
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
        let (id, of) = (&claimed.task.id, claimed.task.parent.as_ref());
        tracing::info!({ field::TASK_ID } = %id, { field::EXECUTION_ID } = execution_of(of), { field::STEP_NAME } = step_of(of), "the lease had expired before the attempt started");
        // If the release fails, another worker has the task, or its message is delivered again.
        drop(self.service.release(id, &claimed.token).await);
        (id.clone(), TaskEnd::Lost)
    }

    /// Reports how an attempt ended.
    pub(super) async fn report_end(&self, claimed: &ClaimedTask, ran: Ran, unsent: Option<Beat>) -> TaskEnd {
        match self.report(claimed, ran, unsent).await {
            Ok(end) => end,
            Err(error) => {
                let (id, of) = (&claimed.task.id, claimed.task.parent.as_ref());
                warn_unless_logged!(error; { field::TASK_ID } = %id, { field::EXECUTION_ID } = execution_of(of), { field::STEP_NAME } = step_of(of), %error, "can't report the outcome");
                TaskEnd::Lost
            }
        }
    }

    async fn report(
        &self,
        claimed: &ClaimedTask,
        ran: Ran,
        unsent: Option<Beat>,
    ) -> Result<TaskEnd, ServiceError> {
        let (id, token, of) = (&claimed.task.id, &claimed.token, claimed.task.parent.as_ref());
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
        // The next attempt continues from there.
        if let Some(Beat { progress, details, .. }) = unsent.filter(|_| retryable) {
            let beat = work::Beat { sign_of: SignOfLife::Work, progress, details };
            if let Err(error) = self.service.beat(id, token, beat).await {
                tracing::debug!({ field::TASK_ID } = %id, { field::EXECUTION_ID } = execution_of(of), { field::STEP_NAME } = step_of(of), %error, "can't report the progress");
            }
        }
        self.service.fail(id, token, failure, retryable).await?;
        Ok(TaskEnd::Reported)
    }
}

/// What an attempt can read about itself.
pub(super) fn info_of(step: &ErasedStep, claimed: &ClaimedTask) -> StepInfo {
    StepInfo {
        idempotency_key: idempotency_key(&claimed.task).to_string(),
        attempt: claimed.task.attempt,
        name: step.kind.to_owned(),
        traceparent: claimed.task.trace.map(|trace| trace.traceparent()),
        progress: claimed.task.progress,
        progress_sender: ProgressSender::after(claimed.details.clone()),
    }
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
