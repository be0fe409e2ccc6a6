//! Remote steps and children that their execution doesn't know of, because it has ended or is in another run. And those
//! that may not start, because it is paused.
//!
//! A task is started before the journal says so. If the turn that started it is lost in between, nothing that follows
//! from the journal ever ends the task. So each claim of such a task reads its parent first, and so does each heartbeat
//! of a running attempt.

use futures::stream::{self, StreamExt as _};
use tickover_core::decision::Effect;
use tickover_core::execution::journal::{Entry, Happened, open_steps};
use tickover_core::execution::{Execution, Parent, ParentClosePolicy};
use tickover_core::id::{ExecutionId, StepName, TaskId};
use tickover_core::task::{Command, Decision, Reply, State, Task};

use super::drive::CALLER_WAITS;
use super::remote::{AT_ONCE, remote_id};
use crate::drive::{Known, Try};
use crate::error::ServiceError;
use crate::ports::StoreError;
use crate::service::Service;
use crate::telemetry::field;

/// Whether a task that could be started now may start, by the execution that it is a remote step of.
pub(crate) enum MayStart {
    Yes,
    /// The execution is paused.
    Held,
    /// No execution waits for it any more, so it was ended.
    Ended(Box<Decision>),
}

/// What the code of a parent is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParentState {
    Open,
    Paused,
    /// It has ended, is in another run by now, or was deleted.
    Over,
}

impl ParentState {
    fn of(parent: &Parent, found: Option<&Execution>) -> Self {
        match found.filter(|_| parent.is_open_in(found)) {
            Some(execution) if execution.paused => Self::Paused,
            Some(_) => Self::Open,
            None => Self::Over,
        }
    }
}

impl Service {
    /// Whether a task may start. One that no execution waits for is ended.
    pub(crate) async fn may_start(&self, task: &Task) -> Result<MayStart, ServiceError> {
        let now = self.now();
        let may_start = match &task.state {
            State::Pending(pending) => task.is_ready(pending, now),
            State::Running(running) => running.lease_expires_at <= now,
            State::Ended(_) => false,
        };
        let Some(parent) = task.parent.as_ref().filter(|_| may_start) else { return Ok(MayStart::Yes) };
        match self.parent_state(parent).await? {
            ParentState::Paused if task.revived_at.is_none() => return Ok(MayStart::Held),
            // What an operator has started again goes on in a pause: its execution may have its outcome already, and then the
            // end of the pause doesn't look for it.
            ParentState::Open | ParentState::Paused => return Ok(MayStart::Yes),
            ParentState::Over => {}
        }
        tracing::info!({ field::TASK_ID } = %task.id, "not started: its execution is over");
        let (known, command) = (Known::Record(Box::new(task.clone())), Command::Cancel { force: true });
        let mut decision = self.drive_unpublished(&task.id, known, &command).await?;
        // No execution waits for a notification.
        decision.effects.retain(|effect| !matches!(effect, Effect::NotifyParent(_)));
        self.publish(std::mem::take(&mut decision.effects)).await;
        Ok(MayStart::Ended(decision))
    }

    /// Whether an execution, as it was found, goes on as this parent: it neither is over nor paused.
    pub(crate) fn runs_on(parent: &Parent, found: Option<&Execution>) -> bool {
        ParentState::of(parent, found) == ParentState::Open
    }

    /// Unparks a task that was put on hold, if its execution was resumed meanwhile: that call may have come too early to
    /// find the task on hold.
    pub(crate) async fn unpark_if_resumed(&self, task: &Task) -> Result<(), ServiceError> {
        let Some(parent) = &task.parent else { return Ok(()) };
        if self.parent_state(parent).await? == ParentState::Paused {
            return Ok(());
        }
        self.drive(&task.id, Known::Record(Box::new(task.clone())), &Command::Unpark).await.map(drop)
    }

    /// Stops the time of a remote step that waits, instead of ending it by a timeout of its own, if its execution is
    /// paused. Returns what was written, or the conflict.
    pub(crate) async fn hold_if_paused(&self, task: &Task) -> Result<Option<Try<Task, Reply>>, ServiceError> {
        let Some(parent) = task.parent.as_ref().filter(|_| task.revived_at.is_none()) else {
            return Ok(None);
        };
        if self.parent_state(parent).await? != ParentState::Paused {
            return Ok(None);
        }
        let tried = self.attempt(Some(task), &Command::Hold).await?;
        // As after a claim, it may have been resumed meanwhile.
        match &tried {
            Try::Done(held) if self.parent_state(parent).await? != ParentState::Paused => {
                self.attempt(held.record(), &Command::Unpark).await.map(Some)
            }
            Try::Done(_) | Try::Conflict(_) => Ok(Some(tried)),
        }
    }

    /// Stops the time of the remote steps that wait, of an execution that is paused.
    pub(super) async fn hold_steps(&self, execution: &Execution) -> Result<(), ServiceError> {
        match self.command_steps(execution, &Command::Hold).await {
            // A step that can't be read keeps its time. The execution must not stay paused because of it.
            Err(error @ ServiceError::Corrupt { .. }) => {
                tracing::error!({ field::EXECUTION_ID } = %execution.id, %error, "a step keeps its deadline");
                Ok(())
            }
            held => held,
        }
    }

    /// Unparks the remote steps of an execution that was resumed.
    pub(super) async fn unpark_steps(&self, execution: &Execution) -> Result<(), ServiceError> {
        self.command_steps(execution, &Command::Unpark).await
    }

    async fn command_steps(&self, execution: &Execution, command: &Command) -> Result<(), ServiceError> {
        if execution.open_steps == 0 || execution.closed().is_some() {
            return Ok(());
        }
        let journal = self.journal_of(execution).await?;
        let mut tasks: Vec<TaskId> = Vec::new();
        for entry in open_steps(&journal) {
            if let Happened::Remote { name } = &entry.what {
                tasks.push(remote_id(execution, name));
            }
        }
        let done: Vec<_> =
            stream::iter(tasks).map(|id| self.command_step(id, command)).buffered(AT_ONCE).collect().await;
        done.into_iter().collect()
    }

    async fn command_step(&self, id: TaskId, command: &Command) -> Result<(), ServiceError> {
        match Box::pin(self.drive(&id, Known::Unread, command)).await {
            // It may have ended and been deleted.
            Ok(_) | Err(ServiceError::Rejected(_)) => Ok(()),
            Err(error) => Err(error),
        }
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
    /// whether it did. A child of a run that continued as new goes on.
    pub(crate) async fn end_if_parent_ended(&self, child: &Execution) -> Result<bool, ServiceError> {
        let Some(parent) = &child.parent else { return Ok(false) };
        if parent.on_close == ParentClosePolicy::Abandon || !child.is_untouched() {
            return Ok(false);
        }
        if !self.is_orphaned(parent).await? || self.has_continued(parent).await? {
            return Ok(false);
        }
        tracing::info!({ field::EXECUTION_ID } = %child.id, "not started: its parent is over");
        let stop_at = self.now().plus(CALLER_WAITS);
        self.end_as_child(child.clone(), parent.on_close, stop_at).await?;
        Ok(true)
    }

    /// Whether the parent has ended, is in another run by now, or was deleted.
    async fn is_orphaned(&self, parent: &Parent) -> Result<bool, ServiceError> {
        Ok(self.parent_state(parent).await? == ParentState::Over)
    }

    /// The first read costs half and may be out of date: its result may be from before the parent was started, moved to
    /// this run, was reopened or resumed. So this read may only show that the parent is open.
    async fn parent_state(&self, parent: &Parent) -> Result<ParentState, ServiceError> {
        let peeked = self.with_retries(|| self.ports.store.peek_execution(&parent.execution)).await;
        let found = match peeked {
            Ok(found) if ParentState::of(parent, found.as_ref()) == ParentState::Open => {
                return Ok(ParentState::Open);
            }
            Ok(_) => self.with_retries(|| self.ports.store.execution(&parent.execution)).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(found) => Ok(ParentState::of(parent, found.as_ref())),
            // The parent exists, though it can't be read.
            Err(StoreError::Corrupt { .. }) => Ok(ParentState::Open),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the remote steps that a run left open which another one follows. If that fails, a claim or heartbeat of such a
    /// task ends it. Children go on.
    pub(super) async fn end_left_open(&self, execution: &Execution, last: &[Entry]) {
        if execution.open_steps == 0 && open_steps(last).is_empty() {
            return;
        }
        let ended = async {
            let mut journal = self.journal_of(execution).await?;
            journal.extend_from_slice(last);
            let names = open_steps(&journal).into_iter().filter_map(|entry| match &entry.what {
                Happened::Remote { name } => Some(name.clone()),
                _ => None,
            });
            self.cancel_remote(execution, &names.collect::<Vec<_>>()).await
        };
        if let Err(error) = ended.await {
            tracing::debug!({ field::EXECUTION_ID } = %execution.id, %error, "what its run left open wasn't ended");
        }
    }

    /// Ends the steps and children that a lost turn had started and not recorded, if the run is over. If the run
    /// continues, its next turn starts them again, or has them in its journal. Children stay if another
    /// run has followed: the turn that ended this one had them in its journal.
    pub async fn end_started(&self, execution: &Execution, begun: &[Entry]) -> Result<(), ServiceError> {
        let parent = Parent::of(execution);
        let mut remote: Vec<StepName> = Vec::new();
        let mut children = Vec::new();
        for entry in begun {
            if let Happened::Remote { name } = &entry.what {
                remote.push(name.clone());
            }
            if let Happened::Child { execution: child, .. } = &entry.what {
                children.push(child.clone());
            }
        }
        if (remote.is_empty() && children.is_empty()) || !self.is_orphaned(&parent).await? {
            return Ok(());
        }
        self.cancel_remote(execution, &remote).await?;
        if children.is_empty() || self.has_continued(&parent).await? {
            return Ok(());
        }
        self.end_unrecorded(execution, children).await
    }

    /// Ends children that a turn has started and can't record, as far as a caller has time. What it does to each is what the
    /// child's own record says. The rest ends when its first turn is to begin.
    pub(super) async fn end_unrecorded(
        &self,
        parent: &Execution,
        children: Vec<ExecutionId>,
    ) -> Result<(), ServiceError> {
        let stop_at = self.now().plus(CALLER_WAITS);
        for child in children {
            if self.now() >= stop_at {
                break;
            }
            let Some(child) = self.load_execution(&child).await? else { continue };
            let policy = child.parent.as_ref().filter(|of| of.is_or_was(parent)).map(|of| of.on_close);
            if let Some(policy) = policy {
                self.end_as_child(child, policy, stop_at).await?;
            }
        }
        Ok(())
    }
}
