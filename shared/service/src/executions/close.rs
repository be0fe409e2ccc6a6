//! What follows the outcome: open steps and children are ended, and then the record is closed for good.
//!
//! There may be more to end than one call has time for. The progress is recorded page by page, and a message that is
//! sent once time is up continues from there. So a close is a chain of calls, and each close has one chain. It starts
//! with the command that closed the execution, and only its own message continues it. Of two calls at the same page one
//! is refused and sends no message. The tick takes over a chain that has recorded nothing for as long as the backstop.
//! So does whoever needs the end: a parent that ends its child or starts it again, an operator who has the execution run
//! again. Any other call that finds an execution closing leaves it alone.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use tickover_core::decision::{DueReply, Effect};
use tickover_core::error::Reject;
use tickover_core::execution::command::{Command, End, NoteProgress};
use tickover_core::execution::decision::Reply;
use tickover_core::execution::due::{self, is_silent};
use tickover_core::execution::journal::{Entry, Happened, open_steps};
use tickover_core::execution::message::TurnHint;
use tickover_core::execution::{
    Decision, Execution, ExecutionState, ParentClosePolicy, Progress, required_expiry,
};
use tickover_core::id::ExecutionId;
use tickover_core::queue::QueueView;
use tickover_core::time::Timestamp;
use tickover_core::timer::{BEFOREHAND, Timer};

use super::drive::{closes, is_closing};
use super::remote::remote_id;
use crate::drive::Known;
use crate::error::ServiceError;
use crate::service::Service;
use crate::telemetry::field;

/// Steps and children that are ended before the progress is recorded.
const PAGE: usize = 50;
/// How many of these are ended at the same time.
const AT_ONCE: usize = 16;

/// Why an execution is processed: something may be due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DueCause {
    Timer {
        /// The instant of the timer.
        at: Timestamp,
        /// The due slot that the timer belongs to.
        due_at: Timestamp,
        /// Whether its message was received before.
        again: bool,
    },
    /// The tick, with the state of the execution's queue.
    Tick(QueueView),
}

/// How much of a close a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// Whole pages, and at least one of them however little time there is: so each call makes progress.
    Page,
    /// As much as there is time for, and no extension of retention: this is a child, and its parent's page waits for
    /// it.
    InTime,
}

/// How far a call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progressed {
    Done,
    /// Its time was up.
    OutOfTime,
    /// Another call has come at least as far, and continues.
    Overtaken,
}

impl Service {
    /// Processes what has become due for an execution. If the execution is closing, and this call has to continue the
    /// close, the close goes on until `stop_at`. If the execution stays open for long, its segments and payloads are
    /// kept longer.
    pub(crate) async fn process_due_execution(
        &self,
        id: &ExecutionId,
        known: Known<Execution>,
        cause: DueCause,
        stop_at: Timestamp,
    ) -> Result<DueReply, ServiceError> {
        let command = match cause {
            DueCause::Timer { due_at, again, .. } => Command::Timer { due_at, again },
            DueCause::Tick(view) => Command::Due(view),
        };
        if let Known::Record(execution) = &known
            && execution.is_run_of_cron()
            && due::deadline_at(execution).is_some_and(|at| at <= self.now())
        {
            // Nothing would bring this write again, and only after it is the cron told of the end.
            self.foretell(execution).await;
        }
        let decision = Box::pin(self.drive(id, known, &command)).await?;
        let continues = closes(&decision) || continues_close(&cause, &decision, self.now());
        // If there is no execution, it was deleted meanwhile.
        let Ok((mut execution, Reply::Due(reply))) = decision.outcome else { return Ok(DueReply::Nothing) };
        if continues && is_closing(&execution) {
            // The error is returned to the caller: its message must come back, or the close waits for a later tick.
            execution = self.finish(&execution, stop_at, Share::Page).await?;
        }
        if matches!(cause, DueCause::Timer { again: true, .. }) {
            self.notify_of_outcome(&execution, true).await?;
        }
        if execution.closed().is_none()
            && let Some(to) = required_expiry(&execution, self.now(), &self.limits)
        {
            // If this isn't all, the execution is processed again in time.
            self.extend_retention(execution, to, stop_at).await?;
        }
        Ok(reply)
    }

    /// Finishes a closing execution, as far as there is time. To end its open children may close other executions in
    /// turn.
    pub(super) fn finish<'a>(
        &'a self,
        execution: &'a Execution,
        stop_at: Timestamp,
        share: Share,
    ) -> BoxFuture<'a, Result<Execution, ServiceError>> {
        self.end_what_is_left(execution, stop_at, share).boxed()
    }

    async fn end_what_is_left(
        &self,
        execution: &Execution,
        stop_at: Timestamp,
        share: Share,
    ) -> Result<Execution, ServiceError> {
        let (mut execution, mut came) = self.end_open_steps(execution.clone(), stop_at, share).await?;
        if came == Progressed::Done
            && let Some(to) = required_expiry(&execution, self.now(), &self.limits)
        {
            (execution, came) = match share {
                Share::Page => self.extend_retention(execution, to, stop_at).await?,
                Share::InTime => (execution, Progressed::OutOfTime),
            };
        }
        match came {
            Progressed::Done => {}
            Progressed::OutOfTime => {
                self.send_continuation(&execution).await;
                return Ok(execution);
            }
            Progressed::Overtaken => return Ok(execution),
        }
        let Some(end) = End::of(&execution) else { return Ok(execution) };
        let known = Known::Record(Box::new(execution.clone()));
        Ok(self.drive_execution(&execution.id, known, &Command::Finish(end)).await?.outcome?.0)
    }

    /// Sends the message that continues the rest when time is up.
    async fn send_continuation(&self, execution: &Execution) {
        self.publish(self.continuation(execution).into_iter().collect()).await;
    }

    /// The message that continues a close; `None` if the execution isn't closing.
    pub(crate) fn continuation(&self, execution: &Execution) -> Option<Effect> {
        let ExecutionState::Closing(closed) = &execution.state else { return None };
        if !self.has_timers() {
            let (queue, hint) = (execution.queue.clone(), TurnHint::of(execution));
            return Some(Effect::Turn { queue, hint, at: self.now() });
        }
        // The instant of the end distinguishes it from timers that were sent before.
        let at = closed.ended_at;
        Some(Effect::Timer(Timer { record: execution.id.clone().into(), at, due_at: at }))
    }

    /// Ends the open steps and children. Returns the record after that, and how far the call came.
    async fn end_open_steps(
        &self,
        mut execution: Execution,
        stop_at: Timestamp,
        share: Share,
    ) -> Result<(Execution, Progressed), ServiceError> {
        if execution.open_steps == 0 {
            return Ok((execution, Progressed::Done));
        }
        let mut must_do_page = share == Share::Page;
        let journal = self.journal_of(&execution).await?;
        let open = open_steps(&journal);
        let mut ended = progress_of(&execution).steps;
        while let Some(left) = open.get(index(ended)..).filter(|left| !left.is_empty()) {
            if !std::mem::take(&mut must_do_page) && self.now() >= stop_at {
                return Ok((execution, Progressed::OutOfTime));
            }
            let page = &left[..left.len().min(PAGE)];
            let count = self.end_page(&execution, page, stop_at, share).await?;
            if count == left.len() {
                break;
            }
            if count == 0 {
                return Ok((execution, Progressed::OutOfTime));
            }
            ended = ended.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
            let progress = Progress { steps: ended, ..progress_of(&execution) };
            execution = match self.note_progress(&execution, progress).await? {
                Some(noted) => noted,
                None => return Ok((execution, Progressed::Overtaken)),
            };
        }
        Ok((execution, Progressed::Done))
    }

    /// Ends a page of steps and children, or this call's part of it. Returns how many, from its start.
    async fn end_page(
        &self,
        execution: &Execution,
        page: &[&Entry],
        stop_at: Timestamp,
        share: Share,
    ) -> Result<usize, ServiceError> {
        let ends = page.iter().map(async |entry| {
            if share == Share::InTime && self.now() >= stop_at {
                return Ok(false);
            }
            self.end_one(execution, entry, stop_at).await.map(|()| true)
        });
        let ended: Vec<_> = stream::iter(ends.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await;
        let mut count = 0;
        for one in ended {
            match one {
                Ok(true) => {}
                Ok(false) => break,
                // No call could ever end it, and the others must not wait for it.
                Err(error @ ServiceError::Corrupt { .. }) => {
                    tracing::error!({ field::EXECUTION_ID } = %execution.id, %error, "left alone at the close");
                }
                Err(error) => return Err(error),
            }
            count += 1;
        }
        Ok(count)
    }

    async fn end_one(
        &self,
        execution: &Execution,
        entry: &Entry,
        stop_at: Timestamp,
    ) -> Result<(), ServiceError> {
        match &entry.what {
            Happened::Child { execution: child, policy, .. } => {
                self.end_child(execution, child, *policy, stop_at).await
            }
            Happened::Remote { name } => self.cancel_task(remote_id(execution, name)).await,
            Happened::Attempt { .. }
            | Happened::Step { .. }
            | Happened::Reopened { .. }
            | Happened::Captured { .. }
            | Happened::Until { .. }
            | Happened::Fired { .. }
            | Happened::Event { .. }
            | Happened::Waited { .. }
            | Happened::EventsCleared { .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => Ok(()),
        }
    }

    /// Ends a child of this execution. Another execution may have its id by now: that one is left alone.
    pub(super) async fn end_child(
        &self,
        parent: &Execution,
        child: &ExecutionId,
        policy: ParentClosePolicy,
        stop_at: Timestamp,
    ) -> Result<(), ServiceError> {
        if policy == ParentClosePolicy::Abandon {
            return Ok(());
        }
        let found = self.load_execution(child).await?;
        match found.filter(|found| found.parent.as_ref().is_some_and(|of| of.is_or_was(parent))) {
            Some(child) => self.end_as_child(child, policy, stop_at).await,
            None => Ok(()),
        }
    }

    /// Ends a child. Of the child's own steps and children, only as many are ended here as there is time for.
    pub(super) async fn end_as_child(
        &self,
        child: Execution,
        policy: ParentClosePolicy,
        stop_at: Timestamp,
    ) -> Result<(), ServiceError> {
        let command = match policy {
            ParentClosePolicy::Abandon => return Ok(()),
            ParentClosePolicy::RequestCancel => Command::Cancel,
            ParentClosePolicy::Terminate => Command::Terminate,
        };
        let id = child.id.clone();
        let closed = async {
            let known = Known::Record(Box::new(child));
            let decision = Box::pin(self.drive(&id, known, &command)).await?;
            // If it was closing already, the process that closed it may have died.
            let ended = Box::pin(self.finish_close(decision, stop_at, Share::InTime)).await;
            ended.outcome.map(drop).map_err(ServiceError::from)
        };
        match closed.await {
            Ok(()) | Err(ServiceError::Rejected(Reject::NoExecution | Reject::ExecutionClosed { .. })) => {
                Ok(())
            }
            Err(error) => {
                tracing::debug!({ field::EXECUTION_ID } = %id, %error, "child not ended yet");
                Err(error)
            }
        }
    }

    /// Records the progress, and returns the new record. Returns `None` if the execution has moved on, or if another
    /// call has come at least as far.
    pub(super) async fn note_progress(
        &self,
        execution: &Execution,
        progress: Progress,
    ) -> Result<Option<Execution>, ServiceError> {
        let ended_at = execution.closed().map(|closed| closed.ended_at);
        let command = Command::NoteProgress(NoteProgress { run: execution.run, ended_at, progress });
        let known = Known::Record(Box::new(execution.clone()));
        let (noted, reply) = self.drive(&execution.id, known, &command).await?.outcome?;
        Ok((reply == Reply::Changed { changed: true }).then_some(noted))
    }
}

/// Whether this call continues a close: the tick does if it has taken the close over. Timers do if they belong to this
/// end: the timer that ended the execution, and those that continue its close. A later instant of the same execution
/// has nothing to do with it.
fn continues_close(cause: &DueCause, decision: &Decision, now: Timestamp) -> bool {
    match cause {
        // Its call may be at work.
        DueCause::Timer { due_at: BEFOREHAND, .. } => {
            decision.record().is_some_and(|record| is_silent(record, now))
        }
        DueCause::Timer { at, .. } => {
            let closed = decision.record().and_then(Execution::closed);
            closed.is_some_and(|closed| *at <= closed.ended_at)
        }
        DueCause::Tick(_) => decision.reply() == Ok(&Reply::Due(DueReply::Dispatched)),
    }
}

pub(super) fn progress_of(execution: &Execution) -> Progress {
    execution.progress.unwrap_or_default()
}

pub(super) fn index(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
