//! The loop of [`crate::drive`] for executions: decide, commit, tell; a conflict decides again.

use tickover_core::command::Context;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::command::ExecutionCommand;
use tickover_core::execution::decision::{ExecutionDecision, ExecutionReply};
use tickover_core::execution::journal::Happened;
use tickover_core::execution::{Execution, ExecutionState, ahead_of_journal};
use tickover_core::id::ExecutionId;
use tickover_core::time::Timestamp;

use super::close::Share;
use crate::drive::{CONFLICT_WAIT, CONFLICTS_MAX};
use crate::error::ServiceError;
use crate::metric;
use crate::ports::{Current, StoreError};
use crate::service::Service;
use crate::telemetry::field;

/// How long the caller of any command waits for what follows an execution's end, before that is left to others.
pub(crate) const CALLERS_PATIENCE: Millis = Millis::from_secs(5);

/// What is known of the record before the first decision.
pub(crate) enum KnownExecution {
    /// Nothing: it is read.
    Unread,
    /// That there should be none.
    Absent,
    /// How it stood a moment ago.
    Record(Box<Execution>),
}

/// A command carried out.
pub(crate) struct DrivenExecution {
    /// The execution as it stands now.
    pub(crate) execution: Option<Execution>,
    /// The answer.
    pub(crate) outcome: Result<ExecutionReply, Reject>,
    /// Whether it was this command that closed the execution, and left something to be ended: its caller begins with
    /// that.
    pub(super) closed_here: bool,
}

impl DrivenExecution {
    /// The record and the answer, where there are both.
    pub(crate) fn answer(self) -> Result<(Execution, ExecutionReply), ServiceError> {
        match (self.execution, self.outcome) {
            (_, Err(reject)) => Err(reject.into()),
            (Some(execution), Ok(reply)) => Ok((execution, reply)),
            (None, Ok(_)) => Err(Reject::NoExecution.into()),
        }
    }
}

impl Service {
    /// Carries a command out and tells others of it. An execution that it closes is seen to the end, if that can be
    /// done while its caller waits. One that was closing already isn't: somebody else goes on with that.
    pub(crate) async fn drive_execution(
        &self,
        id: &ExecutionId,
        known: KnownExecution,
        command: &ExecutionCommand,
    ) -> Result<DrivenExecution, ServiceError> {
        let stop_at = self.now().plus(CALLERS_PATIENCE);
        // Each caller's future would hold all of this, though it is mostly waiting for one answer.
        let driven = Box::pin(self.drive_alone(id, known, command)).await?;
        // Without a queue of timers, a turn's hint is the message that a close goes on by.
        let goes_on = matches!(command, ExecutionCommand::Take(_)) && !self.has_timers();
        if !driven.closed_here && !goes_on {
            return Ok(driven);
        }
        Ok(Box::pin(self.see_to_the_end(driven, stop_at, Share::Page)).await)
    }

    /// Carries a command out and tells others of it, and does nothing of what follows an end.
    pub(super) async fn drive_alone(
        &self,
        id: &ExecutionId,
        known: KnownExecution,
        command: &ExecutionCommand,
    ) -> Result<DrivenExecution, ServiceError> {
        let mut record = match known {
            KnownExecution::Unread => self.load_execution(id).await?,
            KnownExecution::Absent => None,
            KnownExecution::Record(execution) => Some(*execution),
        };
        let (mut seen, mut again) = (None, None);
        for tries in 0..CONFLICTS_MAX {
            let asked = again.as_ref().unwrap_or(command);
            let current = match self.attempt_execution(record.as_ref(), asked).await? {
                Ok(driven) => return Ok(driven),
                Err(Some(current)) if current.id == *id => Some(*current),
                // Even past its retention: a creation may have been our own.
                Err(_) => self.patiently(|| self.ports.store.execution(id)).await?,
            };
            let before = std::mem::replace(&mut record, current);
            let seen = &*seen.get_or_insert(before);
            if let (Some(seen), Some(current)) = (seen, &record) {
                again = self.asked_again(command, seen, current).await?;
            }
            if tries > 0 {
                self.back_off(tries, CONFLICT_WAIT).await;
            }
        }
        Err(ServiceError::Contended)
    }

    /// Decides once, commits, and tells others. The inner error is a conflict, with the record as it stands.
    async fn attempt_execution(
        &self,
        record: Option<&Execution>,
        command: &ExecutionCommand,
    ) -> Result<Result<DrivenExecution, Option<Box<Execution>>>, ServiceError> {
        let now = self.now();
        let is_start = matches!(command, ExecutionCommand::Start(_));
        let record = record.filter(|execution| !execution.is_gone(now) || is_start);
        let context = Context { now, nonce: self.new_nonce(), limits: &self.limits };
        let decision = self.rules.decide_execution(record, command, &context);
        let ExecutionDecision { blobs, segments, writes, mut effects, execution, outcome } = decision;
        for blob in &blobs {
            self.patiently(|| self.ports.store.put_blob(&blob.at, &blob.body)).await?;
        }
        if let Some(execution) = &execution {
            // It says of all its parts how long they are kept.
            let kept = execution.kept.unwrap_or_else(|| ahead_of_journal(now, &self.limits));
            for (key, segment) in &segments {
                self.patiently(|| self.ports.store.put_segment(&execution.id, key, segment, kept)).await?;
            }
        }
        if !writes.is_empty() {
            // With this commit a closing execution leaves the index: whoever died after it would have told nobody, and
            // nobody would come to see.
            self.tell_first(&mut effects).await?;
            match self.patiently(|| self.ports.store.commit(&writes)).await {
                Ok(()) => {
                    self.tell(&writes, now);
                    if let Some(execution) = &execution {
                        count_steps(execution, command);
                    }
                }
                Err(StoreError::Conflict { current }) => {
                    metric::store_conflict();
                    return Ok(Err(current.and_then(Current::execution)));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.publish(effects).await;
        let was_closed = record.is_some_and(|record| record.closed().is_some());
        let closed_here = !was_closed && execution.as_ref().is_some_and(is_closing);
        Ok(Ok(DrivenExecution { execution, outcome, closed_here }))
    }

    /// One that is closing is finished at once. If that fails, the tick does it.
    pub(super) async fn see_to_the_end(
        &self,
        mut driven: DrivenExecution,
        stop_at: Timestamp,
        share: Share,
    ) -> DrivenExecution {
        if let Some(execution) = driven.execution.take_if(|execution| is_closing(execution)) {
            // What it leaves open may close others in turn.
            match self.finish(&execution, stop_at, share).await {
                Ok(finished) => driven.execution = Some(finished),
                Err(error) => {
                    tracing::warn!({ field::EXECUTION_ID } = %execution.id, %error, "still closing");
                    driven.execution = Some(execution);
                }
            }
        }
        driven
    }

    /// Reads an execution; one whose retention has passed doesn't exist any more.
    pub(crate) async fn load_execution(&self, id: &ExecutionId) -> Result<Option<Execution>, ServiceError> {
        let execution = self.patiently(|| self.ports.store.execution(id)).await?;
        Ok(execution.filter(|execution| !execution.is_gone(self.now())))
    }
}

/// Whether what an execution left open at its end is still to be ended.
pub(super) const fn is_closing(execution: &Execution) -> bool {
    matches!(execution.state, ExecutionState::Closing(_))
}

/// Counts the steps whose end a worker has just written down.
fn count_steps(execution: &Execution, command: &ExecutionCommand) {
    for entry in command.entries() {
        if let Happened::Step { outcome, .. } = &entry.what {
            metric::step_ended(&execution.queue, outcome.as_str());
        }
    }
}
