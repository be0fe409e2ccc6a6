//! Remote steps and children: started in one call, read in one call, and ended when the code no longer waits for them.

use futures::StreamExt as _;
use tickover_core::execution::ParentClosePolicy;
use tickover_core::execution::journal::{Entry, Happened, StepOutcome};
use tickover_core::id::{ExecutionId, StepName};
use tickover_core::payload::Payload;
use tickover_core::task;
use tickover_core::time::Timestamp;
use tickover_service::ServiceError;
use tickover_service::executions::{ChildToStart, EndedStep, NamedEnd, RemoteStep, StartedWork, ToStart};
use tickover_service::telemetry::field;

use super::drive::{Done, Driver, Halt};
use super::inline::failure_payload;
use super::need::Need;
use crate::backend::Backend;
use crate::error::Error;

/// The remote steps and children that were started.
pub(super) struct Begun {
    work: StartedWork,
    /// The children that were asked for.
    children: Vec<Asked>,
    /// When their start began. None of them can have ended before.
    began_at: Timestamp,
}

/// The outcomes of remote steps and other executions that have ended.
pub(super) struct ReadOutcomes {
    /// In the order of their ends.
    outcomes: Vec<NamedEnd>,
    /// The record's number of wakes before the read.
    wakes: u64,
}

/// A step that an operator has reopened.
struct Again {
    name: StepName,
    /// The input that it was given in place of the code's.
    input: Option<Payload>,
}

/// A child that was asked for.
struct Asked {
    name: StepName,
    execution: ExecutionId,
    policy: ParentClosePolicy,
    /// The name of the start, if the code waits for that.
    awaited_as: Option<StepName>,
}

impl Driver {
    /// Starts all remote steps and children that the code needs, in one job.
    pub(super) fn start_remote(&mut self) {
        let (mut steps, mut children, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        {
            let mut state = self.shared.lock();
            for waiting in state.needs.values_mut() {
                let outcome = Need::Outcome { name: waiting.need.name().clone() };
                match std::mem::replace(&mut waiting.need, outcome) {
                    Need::Remote(step) => steps.push(*step),
                    Need::Child { name, start, policy, started } => {
                        let Some(execution) = start.id.clone() else { continue };
                        asked.push(Asked { name: name.clone(), execution, policy, awaited_as: started });
                        children.push(ChildToStart { name, start });
                    }
                    other => waiting.need = other,
                }
            }
            if let Err(reject) = state.replay.check_open(steps.len() + children.len()) {
                state.fail(Error::new(reject.code(), reject.to_string()));
                return;
            }
        }
        if steps.is_empty() && children.is_empty() {
            return;
        }
        self.has_worked = true;
        self.busy.starting = true;
        let (service, record) = (self.service.clone(), self.record.clone());
        let again: Vec<Again> = {
            let replay = &self.shared.lock().replay;
            let names = steps.iter().map(|step| &step.name).filter(|name| replay.was_reopened(name));
            names.map(|name| Again { name: name.clone(), input: replay.input_of(name).cloned() }).collect()
        };
        let began_at = self.service.now();
        self.jobs.push(Box::pin(async move {
            let work = match given_inputs(&service, again, steps).await {
                Ok((steps, again, with_input)) => {
                    service.start_work(&record, ToStart { steps, again, with_input, children }).await
                }
                Err(error) => StartedWork { trouble: Some(error), ..StartedWork::default() },
            };
            Done::Started(Begun { work, children: asked, began_at })
        }));
    }

    /// Notes what was started. An error says that not everything was.
    pub(super) fn work_started(&mut self, begun: Begun) -> Result<(), Halt> {
        let Begun { work: StartedWork { steps, children, trouble }, children: asked, began_at } = begun;
        let now = self.service.now();
        let mut state = self.shared.lock();
        for (name, result) in steps {
            match result {
                Ok(()) => state.replay.push(began_at, Happened::Remote { name }),
                Err(failure) => state.replay.push(now, refused(name, &failure)),
            }
        }
        for (name, result) in children {
            let Some(child) = asked.iter().find(|child| child.name == name) else { continue };
            match result {
                Ok(()) => {
                    let (execution, policy) = (child.execution.clone(), child.policy);
                    let was_left = state.replay.is_left(&execution);
                    let what = Happened::Child { name, execution, policy, left: false, was_left };
                    state.replay.push(began_at, what);
                }
                Err(failure) => state.replay.push(now, refused(name, &failure)),
            }
            if let Some(name) = child.awaited_as.clone() {
                state.replay.push(now, Happened::Fired { name });
            }
        }
        trouble.map_or(Ok(()), |error| Err(Halt::HalfStarted(error)))
    }

    /// Ends the remote steps and children that the turn has started but couldn't record, if the run is over. If it
    /// isn't, its next turn starts the same ones.
    pub(super) async fn end_unrecorded(&mut self) {
        // The names of steps that are being started are known only when that job is done.
        while self.busy.starting {
            match self.jobs.next().await {
                Some(Done::Started(started)) => {
                    self.busy.starting = false;
                    // What wasn't started needs no end.
                    let _: Result<(), Halt> = self.work_started(started);
                }
                Some(Done::Ended(_)) | None => self.busy.starting = false,
                Some(
                    Done::Attempt(_)
                    | Done::Aborted
                    | Done::Stored(_)
                    | Done::Heartbeat(_)
                    | Done::Looked(..)
                    | Done::Reread(_)
                    | Done::OutcomesRead(_)
                    | Done::Read(..)
                    | Done::Kept(..),
                ) => {}
            }
        }
        let unwritten: Vec<Entry> = self.shared.lock().replay.unwritten().cloned().collect();
        if let Err(error) = self.service.end_started(&self.record, &unwritten).await {
            // A claim of such a task checks its parent too, and ends it.
            tracing::debug!({ field::EXECUTION_ID } = %self.record.id, %error, "started steps weren't ended");
        }
    }

    /// Ends remote steps that the code no longer waits for. Children are never ended here.
    pub(super) fn end_losers(&mut self) {
        if self.busy.starting {
            return;
        }
        let (service, record) = (self.service.clone(), self.record.clone());
        let names: Vec<StepName> = {
            let mut state = self.shared.lock();
            let losers = std::mem::take(&mut state.losers);
            let open = state.replay.open_remote();
            losers.into_iter().filter(|name| open.contains(name)).collect()
        };
        if names.is_empty() {
            return;
        }
        self.busy.starting = true;
        self.jobs.push(Box::pin(async move {
            let ended = service.cancel_remote(&record, &names).await;
            Done::Ended(ended.map(|()| names))
        }));
    }

    pub(super) fn losers_ended(&mut self, names: Vec<StepName>) {
        let now = self.service.now();
        let mut state = self.shared.lock();
        for name in names {
            // Its outcome may have been read meanwhile: each step has one end.
            if state.replay.name_state(&name).is_open() {
                let (outcome, attempts, errors) = (StepOutcome::Cancelled, None, vec![]);
                state.replay.push(now, Happened::Step { name, outcome, attempts, expired: None, errors });
            }
        }
    }

    /// Starts a job that reads the outcomes of remote steps and other executions.
    pub(super) fn start_reading_outcomes(&mut self) {
        self.busy.reading_outcomes = true;
        let job = self.outcomes_job();
        self.jobs.push(Box::pin(async move { Done::OutcomesRead(job.await) }));
    }

    /// Reads the outcomes of remote steps and other executions now, if that is requested.
    pub(super) async fn read_outcomes_now(&mut self) -> Result<(), Halt> {
        if std::mem::take(&mut self.shared.lock().needs_read) {
            let read = match self.brought.take() {
                Some(outcomes) => ReadOutcomes { outcomes, wakes: self.record.wakes },
                None => self.outcomes_job().await?,
            };
            self.outcomes_read(read);
        }
        Ok(())
    }

    fn outcomes_job(&self) -> impl Future<Output = Result<ReadOutcomes, ServiceError>> + Send + use<> {
        let (service, record) = (self.service.clone(), self.record.clone());
        let state = self.shared.lock();
        let (remote, children) = (state.replay.open_remote(), state.replay.open_children());
        async move {
            let wakes = record.wakes;
            // They are delivered to the code in their order.
            let outcomes = service.outcomes(&record, &remote, children).await?;
            Ok(ReadOutcomes { outcomes, wakes })
        }
    }

    /// Adds each end with its own instant, which may be before that of an entry which is in the journal already.
    pub(super) fn outcomes_read(&mut self, read: ReadOutcomes) {
        let now = self.service.now();
        self.seen_wakes = self.seen_wakes.max(read.wakes);
        let mut state = self.shared.lock();
        for (name, EndedStep { outcome, expired, last_error, ended_at, .. }) in read.outcomes {
            if state.replay.name_state(&name).is_open() {
                // When a deleted record ended is unknown. Another process's clock may be ahead.
                let is_known = outcome != StepOutcome::ResultExpired;
                let at = if is_known { ended_at.min(now) } else { now };
                let (attempts, errors) = (None, last_error.into_iter().collect());
                state.replay.push(at, Happened::Step { name, outcome, attempts, expired, errors });
            }
        }
    }
}

/// The end of a step or child whose start was refused.
fn refused(name: StepName, failure: &task::Failure) -> Happened {
    let outcome = StepOutcome::Failed { error: failure_payload(failure) };
    Happened::Step { name, outcome, attempts: Some(1), expired: None, errors: vec![] }
}

/// Gives the steps the inputs that an operator has given them. Returns as well all that are reopened, and those among them that
/// were given an input.
async fn given_inputs(
    service: &Backend,
    again: Vec<Again>,
    mut steps: Vec<RemoteStep>,
) -> Result<(Vec<RemoteStep>, Vec<StepName>, Vec<StepName>), ServiceError> {
    let (mut names, mut with_input) = (vec![], vec![]);
    for Again { name, input } in again {
        if let Some(input) = input {
            let input = service.open(&input).await?;
            if let Some(step) = steps.iter_mut().find(|step| step.name == name) {
                step.input = Some(input);
            }
            with_input.push(name.clone());
        }
        names.push(name);
    }
    Ok((steps, names, with_input))
}
