//! Remote steps and children that their execution doesn't know of, because it has ended or is in another run.
//!
//! A task is started before the journal says so. If the turn that started it is lost in between, nothing that follows
//! from the journal ever ends the task. So each claim of such a task reads its parent first, and so does each heartbeat
//! of a running attempt.

use tickover_core::decision::Effect;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{Execution, Parent, ParentClosePolicy};
use tickover_core::id::StepName;
use tickover_core::task::{Command, Decision, State, Task};

use super::drive::CALLER_WAITS;
use crate::drive::Known;
use crate::error::ServiceError;
use crate::ports::StoreError;
use crate::service::Service;
use crate::telemetry::field;

impl Service {
    /// Ends a task that could be started now, if no execution waits for it any more. Returns `None` if it may start.
    pub(crate) async fn end_if_orphaned(&self, task: &Task) -> Result<Option<Box<Decision>>, ServiceError> {
        let now = self.now();
        let may_start = match &task.state {
            State::Pending(pending) => pending.available_at <= now,
            State::Running(running) => running.lease_expires_at <= now,
            State::Ended(_) => false,
        };
        let Some(parent) = task.parent.as_ref().filter(|_| may_start) else { return Ok(None) };
        if !self.is_orphaned(parent).await? {
            return Ok(None);
        }
        tracing::info!({ field::TASK_ID } = %task.id, "not started: its execution is over");
        let (known, command) = (Known::Record(Box::new(task.clone())), Command::Cancel { force: true });
        let mut decision = self.drive_unpublished(&task.id, known, &command).await?;
        // No execution waits for a notification.
        decision.effects.retain(|effect| !matches!(effect, Effect::NotifyParent(_)));
        self.publish(std::mem::take(&mut decision.effects)).await;
        Ok(Some(decision))
    }

    /// Asks an attempt of a remote step to stop, if its execution doesn't wait for it any more. Returns whether it did.
    /// If the execution can't be read now, the next heartbeat tries again.
    pub(crate) async fn ask_orphan_to_stop(&self, task: &Task) -> bool {
        let Some(parent) = &task.parent else { return false };
        // Boxed, because the future of each heartbeat would contain all of this, and few tasks have a parent.
        let asked: Result<bool, ServiceError> = Box::pin(async {
            if !self.is_orphaned(parent).await? {
                return Ok(false);
            }
            let known = Known::Record(Box::new(task.clone()));
            self.drive(&task.id, known, &Command::Cancel { force: false }).await.map(|_| true)
        })
        .await;
        asked.unwrap_or_else(|error| {
            tracing::debug!({ field::TASK_ID } = %task.id, %error, "its execution can't be read");
            false
        })
    }

    /// Ends a child that hasn't started to run, if it must end with its parent and the parent has ended. Returns
    /// whether it did.
    pub(crate) async fn end_if_parent_ended(&self, child: &Execution) -> Result<bool, ServiceError> {
        let Some(parent) = &child.parent else { return Ok(false) };
        if parent.on_close == ParentClosePolicy::Abandon || !child.is_untouched() {
            return Ok(false);
        }
        if !self.is_orphaned(parent).await? {
            return Ok(false);
        }
        tracing::info!({ field::EXECUTION_ID } = %child.id, "not started: its parent is over");
        let stop_at = self.now().plus(CALLER_WAITS);
        self.end_child(&child.id, parent.on_close, stop_at).await?;
        Ok(true)
    }

    /// Whether the parent has ended, is in another run by now, or was deleted.
    ///
    /// The first read costs half and may be out of date: its result may be from before the parent was started, moved to
    /// this run or was reopened. So this read may only show that the parent is open.
    async fn is_orphaned(&self, parent: &Parent) -> Result<bool, ServiceError> {
        let peeked = self.with_retries(|| self.ports.store.peek_execution(&parent.execution)).await;
        let found = match peeked {
            Ok(found) if parent.is_open_in(found.as_ref()) => return Ok(false),
            Ok(_) => self.with_retries(|| self.ports.store.execution(&parent.execution)).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(found) => Ok(!parent.is_open_in(found.as_ref())),
            // The parent exists, though it can't be read.
            Err(StoreError::Corrupt { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the steps and children that a lost turn had started and not recorded, if the run is over. If the run
    /// continues, its next turn starts them again, or has them in its journal.
    pub async fn end_started(&self, execution: &Execution, begun: &[Entry]) -> Result<(), ServiceError> {
        let parent = Parent::of(execution);
        let mut remote: Vec<StepName> = Vec::new();
        let mut children = Vec::new();
        for entry in begun {
            if let Happened::Remote { name } = &entry.what {
                remote.push(name.clone());
            }
            if let Happened::Child { execution: child, policy, .. } = &entry.what
                && *policy != ParentClosePolicy::Abandon
            {
                children.push((child, *policy));
            }
        }
        if (remote.is_empty() && children.is_empty()) || !self.is_orphaned(&parent).await? {
            return Ok(());
        }
        self.cancel_remote(execution, &remote).await?;
        let stop_at = self.now().plus(CALLER_WAITS);
        for (child, policy) in children {
            let found = self.load_execution(child).await?;
            // Another execution may have the id.
            if found.and_then(|found| found.parent).is_some_and(|of| of.is(execution)) {
                self.end_child(child, policy, stop_at).await?;
            }
        }
        Ok(())
    }
}
