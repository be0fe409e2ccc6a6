//! The outcomes of remote steps and children, for a parent's journal.
//!
//! Only steps and children that the journal lists as started are read here, and all reads are consistent. So a task or
//! child that isn't found has been deleted: its retention passed before the parent read it.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use tickover_core::execution::journal::{FailedAttempt, StepOutcome, TYPED_ERROR, is_own_child};
use tickover_core::execution::{Closed, Execution, ExecutionOutcome};
use tickover_core::id::{ExecutionId, StepName, TaskId};
use tickover_core::payload::{BlobRef, Json, Payload};
use tickover_core::retry::MaxAttempts;
use tickover_core::task::{Ending, Failure, Outcome, Task};
use tickover_core::time::Timestamp;
use tickover_core::timeout::Expired;

use super::remote::{AT_ONCE, remote_id};
use crate::error::ServiceError;
use crate::service::Service;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedStep {
    pub outcome: StepOutcome,
    /// The time limit that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expired: Option<Expired>,
    /// The last attempt that failed, if the step timed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<FailedAttempt>,
    /// The number of its attempts; 0 if that isn't known, and for a child.
    #[serde(default)]
    pub attempts: u32,
    /// When it ended. If it was deleted, the Unix epoch: earlier than any that still exists.
    pub ended_at: Timestamp,
}

impl EndedStep {
    const fn gone() -> Self {
        let outcome = StepOutcome::ResultExpired;
        Self { outcome, expired: None, last_error: None, attempts: 0, ended_at: Timestamp::EPOCH }
    }
}

/// The most records that one call reads.
pub(super) const READ_MAX: usize = 100;

impl Service {
    /// The outcomes of those of an execution's remote steps, children and other executions that have ended, in the order
    /// of their ends.
    pub async fn outcomes(
        &self,
        execution: &Execution,
        remote: &[StepName],
        children: Vec<(StepName, ExecutionId)>,
    ) -> Result<Vec<(StepName, EndedStep)>, ServiceError> {
        let mut outcomes = Vec::new();
        if !remote.is_empty() {
            outcomes.extend(self.remote_outcomes(execution, remote).await?);
        }
        if !children.is_empty() {
            let (ours, others): (Vec<_>, Vec<_>) =
                children.into_iter().partition(|(name, _)| is_own_child(name));
            outcomes.extend(self.child_outcomes(execution, &ours).await?);
            outcomes.extend(self.other_outcomes(&others).await?);
        }
        outcomes.sort_by_key(|(_, ended)| ended.ended_at);
        Ok(outcomes)
    }

    /// The outcomes of those of an execution's remote steps that have ended; all of them must have been started. If the
    /// task was deleted, the outcome is [`StepOutcome::ResultExpired`].
    pub async fn remote_outcomes(
        &self,
        execution: &Execution,
        names: &[StepName],
    ) -> Result<BTreeMap<StepName, EndedStep>, ServiceError> {
        let by_id: BTreeMap<TaskId, &StepName> =
            names.iter().map(|name| (remote_id(execution, name), name)).collect();
        let ids: Vec<TaskId> = by_id.keys().cloned().collect();
        let mut outcomes = BTreeMap::new();
        for ids in ids.chunks(READ_MAX) {
            let (mut tasks, unreadable) = self.load_each(ids).await?;
            let now = self.now();
            tasks.retain(|task| !task.is_gone(now));
            for id in self.deleted_among(ids, &tasks, unreadable).await? {
                if let Some(name) = by_id.get(&id) {
                    outcomes.insert((*name).clone(), EndedStep::gone());
                }
            }
            // Each large result is read and copied on its own, which for many, one after the other, would take long.
            let reads: Vec<_> = tasks.iter().map(|task| self.outcome_of(task)).collect();
            let read: Vec<_> = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
            for (task, outcome) in tasks.iter().zip(read) {
                if let (Some(name), Some(outcome)) = (by_id.get(&task.id), outcome) {
                    outcomes.insert((*name).clone(), outcome);
                }
            }
        }
        Ok(outcomes)
    }

    /// Those of the tasks that weren't found that were deleted. A task that can't be read exists.
    async fn deleted_among(
        &self,
        ids: &[TaskId],
        found: &[Task],
        unreadable: u64,
    ) -> Result<Vec<TaskId>, ServiceError> {
        let missing = ids.iter().filter(|id| found.iter().all(|task| task.id != **id));
        if unreadable == 0 {
            return Ok(missing.cloned().collect());
        }
        let mut gone = Vec::new();
        for id in missing {
            match self.load(id).await {
                Ok(None) => gone.push(id.clone()),
                Ok(Some(_)) | Err(ServiceError::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(gone)
    }

    async fn outcome_of(&self, task: &Task) -> Result<Option<EndedStep>, ServiceError> {
        let Some(ended) = task.ended() else { return Ok(None) };
        let outcome = match &ended.outcome {
            Outcome::Completed { output } => self.completed(output.as_ref()).await?,
            Outcome::Failed { error, message } => self.failed(task, error, message.as_ref()).await?,
            outcome @ (Outcome::TimedOut { .. } | Outcome::Cancelled { .. } | Outcome::Skipped) => {
                as_recorded(task, outcome)
            }
        };
        let (expired, attempts) = (task.expired(), task.attempt);
        let last_error = if outcome == StepOutcome::TimedOut { last_error(task) } else { None };
        Ok(Some(EndedStep { outcome, expired, last_error, attempts, ended_at: ended.ended_at }))
    }

    /// A result, copied for the journal: its own item may be deleted before the execution ends.
    async fn completed(&self, output: Option<&Payload>) -> Result<StepOutcome, ServiceError> {
        let Some(output) = output else { return Ok(StepOutcome::Completed { output: None }) };
        Ok(match self.payload_if_kept(output).await? {
            Some(json) => StepOutcome::Completed { output: Some(self.store_payload(json).await?) },
            None => StepOutcome::ResultExpired,
        })
    }

    async fn failed(
        &self,
        task: &Task,
        error: &Failure,
        message: Option<&BlobRef>,
    ) -> Result<StepOutcome, ServiceError> {
        let whole = match message {
            Some(at) => self.payload_if_kept(&Payload::Blob(at.clone())).await?,
            None => None,
        };
        // A typed error that was cut can't be parsed as its type. Any other error still has its code.
        if whole.is_none() && message.is_some() && error.code == TYPED_ERROR {
            return Ok(StepOutcome::ResultExpired);
        }
        let whole = whole.and_then(|json| serde_json::from_str::<String>(json.as_str()).ok());
        let message = whole.unwrap_or_else(|| error.message.clone());
        let failure = Failure::new(error.code.clone(), message);
        let error = self.store_payload(error_json(&failure)).await?;
        Ok(if is_used_up(task) { StepOutcome::Exhausted { error } } else { StepOutcome::Failed { error } })
    }

    /// The text of a payload, if it still exists.
    pub(super) async fn payload_if_kept(&self, payload: &Payload) -> Result<Option<Json>, ServiceError> {
        match payload {
            Payload::Inline(json) => Ok(Some(json.clone())),
            Payload::Blob(at) => Ok(self.with_retries(|| self.ports.store.blob(&at.id)).await?),
        }
    }

    /// The outcomes of those of a run's children that have ended. If a child was deleted, and even if another execution
    /// has its id now, the outcome is [`StepOutcome::ResultExpired`].
    pub async fn child_outcomes(
        &self,
        parent: &Execution,
        children: &[(StepName, ExecutionId)],
    ) -> Result<BTreeMap<StepName, EndedStep>, ServiceError> {
        let is_ours = |child: &Execution| child.parent.as_ref().is_some_and(|of| of.is(parent));
        self.outcomes_of(children, |found| match found {
            Some(child) if is_ours(child) => child.closed().map(|closed| Some((child, closed))),
            Some(_) | None => Some(None),
        })
        .await
    }

    /// The outcomes of executions that this one awaits but has not started. Executions that are open or don't exist yet
    /// are left out.
    pub async fn other_outcomes(
        &self,
        others: &[(StepName, ExecutionId)],
    ) -> Result<BTreeMap<StepName, EndedStep>, ServiceError> {
        self.outcomes_of(others, |found| {
            let other = found?;
            Some(Some((other, other.closed()?)))
        })
        .await
    }

    async fn outcomes_of(
        &self,
        children: &[(StepName, ExecutionId)],
        see: impl Fn(Option<&Execution>) -> Option<Option<(&Execution, &Closed)>>,
    ) -> Result<BTreeMap<StepName, EndedStep>, ServiceError> {
        let mut outcomes = BTreeMap::new();
        for children in children.chunks(READ_MAX) {
            let ids: Vec<ExecutionId> = children.iter().map(|(_, id)| id.clone()).collect();
            let mut found = self.with_retries(|| self.ports.store.executions(&ids)).await?;
            let now = self.now();
            found.retain(|child| !child.is_gone(now));
            let by_id: BTreeMap<&ExecutionId, &Execution> =
                found.iter().map(|child| (&child.id, child)).collect();
            let seen = children.iter().filter_map(|(name, id)| Some((name, see(by_id.get(id).copied())?)));
            let (names, reads): (Vec<_>, Vec<_>) =
                seen.map(|(name, ended)| (name, self.outcome_of_child(ended))).unzip();
            let read: Vec<_> = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
            outcomes.extend(names.into_iter().cloned().zip(read));
        }
        Ok(outcomes)
    }

    /// `None` for a child that was deleted.
    async fn outcome_of_child(
        &self,
        ended: Option<(&Execution, &Closed)>,
    ) -> Result<EndedStep, ServiceError> {
        let Some((child, closed)) = ended else { return Ok(EndedStep::gone()) };
        let outcome = match &closed.outcome {
            ExecutionOutcome::Completed { output } => self.completed(output.as_ref()).await?,
            ExecutionOutcome::Failed { error, .. } => {
                StepOutcome::Failed { error: self.store_payload(error_json(error)).await? }
            }
            outcome @ (ExecutionOutcome::TimedOut { .. } | ExecutionOutcome::Cancelled { .. }) => {
                child_as_recorded(outcome)
            }
        };
        let (expired, ended_at) = (child.expired(), closed.ended_at);
        Ok(EndedStep { outcome, expired, last_error: None, attempts: 0, ended_at })
    }
}

/// A task's outcome as a step's, with no more than what its record has of payloads and messages.
pub(super) fn as_recorded(task: &Task, outcome: &Outcome) -> StepOutcome {
    match outcome {
        Outcome::Completed { output } => StepOutcome::Completed { output: output.clone() },
        Outcome::Failed { error, .. } => {
            let error = Payload::Inline(error_json(error));
            if is_used_up(task) { StepOutcome::Exhausted { error } } else { StepOutcome::Failed { error } }
        }
        Outcome::TimedOut { .. } => StepOutcome::TimedOut,
        Outcome::Cancelled { .. } => StepOutcome::Cancelled,
        Outcome::Skipped => StepOutcome::Completed { output: None },
    }
}

/// The same of a child.
pub(super) fn child_as_recorded(outcome: &ExecutionOutcome) -> StepOutcome {
    match outcome {
        ExecutionOutcome::Completed { output } => StepOutcome::Completed { output: output.clone() },
        ExecutionOutcome::Failed { error, .. } => {
            StepOutcome::Failed { error: Payload::Inline(error_json(error)) }
        }
        ExecutionOutcome::TimedOut { .. } => StepOutcome::TimedOut,
        ExecutionOutcome::Cancelled { .. } => StepOutcome::Cancelled,
    }
}

/// A step's error in its own type, or as a failure.
fn error_json(failure: &Failure) -> Json {
    let own = (failure.code == TYPED_ERROR).then(|| Json::parse(failure.message.clone())).flatten();
    own.unwrap_or_else(|| {
        let text = serde_json::json!({ "code": failure.code, "message": failure.message }).to_string();
        Json::parse(text).unwrap_or_else(|| Json::string(&failure.code))
    })
}

/// The last attempt for which a worker reported an error.
fn last_error(task: &Task) -> Option<FailedAttempt> {
    let failed = task.history.iter().rev().find(|past| past.ending == Ending::Failed)?;
    Some(FailedAttempt { at: failed.ended_at, attempt: failed.attempt, error: failed.error.clone()? })
}

/// Whether a failed task had several attempts and used all of them.
fn is_used_up(task: &Task) -> bool {
    match task.retry.max_attempts {
        MaxAttempts::Limited(limit) => limit.get() > 1 && task.attempt >= limit.get(),
        MaxAttempts::Unlimited | MaxAttempts::Skip => false,
    }
}
