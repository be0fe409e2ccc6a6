//! What follows the outcome: steps and children that are still open are ended, and the record is closed for good.
//!
//! There may be more to end than one call has time for. How far it has come is noted page by page, and whoever comes
//! next goes on from there: mostly the message that is sent once time is up, else the tick.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use tickover_core::decision::{DueReply, Effect};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::command::{End, ExecutionCommand, GoneThrough};
use tickover_core::execution::decision::ExecutionReply;
use tickover_core::execution::journal::{Entry, Happened, open_steps};
use tickover_core::execution::message::TurnHint;
use tickover_core::execution::{Execution, ExecutionState, ParentClosePolicy, Progress, missing_time};
use tickover_core::id::ExecutionId;
use tickover_core::time::Timestamp;
use tickover_core::timer::Timer;

use super::drive::{DrivenExecution, KnownExecution};
use super::remote::remote_id;
use crate::error::ServiceError;
use crate::service::Service;
use crate::telemetry::field;

/// Steps and children ended before that is noted.
const PAGE: usize = 50;
/// Of these, at once.
const AT_ONCE: usize = 16;

impl Service {
    /// A look at an execution for what has become due. One that is closing is seen to its end, as far as there is
    /// time before `stop_at`, and one that stays open for long has its parts kept on.
    pub(crate) async fn look_at_execution(
        &self,
        id: &ExecutionId,
        known: KnownExecution,
        command: &ExecutionCommand,
        stop_at: Timestamp,
    ) -> Result<DueReply, ServiceError> {
        let mut driven = Box::pin(self.drive_alone(id, known, command)).await?;
        if let Some(closing) = driven.execution.take_if(|it| matches!(it.state, ExecutionState::Closing(_))) {
            // An error is the caller's to see: its message has to come back, or nobody goes on before a later tick.
            driven.execution = Some(self.finish(&closing, stop_at).await?);
        }
        if let Some(execution) = driven.execution.filter(|execution| execution.closed().is_none())
            && let Some(to) = missing_time(&execution, self.now(), &self.limits)
        {
            // It is looked at again in time if this isn't all.
            self.keep_parts(execution, to, stop_at).await?;
        }
        match driven.outcome {
            Ok(ExecutionReply::Due(reply)) => Ok(reply),
            // Gone meanwhile, or the index was behind.
            Ok(_) | Err(_) => Ok(DueReply::Nothing),
        }
    }

    /// Sees a closing execution to its end, as far as there is time. What it leaves open may close other executions
    /// in turn.
    pub(crate) fn finish<'a>(
        &'a self,
        execution: &'a Execution,
        stop_at: Timestamp,
    ) -> BoxFuture<'a, Result<Execution, ServiceError>> {
        self.end_what_is_left(execution, stop_at).boxed()
    }

    async fn end_what_is_left(
        &self,
        execution: &Execution,
        stop_at: Timestamp,
    ) -> Result<Execution, ServiceError> {
        let (mut execution, mut all) = self.end_open_steps(execution.clone(), stop_at).await?;
        if all && let Some(to) = missing_time(&execution, self.now(), &self.limits) {
            (execution, all) = self.keep_parts(execution, to, stop_at).await?;
        }
        if !all {
            self.go_on_later(&execution).await;
            return Ok(execution);
        }
        let Some(end) = End::of(&execution) else { return Ok(execution) };
        let known = KnownExecution::Record(Box::new(execution.clone()));
        let driven = self.drive_execution(&execution.id, known, &ExecutionCommand::Finish(end)).await?;
        Ok(driven.answer()?.0)
    }

    /// Time is up: the rest is done by whoever gets the message that is sent here.
    async fn go_on_later(&self, execution: &Execution) {
        if !self.has_timers() {
            return self.send_turn(&execution.queue, TurnHint::of(execution), Millis::ZERO).await;
        }
        let at = self.now();
        let due_at = execution.due.map_or(at, |due| due.at);
        self.publish(vec![Effect::Timer(Timer { record: execution.id.clone().into(), at, due_at })]).await;
    }

    /// Ends the steps and children that are still open: the record as it stands after that, and whether it was all.
    async fn end_open_steps(
        &self,
        mut execution: Execution,
        stop_at: Timestamp,
    ) -> Result<(Execution, bool), ServiceError> {
        if execution.open_steps == 0 {
            return Ok((execution, true));
        }
        let journal = self.journal_of(&execution).await?;
        let open = open_steps(&journal);
        let mut ended = progress_of(&execution).steps;
        while let Some(left) = open.get(index(ended)..).filter(|left| !left.is_empty()) {
            let page = &left[..left.len().min(PAGE)];
            self.end_page(&execution, page, stop_at).await?;
            ended = ended.saturating_add(u32::try_from(page.len()).unwrap_or(u32::MAX));
            if page.len() == left.len() {
                break;
            }
            let progress = Progress { steps: ended, ..progress_of(&execution) };
            execution = match self.note_progress(&execution, progress).await? {
                Some(noted) => noted,
                // Somebody else has seen to it.
                None => return Ok((execution, false)),
            };
            if self.now() >= stop_at {
                return Ok((execution, false));
            }
        }
        Ok((execution, true))
    }

    async fn end_page(
        &self,
        execution: &Execution,
        page: &[&Entry],
        stop_at: Timestamp,
    ) -> Result<(), ServiceError> {
        let ends = page.iter().map(|entry| self.end_one(execution, entry, stop_at));
        let ended: Vec<_> = stream::iter(ends.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await;
        for one in ended {
            match one {
                Ok(()) => {}
                // Nobody could ever end it, and the others must not wait for that.
                Err(error @ ServiceError::Corrupt { .. }) => {
                    tracing::error!({ field::EXECUTION_ID } = %execution.id, %error, "left alone at the close");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn end_one(
        &self,
        execution: &Execution,
        entry: &Entry,
        stop_at: Timestamp,
    ) -> Result<(), ServiceError> {
        match &entry.what {
            Happened::Child { execution: child, policy, .. } => self.end_child(child, *policy, stop_at).await,
            Happened::Remote { name } => self.cancel_task(remote_id(execution, name)).await,
            Happened::Attempt { .. }
            | Happened::Step { .. }
            | Happened::Reopened { .. }
            | Happened::Captured { .. }
            | Happened::Until { .. }
            | Happened::Event { .. }
            | Happened::Waited { .. }
            | Happened::Drained { .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => Ok(()),
        }
    }

    pub(super) async fn end_child(
        &self,
        child: &ExecutionId,
        policy: ParentClosePolicy,
        stop_at: Timestamp,
    ) -> Result<(), ServiceError> {
        let command = match policy {
            ParentClosePolicy::Abandon => return Ok(()),
            ParentClosePolicy::RequestCancel => ExecutionCommand::Cancel,
            ParentClosePolicy::Terminate => ExecutionCommand::Terminate,
        };
        let driven = self.drive_execution_until(child, KnownExecution::Unread, &command, stop_at).await;
        match driven.and_then(DrivenExecution::answer) {
            Ok(_) | Err(ServiceError::Rejected(Reject::NoExecution | Reject::ExecutionClosed { .. })) => {
                Ok(())
            }
            Err(error) => {
                tracing::debug!({ field::EXECUTION_ID } = %child, %error, "child not ended yet");
                Err(error)
            }
        }
    }

    /// Notes how far somebody has come: the record as it stands after that; nothing if it has moved on.
    pub(super) async fn note_progress(
        &self,
        execution: &Execution,
        progress: Progress,
    ) -> Result<Option<Execution>, ServiceError> {
        let ended_at = execution.closed().map(|closed| closed.ended_at);
        let command = ExecutionCommand::GoneThrough(GoneThrough { run: execution.run, ended_at, progress });
        let known = KnownExecution::Record(Box::new(execution.clone()));
        // What is closing is in the hands of this very caller.
        let (noted, reply) = self.drive_alone(&execution.id, known, &command).await?.answer()?;
        Ok((reply == ExecutionReply::Changed { changed: true }).then_some(noted))
    }
}

/// How far somebody has come.
pub(super) fn progress_of(execution: &Execution) -> Progress {
    execution.progress.unwrap_or_default()
}

pub(super) fn index(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
