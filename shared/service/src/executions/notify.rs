//! Notifies an execution that something it may wait for has happened.

use tickover_core::decision::{Effect, Write};
use tickover_core::duration::Millis;
use tickover_core::execution::message::TurnHint;
use tickover_core::execution::{Execution, ExecutionState, Parent, ahead_of_journal, due};
use tickover_core::id::{QueueName, TaskId};
use tickover_core::time::Timestamp;

use super::remote_id;
use crate::contention::Tries;
use crate::drive::{CONFLICT_WAIT, turning};
use crate::error::ServiceError;
use crate::ports::StoreError;
use crate::service::Service;
use crate::telemetry::{field, step_of};
use crate::warn_unless_logged;

impl Service {
    /// Notifies an execution that one of its remote steps or children has ended. If that fails, a probe of the
    /// execution finds it.
    pub(crate) async fn notify_parent(&self, parent: &Parent) {
        if let Err(error) = self.try_to_notify(parent).await {
            warn_unless_logged!(error; { field::EXECUTION_ID } = %parent.execution, %error, "not notified; a probe will find it");
        }
    }

    /// Notifies the parents among these effects, and removes those effects. A child that is closing has its outcome, so
    /// its parent can read it before the child is closed for good.
    pub(crate) async fn notify_parents_first(&self, effects: &mut Vec<Effect>) -> Result<(), ServiceError> {
        for effect in effects.iter() {
            let Effect::NotifyParent(parent) = effect else { continue };
            match self.try_to_notify(parent).await {
                Ok(()) => {}
                // No call can notify the parent, and the child must end all the same.
                Err(error @ ServiceError::Corrupt { .. }) => {
                    tracing::error!({ field::EXECUTION_ID } = %parent.execution, %error, "not notified");
                }
                Err(error) => return Err(error),
            }
        }
        effects.retain(|effect| !matches!(effect, Effect::NotifyParent(_)));
        Ok(())
    }

    /// The same; the caller learns of a failure.
    pub(super) async fn try_to_notify(&self, parent: &Parent) -> Result<(), ServiceError> {
        if !self.is_last_of_its_join(parent).await? {
            return Ok(());
        }
        match self.open_parent(parent).await? {
            Some(execution) => self.wake(execution, Some(parent)).await,
            None => Ok(()),
        }
    }

    /// Notifies an execution of a step or child whose message has come after its end: the process that ended it may have
    /// died before the notification or, if the message was received `again`, between the wake and its hint. Does nothing
    /// if a turn has started since.
    pub(crate) async fn notify_again(
        &self,
        parent: &Parent,
        ended_at: Timestamp,
        again: bool,
    ) -> Result<(), ServiceError> {
        let Some(execution) = self.open_parent(parent).await? else { return Ok(()) };
        if again && due::was_notified(&execution) {
            self.send_turn(&execution.queue, TurnHint::of(&execution), Millis::ZERO).await;
            return Ok(());
        }
        if due::may_have_missed(&execution, ended_at) && self.is_last_of_its_join(parent).await? {
            return self.wake(execution, Some(parent)).await;
        }
        Ok(())
    }

    /// Notifies the parent of an ended execution whose message has come after its end: the process that ended it may have died
    /// before it notified the parent. If the message was received `again`, a cron that waits for its outcome is notified as
    /// well.
    pub(crate) async fn notify_of_outcome(
        &self,
        execution: &Execution,
        again: bool,
    ) -> Result<(), ServiceError> {
        if let (Some(parent), ExecutionState::Ended(ended)) = (&execution.parent, &execution.state) {
            self.notify_again(parent, ended.ended_at, again).await?;
        }
        if again {
            self.publish(execution.end_of_run().into_iter().collect()).await;
        }
        Ok(())
    }

    /// Notifies an execution that waits for a step or child which has ended, if nothing has notified it: the process that
    /// ended the step or child may have died in between.
    pub(crate) async fn notify_if_missed(&self, execution: Execution) -> Result<(), ServiceError> {
        let now = self.now();
        if !due::may_have_missed(&execution, now) {
            return Ok(());
        }
        let journal = self.journal_of(&execution).await?;
        let ends = self.unrecorded_ends(&execution, &journal, None).await?;
        if !ends.entries.is_empty() || ends.unread > 0 {
            return self.wake(execution, None).await;
        }
        Ok(())
    }

    /// Marks the slot of a join. Only the call that marks the last slot notifies the parent.
    async fn is_last_of_its_join(&self, parent: &Parent) -> Result<bool, ServiceError> {
        let Some(slot) = parent.slot else { return Ok(true) };
        // Each mark moves the expiry. If the join item is still deleted too early, a probe of the execution finds the
        // end.
        let expires_at = ahead_of_journal(self.now(), &self.limits);
        let marked = self.with_retries(|| self.ports.store.join(parent, slot, expires_at)).await?;
        Ok(marked >= slot.of)
    }

    /// The parent, unless it has moved on without this step or child.
    async fn open_parent(&self, parent: &Parent) -> Result<Option<Execution>, ServiceError> {
        let execution = self.load_execution(&parent.execution).await?;
        let is_same = |execution: &Execution| {
            execution.incarnation == parent.incarnation && execution.run == parent.run
        };
        Ok(execution.filter(|execution| is_same(execution) && execution.closed().is_none()))
    }

    /// Wakes an execution. `ended` is the reference to it of the step or child that has ended, if it is known.
    async fn wake(&self, execution: Execution, ended: Option<&Parent>) -> Result<(), ServiceError> {
        // First, because after the wake no other message would show that its hint was lost.
        let execution = self.probe_soon(execution).await?;
        let writes = [Write::Wake { id: execution.id.clone(), incarnation: execution.incarnation }];
        self.with_retries(|| self.ports.store.commit(&writes)).await?;
        if is_asleep(&execution) {
            let step = ended.and_then(|ended| ended.step.as_ref());
            let task = step.map(|step| remote_id(&execution, step));
            tracing::info!(
                { field::EXECUTION_ID } = %execution.id,
                { field::STEP_NAME } = step_of(ended),
                { field::TASK_ID } = task.as_ref().map(TaskId::as_str),
                "resuming"
            );
        }
        self.send_turn(&execution.queue, TurnHint::of(&execution), Millis::ZERO).await;
        Ok(())
    }

    /// Makes the tick probe an execution soon whose next probe would be much later: the hint of the notification that
    /// follows may be lost.
    async fn probe_soon(&self, mut execution: Execution) -> Result<Execution, ServiceError> {
        let mut tries = Tries::default();
        while let Some(to) = due::slot_when_notified(&execution, self.now(), &self.limits) {
            let writes = [Write::Rearm { record: execution.clone().into(), to }];
            match self.with_retries(|| self.ports.store.commit(&writes)).await {
                Ok(()) => break,
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            let Some(current) = self.load_execution(&execution.id).await? else { break };
            execution = current;
            if self.once_more_soon(&mut tries, CONFLICT_WAIT).await.is_err() {
                break;
            }
        }
        Ok(execution)
    }

    /// Sends the hint of a turn, to arrive after this long.
    pub(crate) async fn send_turn(&self, queue: &QueueName, hint: TurnHint, after: Millis) {
        let now = self.now();
        if let Some(message) = turning(hint, now.plus(after), now) {
            self.send(queue, &[message]).await;
        }
    }
}

fn is_asleep(execution: &Execution) -> bool {
    matches!(execution.state, ExecutionState::Waiting(_))
}
