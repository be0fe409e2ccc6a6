//! The ends of a turn: suspended, closed, released, parked, lost.

use std::collections::BTreeSet;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::select;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::command::{Cleanup, Close, Ending, Record, ReleaseReason, Suspend};
use tickover_core::execution::{DeadlineKind, Execution, ExecutionOutcome, Stuck};
use tickover_core::id::LeaseId;
use tickover_core::payload::Json;
use tickover_core::task;
use tickover_core::time::Timestamp;
use tickover_service::ServiceError;
use tickover_service::executions::Suspended;
use tickover_service::telemetry::field;
use tickover_service::warn_unless_logged;

use super::TurnEnd;
use super::drive::{Driver, Halt};
use super::need::Need;
use super::published::kept;
use super::state::UndoStage;
use crate::backend::Backend;
use crate::error::{Cause, Error, Failure};

/// The delay before the first retry of a turn that failed. It doubles with each retry.
const RETRY_MIN: Millis = Millis::from_secs(1);
/// The upper bound of that delay.
const RETRY_MAX: Millis = Millis::from_secs(600);

/// A turn of a workflow that this worker doesn't know.
pub(super) struct Unknown {
    pub(super) record: Execution,
    pub(super) lease: LeaseId,
}

impl Unknown {
    /// Releases it for a worker that knows the workflow. The delay doubles each time.
    pub(super) async fn release(self, service: &Backend) -> TurnEnd {
        let tries = match &self.record.stuck {
            Some(Stuck::UnknownWorkflow { tries }) => tries.saturating_add(1),
            Some(Stuck::Unreadable(_) | Stuck::Code { .. }) | None => 1,
        };
        tracing::warn!(
            { field::EXECUTION_ID } = %self.record.id, workflow = %self.record.workflow, tries,
            "this worker doesn't know the workflow"
        );
        let undone = ReleaseReason::Stuck(Stuck::UnknownWorkflow { tries });
        // None of its code has run.
        let cleanup = Some(Cleanup::of(&self.record));
        match service.release_turn(&self.record, self.lease, later(tries), undone, cleanup).await {
            Ok(()) => TurnEnd::Released,
            Err(error) => {
                warn_unless_logged!(error; { field::EXECUTION_ID } = %self.record.id, %error, "can't release the turn");
                TurnEnd::Lost
            }
        }
    }
}

/// The delay before the next retry, after this many.
fn later(tries: u32) -> Millis {
    RETRY_MIN.saturating_mul(1 << tries.min(10)).min(RETRY_MAX)
}

/// The cause that `on_failure` gets.
pub(crate) fn cause_of(outcome: &ExecutionOutcome) -> Cause {
    match outcome {
        ExecutionOutcome::Failed { error, step: Some(name), retries_exhausted } => Cause::Step {
            name: name.clone(),
            error: failure_of(error),
            retries_exhausted: *retries_exhausted,
        },
        ExecutionOutcome::Failed { error, step: None, .. } => Cause::Body(failure_of(error)),
        ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution } => Cause::ExecutionDeadline,
        ExecutionOutcome::TimedOut { kind: DeadlineKind::Run } => Cause::RunDeadline,
        ExecutionOutcome::Completed { .. } | ExecutionOutcome::Cancelled { .. } => {
            Cause::Body(Failure::new("cancelled", ""))
        }
    }
}

fn failure_of(error: &task::Failure) -> Failure {
    Failure::new(error.code.as_str(), error.message.as_str())
}

fn failed(error: &Error) -> ExecutionOutcome {
    let cause = error.cause();
    let (step, retries_exhausted) = match cause {
        Cause::Step { name, retries_exhausted, .. } => (Some(name), retries_exhausted),
        Cause::Body(_) | Cause::ExecutionDeadline | Cause::RunDeadline => (None, false),
    };
    let error = task::Failure::from(error.failure().clone());
    ExecutionOutcome::Failed { error, step, retries_exhausted }
}

impl Driver {
    /// Suspends the turn. Returns `None` if something has happened meanwhile, and the turn continues.
    pub(super) async fn suspend(&mut self, now: Timestamp) -> Result<Option<TurnEnd>, Halt> {
        self.note_retries();
        let until = self.until(now);
        let (entries, awaits_others, events) = {
            let mut state = self.shared.lock();
            let awaits = state.open().any(|need| matches!(need, Need::Outcome { .. }));
            let events: BTreeSet<_> = state.open().filter_map(Need::event_without_end).cloned().collect();
            (state.replay.take_fresh(), awaits, events)
        };
        let values = kept(&self.service, self.to_publish()).await?;
        let suspend = Suspend {
            lease: self.lease,
            entries,
            seen_version: self.record.version,
            seen_wakes: self.seen_wakes,
            until,
            awaits_others,
            events: events.into_iter().collect(),
            cleanup: self.cleanup(),
            values,
        };
        match self.service.suspend_turn(&self.record, suspend).await? {
            Suspended::Done(record) => {
                self.suspended(*record);
                Ok(Some(TurnEnd::Suspended))
            }
            Suspended::Continue(record, journal) => {
                let mut state = self.shared.lock();
                state.replay.rebuild(&journal);
                state.facts.update(&record);
                state.published.written(&record);
                drop(state);
                self.record = *record;
                Ok(None)
            }
        }
    }

    /// Whether the turn's time is over: the invocation is about to end, or the worker has asked for the turn's end.
    pub(super) fn has_to_break_off(&self, now: Timestamp) -> bool {
        self.settings.limit_at.is_some_and(|at| at <= now) || self.is_asked_to_end()
    }

    fn is_asked_to_end(&self) -> bool {
        self.settings.asked_to_end.as_ref().is_some_and(|asked| *asked.borrow())
    }

    /// Waits for this instant, or until the worker asks for the turn's end.
    pub(super) fn alarm(&self, at: Option<Timestamp>) -> impl Future<Output = ()> + Send + use<> {
        let (clock, asked) = (Arc::clone(self.service.clock()), self.settings.asked_to_end.clone());
        async move {
            let sleep = async {
                match at {
                    Some(at) => clock.sleep_until(at).await,
                    None => pending().await,
                }
            };
            let asked = async {
                let is_asked = match asked {
                    Some(mut asked) => asked.wait_for(|asked| *asked).await.is_ok(),
                    None => false,
                };
                // Nobody asks any more.
                if !is_asked {
                    pending::<()>().await;
                }
            };
            select(pin!(sleep), pin!(asked)).await;
        }
    }

    /// The turn's time is over: writes what has ended, and releases the turn, so that another invocation or worker
    /// continues at once.
    pub(super) async fn break_off(&mut self) -> Result<TurnEnd, Halt> {
        self.stop_steps();
        self.finish_jobs().await?;
        if self.is_asked_to_end() {
            self.write_fresh().await?;
            // The execution isn't the cause.
            return Ok(self.release(Millis::ZERO, ReleaseReason::ByWorker).await);
        }
        self.is_short_of_time = true;
        // An attempt without a journal entry would be forgotten.
        self.note_retries();
        let now = self.service.now();
        let has_fresh = self.shared.lock().replay.has_fresh() || self.to_publish().is_some();
        if has_fresh && let Some(end) = self.suspend(now).await? {
            return Ok(end);
        }
        Ok(self.release(Millis::ZERO, ReleaseReason::ByCode).await)
    }

    /// Ends the run with the output of the code.
    pub(super) async fn close_with(&mut self, answer: Result<Option<Json>, Error>) -> Result<TurnEnd, Halt> {
        if self.shared.lock().undo == UndoStage::Cancellation {
            return self.close(Ending::Outcome(ExecutionOutcome::Cancelled { terminated: false })).await;
        }
        let failing = self.record.failing.as_ref().map(|failing| failing.outcome.clone());
        let has_failed = answer.is_err() && failing.is_none();
        let outcome = match (answer, failing) {
            (Ok(Some(output)), _) => self.completed(output).await?,
            (Ok(None), Some(outcome)) => outcome,
            (Ok(None), None) => ExecutionOutcome::Completed { output: None },
            (Err(error), None) => failed(&error),
            (Err(error), Some(outcome)) => {
                tracing::warn!(
                    { field::EXECUTION_ID } = %self.record.id, { field::ERROR_CODE } = error.code(),
                    "what was to be done about the failure failed itself"
                );
                outcome
            }
        };
        if has_failed {
            return self.close_failed(outcome).await;
        }
        self.close(Ending::Outcome(outcome)).await
    }

    /// Ends a run that failed or whose deadline passed. The workflow's policy decides whether it is run again.
    pub(super) async fn close_failed(&mut self, outcome: ExecutionOutcome) -> Result<TurnEnd, Halt> {
        let Some(retry) = self.workflow.options.retries() else {
            return self.close(Ending::Outcome(outcome)).await;
        };
        self.stop_steps();
        self.finish_jobs().await?;
        let carried = self.carried().await?;
        self.close(Ending::FailedRun { outcome, retry, carried }).await
    }

    async fn completed(&mut self, output: Json) -> Result<ExecutionOutcome, Halt> {
        if output.as_str() == "null" {
            return Ok(ExecutionOutcome::Completed { output: None });
        }
        match self.service.store_payload(output).await {
            Ok(output) => Ok(ExecutionOutcome::Completed { output: Some(output) }),
            Err(ServiceError::Rejected(reject)) => {
                Ok(failed(&Error::new(reject.code(), format!("the output: {reject}"))))
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn close(&mut self, ending: Ending) -> Result<TurnEnd, Halt> {
        self.stop_steps();
        self.finish_jobs().await?;
        let entries = self.shared.lock().replay.take_fresh();
        let values = kept(&self.service, self.to_publish()).await?;
        let close = Close { lease: self.lease, entries, ending, cleanup: self.cleanup(), values };
        self.service.close_turn(&self.record, close).await?;
        Ok(TurnEnd::Closed)
    }

    /// The journal doesn't fit the code: the execution waits for an operator, and all entries are kept.
    pub(super) async fn park(&mut self, failure: task::Failure) -> Result<TurnEnd, Halt> {
        // The failure's message may quote the result, so it isn't logged.
        tracing::error!(
            { field::EXECUTION_ID } = %self.record.id, { field::ERROR_CODE } = failure.code,
            "what is remembered doesn't fit the code; the execution waits for an operator"
        );
        self.write_fresh().await?;
        Ok(self.release(Millis::ZERO, ReleaseReason::Stuck(Stuck::Unreadable(failure))).await)
    }

    /// Writes the new journal entries before the turn is released.
    async fn write_fresh(&mut self) -> Result<(), Halt> {
        self.note_retries();
        let entries = self.shared.lock().replay.take_fresh();
        let values = kept(&self.service, self.to_publish()).await?;
        if !entries.is_empty() || values.is_some() {
            let (lease, cleanup) = (self.lease, self.cleanup());
            let record = Record { lease, entries, cleanup, timed_attempts: None, values };
            self.record = self.service.record_progress(&self.record, record).await?;
            self.shared.lock().published.written(&self.record);
        }
        Ok(())
    }

    async fn release(&mut self, after: Millis, undone: ReleaseReason) -> TurnEnd {
        let cleanup = Some(self.cleanup());
        match self.service.release_turn(&self.record, self.lease, after, undone, cleanup).await {
            Ok(()) => TurnEnd::Released,
            Err(error) => {
                warn_unless_logged!(error; { field::EXECUTION_ID } = %self.record.id, %error, "can't release the turn");
                TurnEnd::Lost
            }
        }
    }

    /// Ends a turn that can't continue on this worker.
    pub(super) async fn halt(&mut self, halt: Halt) -> TurnEnd {
        let id = self.record.id.clone();
        self.stop_steps();
        match halt {
            Halt::Lost => {
                tracing::info!({ field::EXECUTION_ID } = %id, "another worker has the execution");
                TurnEnd::Lost
            }
            Halt::Broken(ServiceError::Contended) | Halt::Overtaken => {
                self.stop_overtaken(ReleaseReason::ByWorker).await
            }
            Halt::Broken(error) => {
                warn_unless_logged!(error; { field::EXECUTION_ID } = %id, %error, "the turn stopped because of an error");
                self.stop_overtaken(error.undone()).await
            }
            Halt::HalfStarted(error) => {
                warn_unless_logged!(error; { field::EXECUTION_ID } = %id, %error, "not all steps could be started");
                self.stop(RETRY_MIN, error.undone()).await
            }
            Halt::Limit(reject) => self.end_by_limit(&reject).await,
            // The message may contain parts of a payload, so it isn't logged.
            Halt::Panicked(text) => {
                tracing::error!({ field::EXECUTION_ID } = %id, "the workflow's code panicked");
                let failure = task::Failure::new("panic", text);
                if !self.shared.lock().replay.is_untouched() {
                    // Other code has come further than this.
                    return self.stop_stuck(failure).await;
                }
                let after = later(self.record.idle_turns);
                self.stop(after, ReleaseReason::Panicked(failure)).await
            }
            Halt::Stuck(failure) => {
                tracing::error!({ field::EXECUTION_ID } = %id, "{}", failure.message);
                self.stop_stuck(failure).await
            }
        }
    }

    /// Releases the turn. Repaired code, or an operator, continues the execution; it never counts as poisoned.
    async fn stop_stuck(&mut self, failure: task::Failure) -> TurnEnd {
        let tries = match &self.record.stuck {
            Some(Stuck::Code { tries, .. }) => tries.saturating_add(1),
            Some(Stuck::UnknownWorkflow { .. } | Stuck::Unreadable(_)) | None => 1,
        };
        self.stop(later(tries), ReleaseReason::Stuck(Stuck::Code { failure, tries })).await
    }

    /// Writes the new journal entries and releases a turn that can't continue now.
    async fn stop(&mut self, after: Millis, undone: ReleaseReason) -> TurnEnd {
        let written = async {
            self.finish_jobs().await?;
            if self.busy.writing { Ok(()) } else { self.write_fresh().await }
        };
        if let Err(Halt::Lost) = written.await {
            return TurnEnd::Lost;
        }
        self.release(after, undone).await
    }

    /// Ends a turn beside which others have written, or that doesn't know what it has written. What holds of its entries is
    /// written, and the next turn continues with that: what has ended isn't run again.
    async fn stop_overtaken(&mut self, undone: ReleaseReason) -> TurnEnd {
        while let Some(done) = self.jobs.next().await {
            // The turn ends anyway.
            let _: Result<(), Halt> = self.apply(done);
        }
        let written = async {
            self.look_again().await?;
            // What the code has published since may not be so either: the next turn publishes what is.
            self.is_replayed = false;
            self.write_fresh().await
        };
        if let Err(Halt::Lost) = written.await {
            return TurnEnd::Lost;
        }
        self.release(RETRY_MIN, undone).await
    }

    /// Fails a run that exceeds a limit. Its new entries are written.
    async fn end_by_limit(&mut self, reject: &Reject) -> TurnEnd {
        // None is dropped between a write and its messages.
        while let Some(done) = self.jobs.next().await {
            // The run ends anyway.
            let _: Result<(), Halt> = self.apply(done);
        }
        self.shared.lock().replay.put_back();
        let error = Error::new(reject.code(), reject.to_string());
        match Box::pin(self.close_with(Err(error))).await {
            Ok(end) => end,
            Err(Halt::Lost) => TurnEnd::Lost,
            Err(Halt::Broken(error)) => self.release(RETRY_MIN, error.undone()).await,
            Err(_) => self.release(RETRY_MIN, ReleaseReason::ByCode).await,
        }
    }

    /// The failure of code that awaits a future that isn't of its context.
    pub(super) fn foreign_wait(&self) -> task::Failure {
        let place = match self.shared.lock().last_delivered() {
            Some(name) => format!("after `{name}`"),
            None => "before anything else".to_owned(),
        };
        let text = format!(
            "the code of workflow `{}` awaits something that isn't its context's, {place}: nothing durable wakes it, \
             and it takes longer than {}; put it into a step",
            self.record.workflow, self.settings.foreign_wait_max
        );
        task::Failure::new("foreign_wait", text)
    }
}
