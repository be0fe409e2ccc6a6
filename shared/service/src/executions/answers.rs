//! The answers to requests. A request is an event with an id. Its answer is a captured value of the run that has taken it,
//! with that id in its name: so it is in the journal, written with the turn that gave it, and no item of its own is needed.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::execution::journal::{Fate, fate_of};
use tickover_core::id::{EventId, EventName, ExecutionId};
use tickover_core::limits::WAIT_MAX;
use tickover_core::payload::Json;

use super::blob_of_event;
use super::describe::{LOOK_AFTER, LOOK_AFTER_MAX};
use crate::error::ServiceError;
use crate::service::Service;
use crate::waits;

impl Service {
    /// Waits until an execution has answered an event that was sent with an id, at most so long (20 s). `None` if it hasn't
    /// by then.
    ///
    /// # Errors
    ///
    /// [`Reject::Unanswered`] once it can't be answered any more: the execution has ended, the run that took it is over, or
    /// it was cleared.
    pub async fn wait_for_answer(
        &self,
        id: &ExecutionId,
        name: &EventName,
        event: &EventId,
        wait: Millis,
    ) -> Result<Option<Json>, ServiceError> {
        let wait = wait.min(WAIT_MAX);
        let until = self.now().plus(wait);
        let mut pause = LOOK_AFTER;
        loop {
            let Some(execution) = self.load_execution(id).await? else {
                return Err(Reject::NoExecution.into());
            };
            let answer = self.answer(&execution, name, event).await?;
            let left = self.left(until, wait);
            if answer.is_some() || left.is_zero() || waits::are_over() {
                return Ok(answer);
            }
            self.wait_until(self.now().plus(pause.min(left))).await;
            pause = pause.saturating_mul(2).min(LOOK_AFTER_MAX);
        }
    }

    /// The answer to an event, if the execution has given it. An error if it never will.
    async fn answer(
        &self,
        execution: &Execution,
        name: &EventName,
        event: &EventId,
    ) -> Result<Option<Json>, ServiceError> {
        let mut whole = vec![];
        let mut fate = fate_of(&execution.journal, event);
        // The record may have the event of an answer that only a segment has, or the other way round.
        if execution.sealed.is_some() && !matches!(fate, Some(Fate::Answered(_))) {
            whole = self.about(execution, name).await?;
            fate = fate_of(&whole, event);
        }
        match fate {
            Some(Fate::Answered(answer)) => Ok(self.payload(Some(answer)).await?),
            Some(Fate::Open) if execution.closed().is_none() => Ok(None),
            Some(Fate::Open | Fate::Cleared) => Err(Reject::Unanswered.into()),
            None => self.answer_of_earlier(execution, event).await,
        }
    }

    /// The same for an event that the journal of the current run doesn't have: an earlier one has taken it.
    async fn answer_of_earlier(
        &self,
        execution: &Execution,
        event: &EventId,
    ) -> Result<Option<Json>, ServiceError> {
        let at = blob_of_event(&execution.id, execution.incarnation, event);
        let mark = self.with_retries(|| self.ports.store.blob(&at)).await?;
        let Some(first) = mark.and_then(|run| run.as_str().parse::<u32>().ok()) else {
            return Err(Reject::Unanswered.into());
        };
        if first >= execution.run && execution.closed().is_none() {
            // It was sent under another name.
            return Ok(None);
        }
        // A run that hasn't taken it has passed it on to the next.
        for run in first..execution.run {
            let Some(run) = self.earlier_run(execution, run).await? else { break };
            match fate_of(&run.journal, event) {
                Some(Fate::Answered(answer)) => return self.payload(Some(answer)).await,
                Some(Fate::Open) => {}
                Some(Fate::Cleared) | None => break,
            }
        }
        Err(Reject::Unanswered.into())
    }
}
