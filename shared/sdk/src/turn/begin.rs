//! Remote steps and children: started in one call, read in one call, and ended when the code no longer waits for them.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::future::join_all;
use tickover_core::execution::journal::{Entry, Happened, StepOutcome, is_own_child};
use tickover_core::execution::{Execution, ParentClosePolicy};
use tickover_core::id::{ExecutionId, StepName};
use tickover_core::payload::Payload;
use tickover_core::task;
use tickover_core::time::Timestamp;
use tickover_service::executions::{EndedStep, RemoteStep, StartRequest, remote_id};
use tickover_service::telemetry::field;
use tickover_service::{Service, ServiceError};

use super::drive::{Done, Driver, Halt};
use super::inline::failure_payload;
use super::need::Need;
use crate::error::Error;

/// The remote steps and children that were started.
pub(super) struct StartedWork {
    remote: Vec<StepName>,
    children: Vec<Started>,
    /// Why the run fails: it asked for something that can't be started.
    refused: Option<Error>,
    /// Why others weren't started.
    trouble: Option<ServiceError>,
    /// When their start began. None of them can have ended before.
    began_at: Timestamp,
}

/// The outcomes of remote steps and other executions that have ended.
pub(super) struct ReadOutcomes {
    /// In the order of their ends.
    outcomes: Vec<(StepName, EndedStep)>,
    /// The record's number of wakes before the read.
    wakes: u64,
}

/// A child that has to be started.
struct ToStart {
    name: StepName,
    start: Box<StartRequest>,
    policy: ParentClosePolicy,
    started: Option<StepName>,
}

/// A step that an operator has reopened.
struct Again {
    name: StepName,
    /// The input that it was given in place of the code's.
    input: Option<Payload>,
}

/// A child that was started, or whose start was refused.
struct Started {
    name: StepName,
    execution: ExecutionId,
    policy: ParentClosePolicy,
    awaited_as: Option<StepName>,
    result: Result<(), task::Failure>,
}

impl Driver {
    /// Starts all remote steps and children that the code needs, in one job.
    pub(super) fn start_remote(&mut self) {
        let (mut steps, mut children) = (Vec::new(), Vec::new());
        {
            let mut state = self.shared.lock();
            for waiting in state.needs.values_mut() {
                let outcome = Need::Outcome { name: waiting.need.name().clone() };
                match std::mem::replace(&mut waiting.need, outcome) {
                    Need::Remote(step) => steps.push(*step),
                    Need::Child { name, start, policy, started } => {
                        children.push(ToStart { name, start, policy, started });
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
        let work = StartedWork::new(self.service.now());
        self.jobs.push(Box::pin(async move {
            Done::Started(match revive(&service, &record, again, &mut steps).await {
                Ok(()) => begin(&service, &record, steps, children, work).await,
                Err(error) => StartedWork { trouble: Some(error), ..work },
            })
        }));
    }

    /// Notes what was started. An error says that not everything was.
    pub(super) fn work_started(&mut self, started: StartedWork) -> Result<(), Halt> {
        let (now, began_at) = (self.service.now(), started.began_at);
        let mut state = self.shared.lock();
        for name in started.remote {
            state.replay.push(began_at, Happened::Remote { name });
        }
        if let Some(error) = started.refused {
            state.fail(error);
        }
        for Started { name, execution, policy, awaited_as, result } in started.children {
            match result {
                Ok(()) => {
                    let what = Happened::Child { name, execution, policy, left: false };
                    state.replay.push(began_at, what);
                }
                Err(failure) => {
                    let outcome = StepOutcome::Failed { error: failure_payload(&failure) };
                    let (attempts, expired, errors) = (Some(1), None, vec![]);
                    state.replay.push(now, Happened::Step { name, outcome, attempts, expired, errors });
                }
            }
            if let Some(name) = awaited_as {
                state.replay.push(now, Happened::Fired { name });
            }
        }
        started.trouble.map_or(Ok(()), |error| Err(Halt::HalfStarted(error)))
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
            let outcome = StepOutcome::Cancelled;
            state
                .replay
                .push(now, Happened::Step { name, outcome, attempts: None, expired: None, errors: vec![] });
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
            let read = self.outcomes_job().await?;
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
            let mut outcomes = Vec::new();
            if !remote.is_empty() {
                outcomes.extend(service.remote_outcomes(&record, &remote).await?);
            }
            if !children.is_empty() {
                let (ours, others): (Vec<_>, Vec<_>) =
                    children.into_iter().partition(|(name, _)| is_own_child(name));
                outcomes.extend(service.child_outcomes(&record, &ours).await?);
                outcomes.extend(service.other_outcomes(&others).await?);
            }
            // They are delivered to the code in this order.
            outcomes.sort_by_key(|(_, ended)| ended.ended_at);
            Ok(ReadOutcomes { outcomes, wakes })
        }
    }

    /// Adds each end with its own instant, which may be before that of an entry which is in the journal already.
    pub(super) fn outcomes_read(&mut self, read: ReadOutcomes) {
        let now = self.service.now();
        self.seen_wakes = self.seen_wakes.max(read.wakes);
        let mut state = self.shared.lock();
        for (name, EndedStep { outcome, expired, ended_at, .. }) in read.outcomes {
            if state.replay.name_state(&name).is_open() {
                // When a deleted record ended is unknown. Another process's clock may be ahead.
                let is_known = outcome != StepOutcome::ResultExpired;
                let at = if is_known { ended_at.min(now) } else { now };
                let (attempts, errors) = (None, vec![]);
                state.replay.push(at, Happened::Step { name, outcome, attempts, expired, errors });
            }
        }
    }
}

impl StartedWork {
    const fn new(began_at: Timestamp) -> Self {
        Self { remote: vec![], children: vec![], refused: None, trouble: None, began_at }
    }
}

/// Retries the tasks of steps that an operator has reopened, with the inputs that they were given. A failure from before isn't
/// their outcome. The steps get these inputs too: a task that was deleted is scheduled anew.
async fn revive(
    service: &Service,
    record: &Execution,
    again: Vec<Again>,
    steps: &mut [RemoteStep],
) -> Result<(), ServiceError> {
    if again.is_empty() {
        return Ok(());
    }
    let (mut names, mut inputs) = (Vec::with_capacity(again.len()), BTreeMap::new());
    for Again { name, input } in again {
        if let Some(input) = input {
            let input = service.open(&input).await?;
            steps
                .iter_mut()
                .filter(|step| step.name == name)
                .for_each(|step| step.input = Some(input.clone()));
            inputs.insert(name.clone(), input);
        }
        names.push(name);
    }
    for (name, ended) in service.remote_outcomes(record, &names).await? {
        if matches!(ended.outcome, StepOutcome::Completed { .. }) {
            continue;
        }
        let id = remote_id(record, &name);
        let retried = match inputs.remove(&name) {
            Some(input) => service.retry_with(&id, input).await,
            None => service.retry(&id).await,
        };
        match retried {
            Ok(_) | Err(ServiceError::Rejected(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn begin(
    service: &Service,
    record: &Execution,
    steps: Vec<RemoteStep>,
    children: Vec<ToStart>,
    mut work: StartedWork,
) -> StartedWork {
    if !steps.is_empty() {
        let begun = service.start_remote(record, steps).await;
        work.remote = begun.names;
        match begun.error {
            Some(ServiceError::Rejected(reject)) => {
                work.refused = Some(Error::new(reject.code(), reject.to_string()));
            }
            trouble => work.trouble = trouble,
        }
    }
    for started in join_all(children.into_iter().map(|child| start(service, record, child))).await {
        match started {
            Some(Ok(child)) => work.children.push(child),
            Some(Err(error)) => work.trouble = Some(error),
            None => {}
        }
    }
    work
}

async fn start(
    service: &Service,
    record: &Execution,
    child: ToStart,
) -> Option<Result<Started, ServiceError>> {
    let ToStart { name, start, policy, started } = child;
    let id = start.id.clone()?;
    let is_same_work =
        record.repeats.is_some() || start.parent.as_ref().is_some_and(|parent| parent.again > 0);
    let start = StartRequest { trace: record.trace, ..*start };
    let result = match service.start_child(start, is_same_work).await {
        Ok(_) => Ok(()),
        Err(ServiceError::Rejected(reject)) => Err(task::Failure::new(reject.code(), reject.to_string())),
        Err(error) => return Some(Err(error)),
    };
    Some(Ok(Started { name, execution: id, policy, awaited_as: started, result }))
}
