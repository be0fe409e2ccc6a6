//! What an operation does with a page of records. Each action can be repeated: whoever was cut off has done some of it.

use futures::stream::{self, StreamExt as _};
use tickover_core::error::Reject;
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionStatus};
use tickover_core::id::{EventId, StepName};
use tickover_core::operation::{Action, Counts, Operation};
use tickover_core::task::Task;
use tickover_core::time::Timestamp;

use super::find::{Records, UNREADABLE};
use super::{Details, EventToSend};
use crate::error::ServiceError;
use crate::service::Service;
use crate::tasks::operate::CancelReply;

/// Records that are changed at the same time.
const AT_ONCE: usize = 16;

impl Service {
    /// Carries out the action on each record, and counts what became of it. An error that passes by itself ends the
    /// page: all of it is tried again.
    pub(super) async fn act_on(
        &self,
        records: Records,
        operation: &Operation,
        details: &Details,
        counts: &mut Counts,
    ) -> Result<(), ServiceError> {
        let service = &self.clone().called_by(operation.by_page());
        let results: Vec<Result<bool, ServiceError>> = match records {
            Records::Executions(executions) => {
                let act = |execution| Box::pin(service.act_on_execution(execution, operation, details));
                stream::iter(executions).map(act).buffer_unordered(AT_ONCE).collect().await
            }
            Records::Tasks(tasks) => {
                let act = |task| Box::pin(service.act_on_task(task, operation));
                stream::iter(tasks).map(act).buffer_unordered(AT_ONCE).collect().await
            }
        };
        for result in results {
            match result {
                Ok(true) => counts.changed += 1,
                Ok(false) | Err(ServiceError::Rejected(Reject::EndedLater)) => counts.unchanged += 1,
                Err(ServiceError::Rejected(reject)) => {
                    *counts.refused.entry(reject.code().to_owned()).or_default() += 1;
                }
                Err(ServiceError::Corrupt { reason }) => {
                    tracing::error!(operation = %operation.id, reason, "record left alone");
                    *counts.refused.entry(UNREADABLE.to_owned()).or_default() += 1;
                }
                Err(
                    error @ (ServiceError::Contended
                    | ServiceError::Throttled
                    | ServiceError::Unavailable { .. }),
                ) => {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Returns whether that changed anything, now or when this page was carried out before.
    async fn act_on_execution(
        &self,
        execution: Execution,
        operation: &Operation,
        details: &Details,
    ) -> Result<bool, ServiceError> {
        let was_changed = operation.has_changed_execution(&execution);
        let changed = self.change_execution(execution, operation, details).await;
        or_before(changed, was_changed)
    }

    async fn change_execution(
        &self,
        execution: Execution,
        operation: &Operation,
        details: &Details,
    ) -> Result<bool, ServiceError> {
        let asked_at = operation.created_at;
        // One of the same id, started after the operation was asked for.
        if execution.created_at > asked_at {
            return Ok(false);
        }
        let id = &execution.id;
        let was_open = execution.closed().is_none();
        // Whoever listed it had seen it fail. It may have been run again and have completed before this was asked for.
        let was_good =
            execution.status() == ExecutionStatus::Completed && !details.selection.names_statuses();
        match operation.action {
            Action::Retry | Action::RetryStep | Action::Restart if was_open => {
                self.repeat_on_execution(&execution, asked_at).await
            }
            Action::Retry | Action::RetryStep | Action::Restart if was_good => Ok(false),
            Action::RetryStep => {
                let step = failed_step(&execution)?;
                self.retry_step_of(id, step, None, Some(asked_at)).await.map(|_| true)
            }
            Action::Retry => self.rerun_of(id, &[], true, Some(asked_at)).await.map(|_| true),
            Action::Restart => self.restart_of(id, Some(asked_at)).await.map(|_| true),
            Action::Cancel => {
                Ok(has_changed(self.cancel_execution(id).await?.1) && !execution.cancel_requested)
            }
            Action::Terminate => Ok(has_changed(self.terminate(id).await?.1)),
            Action::SendEvent => {
                let Some(EventToSend { name, payload }) = &details.event else { return Ok(false) };
                let event_id = EventId::parse(operation.id.as_str()).ok();
                let sent = self.send_event(id, name.clone(), event_id, payload.clone()).await?;
                Ok(!sent.duplicate)
            }
        }
    }

    /// An open execution that is to run again: perhaps this operation has done that already, and its process died before
    /// it sent the hint. Sends it again.
    async fn repeat_on_execution(
        &self,
        execution: &Execution,
        asked_at: Timestamp,
    ) -> Result<bool, ServiceError> {
        let Some((_, step)) = execution.untouched_since().filter(|(at, _)| *at >= asked_at) else {
            return Ok(false);
        };
        let repeated = match step {
            Some(name) => self.retry_step_of(&execution.id, name.clone(), None, Some(asked_at)).await,
            None => self.restart_of(&execution.id, Some(asked_at)).await,
        };
        match repeated {
            // It may also be somebody else who had it run again.
            Ok(_) | Err(ServiceError::Rejected(Reject::ExecutionOpen { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// As [`Self::act_on_execution`].
    async fn act_on_task(&self, task: Task, operation: &Operation) -> Result<bool, ServiceError> {
        let was_changed = operation.has_changed_task(&task);
        or_before(self.change_task(task, operation).await, was_changed)
    }

    async fn change_task(&self, task: Task, operation: &Operation) -> Result<bool, ServiceError> {
        let asked_at = operation.created_at;
        if task.created_at > asked_at {
            return Ok(false);
        }
        match operation.action {
            // Perhaps this operation has revived it already, and its process died before it sent the hint.
            Action::Retry if task.ended().is_none() && task.revived_at.is_none_or(|at| at < asked_at) => {
                Ok(false)
            }
            Action::Retry if task.ended().is_none() => match self.retry_of(&task.id, Some(asked_at)).await {
                Ok(_) => Ok(true),
                Err(ServiceError::Rejected(Reject::NotTerminal { .. })) => Ok(false),
                Err(error) => Err(error),
            },
            Action::Retry => self.retry_of(&task.id, Some(asked_at)).await.map(|_| true),
            Action::Cancel => {
                let was_requested = task.running().is_some_and(|lease| lease.cancel_requested);
                Ok(has_changed(self.cancel(&task.id, false).await?.1) && !was_requested)
            }
            Action::Terminate => Ok(has_changed(self.cancel(&task.id, true).await?.1)),
            Action::RetryStep | Action::Restart | Action::SendEvent => Ok(false),
        }
    }
}

/// What became of a record that this page may have changed before. If it changed afterwards, the action is refused.
fn or_before(changed: Result<bool, ServiceError>, was_changed: bool) -> Result<bool, ServiceError> {
    match changed {
        Ok(changed) => Ok(changed || was_changed),
        Err(ServiceError::Rejected(_)) if was_changed => Ok(true),
        Err(error) => Err(error),
    }
}

/// The step because of which an execution failed.
fn failed_step(execution: &Execution) -> Result<StepName, Reject> {
    let step = execution.closed().and_then(|closed| match &closed.outcome {
        ExecutionOutcome::Failed { step, .. } => step.clone(),
        ExecutionOutcome::Completed { .. }
        | ExecutionOutcome::TimedOut { .. }
        | ExecutionOutcome::Cancelled { .. } => None,
    });
    let name = step.unwrap_or_default();
    StepName::parse(name.clone()).map_err(|_| Reject::UnknownStep { name })
}

const fn has_changed(reply: CancelReply) -> bool {
    match reply {
        CancelReply::Cancelled | CancelReply::Requested => true,
        CancelReply::AlreadyFinished => false,
    }
}
