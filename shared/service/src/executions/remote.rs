//! Remote steps and children: begun, looked at, and ended by the turn that owns them.
//!
//! A remote step is a task like any other. Its id follows from the execution, the run and the step's name, so that
//! beginning it twice is beginning it once.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tickover_core::command::{Command, Schedule, Start};
use tickover_core::error::Reject;
use tickover_core::execution::journal::{StepOutcome, TYPED_ERROR};
use tickover_core::execution::{Execution, ExecutionOutcome, Parent};
use tickover_core::id::{ExecutionId, Fingerprint, StepName, TaskId};
use tickover_core::limits;
use tickover_core::payload::{Json, Payload};
use tickover_core::retry::MaxAttempts;
use tickover_core::task::{Failure, Outcome, Task};

use super::RemoteStep;
use super::start::hash;
use crate::drive::Known;
use crate::error::ServiceError;
use crate::service::Service;
use crate::telemetry::field;

/// Tasks written, and results read, at once.
const AT_ONCE: usize = 16;
/// Records of one batch read.
const READ_MAX: usize = 100;

/// The id of the task that is a remote step of an execution's run.
#[expect(clippy::missing_panics_doc, reason = "it never does")]
pub fn remote_id(execution: &Execution, name: &StepName) -> TaskId {
    let digest: [u8; 16] = hash(&[
        execution.id.as_str().as_bytes(),
        execution.incarnation.as_bytes(),
        &execution.run.to_be_bytes(),
        name.as_str().as_bytes(),
    ]);
    #[expect(clippy::expect_used, reason = "base64url's characters are allowed in every id, after a letter")]
    TaskId::parse(format!("s-{}", URL_SAFE_NO_PAD.encode(digest))).expect("base64url is a name")
}

impl Service {
    /// Begins remote steps. Those that exist already are left as they are.
    pub async fn begin_remote(
        &self,
        execution: &Execution,
        steps: Vec<RemoteStep>,
    ) -> Result<(), ServiceError> {
        for step in &steps {
            let bytes = step.input.as_ref().map_or(0, Json::len);
            limits::check("input_bytes", bytes, self.limits.payload_bytes)?;
            self.open_queue(&step.queue).await?;
        }
        let begun: Vec<_> =
            stream::iter(steps).map(|step| self.begin_one(execution, step)).buffered(AT_ONCE).collect().await;
        let (mut effects, mut trouble) = (Vec::new(), None);
        for one in begun {
            match one {
                Ok(more) => effects.extend(more),
                Err(error) => trouble = Some(error),
            }
        }
        self.publish(effects).await;
        trouble.map_or(Ok(()), Err)
    }

    async fn begin_one(
        &self,
        execution: &Execution,
        step: RemoteStep,
    ) -> Result<Vec<tickover_core::decision::Effect>, ServiceError> {
        let id = remote_id(execution, &step.name);
        let parent = Parent {
            execution: execution.id.clone(),
            incarnation: execution.incarnation,
            run: execution.run,
            slot: step.slot,
        };
        let command = Command::Schedule(Box::new(Schedule {
            id: id.clone(),
            incarnation: self.new_incarnation(),
            queue: step.queue,
            kind: step.kind,
            input: step.input,
            labels: None,
            retry: step.retry,
            timeouts: step.timeouts,
            start: Start::After(tickover_core::duration::Millis::ZERO),
            // What makes it the same step is its id.
            fingerprint: Fingerprint::from_bytes(hash(&[id.as_str().as_bytes()])),
            key: None,
            parent: Some(parent),
            trace: self.carried(execution.trace),
            blob_ids: [self.new_blob_id(), self.new_blob_id()],
        }));
        let driven = self.drive_quietly(&id, Known::Absent, &command).await?;
        driven.outcome?;
        Ok(driven.effects)
    }

    /// How remote steps of an execution's run ended: those that have, with the attempts they took.
    pub async fn remote_outcomes(
        &self,
        execution: &Execution,
        names: &[StepName],
    ) -> Result<BTreeMap<StepName, (StepOutcome, u32)>, ServiceError> {
        let by_id: BTreeMap<TaskId, &StepName> =
            names.iter().map(|name| (remote_id(execution, name), name)).collect();
        let ids: Vec<TaskId> = by_id.keys().cloned().collect();
        let mut outcomes = BTreeMap::new();
        for ids in ids.chunks(READ_MAX) {
            let (tasks, _) = self.load_each(ids).await?;
            // Each large result is read and kept apart, which for many one after the other would take long.
            let reads: Vec<_> = tasks.iter().map(|task| self.outcome_of(task)).collect();
            let read: Vec<_> = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
            for (task, outcome) in tasks.iter().zip(read) {
                if let (Some(name), Some(outcome)) = (by_id.get(&task.id), outcome) {
                    outcomes.insert((*name).clone(), (outcome, task.attempt));
                }
            }
        }
        Ok(outcomes)
    }

    async fn outcome_of(&self, task: &Task) -> Result<Option<StepOutcome>, ServiceError> {
        let Some(ended) = task.ended() else { return Ok(None) };
        Ok(Some(match &ended.outcome {
            Outcome::Completed { output } => {
                StepOutcome::Completed { output: self.kept(output.as_ref()).await? }
            }
            Outcome::Failed { error, message } => {
                let whole = match message {
                    Some(at) => self.payload(Some(&Payload::Blob(at.clone()))).await?,
                    None => None,
                };
                let whole = whole.and_then(|json| serde_json::from_str::<String>(json.as_str()).ok());
                let message = whole.unwrap_or_else(|| error.message.clone());
                let failure = Failure::new(error.code.clone(), message);
                let error = self.keep(error_json(&failure)).await?;
                if is_used_up(task) {
                    StepOutcome::Exhausted { error }
                } else {
                    StepOutcome::Failed { error }
                }
            }
            Outcome::TimedOut { .. } => StepOutcome::TimedOut,
            Outcome::Cancelled { .. } => StepOutcome::Cancelled,
            Outcome::Skipped => StepOutcome::Completed { output: None },
        }))
    }

    /// A copy for the journal: what it points to in the task's own time may be gone before the execution ends.
    async fn kept(&self, payload: Option<&Payload>) -> Result<Option<Payload>, ServiceError> {
        match self.payload(payload).await? {
            Some(json) => Ok(Some(self.keep(json).await?)),
            None => Ok(None),
        }
    }

    /// Ends remote steps that nobody waits for any more; those that have ended stay as they are.
    pub async fn cancel_remote(&self, execution: &Execution, names: &[StepName]) -> Result<(), ServiceError> {
        let ids: Vec<TaskId> = names.iter().map(|name| remote_id(execution, name)).collect();
        let cancelled: Vec<_> =
            stream::iter(ids).map(|id| self.cancel_task(id)).buffered(AT_ONCE).collect().await;
        cancelled.into_iter().collect()
    }

    pub(super) async fn cancel_task(&self, id: TaskId) -> Result<(), ServiceError> {
        match Box::pin(self.cancel(&id, true)).await {
            // It was never begun, or is long gone.
            Ok(_) | Err(ServiceError::Rejected(Reject::NotFound | Reject::AlreadyTerminal { .. })) => Ok(()),
            Err(error) => {
                tracing::debug!({ field::TASK_ID } = %id, %error, "step not cancelled");
                Err(error)
            }
        }
    }

    /// How child executions ended: those that have.
    pub async fn child_outcomes(
        &self,
        children: &[(StepName, ExecutionId)],
    ) -> Result<BTreeMap<StepName, StepOutcome>, ServiceError> {
        let mut outcomes = BTreeMap::new();
        for children in children.chunks(READ_MAX) {
            let ids: Vec<ExecutionId> = children.iter().map(|(_, id)| id.clone()).collect();
            let found = self.patiently(|| self.ports.store.executions(&ids)).await?;
            let by_id: BTreeMap<&ExecutionId, &Execution> =
                found.iter().map(|child| (&child.id, child)).collect();
            let closed = children.iter().filter_map(|(name, id)| Some((name, by_id.get(id)?.closed()?)));
            let (names, reads): (Vec<_>, Vec<_>) =
                closed.map(|(name, closed)| (name, self.outcome_of_child(&closed.outcome))).unzip();
            let read: Vec<_> = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
            outcomes.extend(names.into_iter().cloned().zip(read));
        }
        Ok(outcomes)
    }

    async fn outcome_of_child(&self, outcome: &ExecutionOutcome) -> Result<StepOutcome, ServiceError> {
        Ok(match outcome {
            ExecutionOutcome::Completed { output } => {
                StepOutcome::Completed { output: self.kept(output.as_ref()).await? }
            }
            ExecutionOutcome::Failed { error, .. } => {
                StepOutcome::Failed { error: self.keep(error_json(error)).await? }
            }
            ExecutionOutcome::TimedOut { .. } => StepOutcome::TimedOut,
            ExecutionOutcome::Cancelled { .. } => StepOutcome::Cancelled,
        })
    }
}

/// A step's error as its own type has it, or as a failure.
fn error_json(failure: &Failure) -> Json {
    let own = (failure.code == TYPED_ERROR).then(|| Json::parse(failure.message.clone())).flatten();
    own.unwrap_or_else(|| {
        let text = serde_json::json!({ "code": failure.code, "message": failure.message }).to_string();
        Json::parse(text).unwrap_or_else(|| Json::string(&failure.code))
    })
}

/// Whether a failed task had attempts to use up, and did.
fn is_used_up(task: &Task) -> bool {
    match task.retry.max_attempts {
        MaxAttempts::Limited(limit) => limit.get() > 1 && task.attempt >= limit.get(),
        MaxAttempts::Unlimited | MaxAttempts::Skip => false,
    }
}
