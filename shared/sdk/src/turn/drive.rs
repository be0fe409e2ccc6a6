//! The driver's loop: poll the code, start what it needs, wait until something has happened, repeat.

use std::collections::HashSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tickover_core::error::Reject;
use tickover_core::execution::command::Ending;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::replay::Replay;
use tickover_core::execution::{DeadlineKind, Execution, ExecutionOutcome};
use tickover_core::id::{BlobId, LeaseId};
use tickover_core::payload::{Json, Payload};
use tickover_core::task;
use tickover_core::time::{Timestamp, earliest};
use tickover_service::ServiceError;
use tickover_service::executions::{NamedEnd, StartedTurn};

use super::begin::{Begun, ReadOutcomes};
use super::body::{PollState, Progress};
use super::end::Unknown;
use super::facts::{Facts, deadline_of};
use super::inline::AttemptEnd;
use super::need::Need;
use super::panics;
use super::shared::Shared;
use super::state::{State, Verdict};
use super::waker::WakeFlag;
use super::{TurnEnd, TurnSettings};
use crate::backend::Backend;
use crate::ctx::Ctx;
use crate::ctx::step::null_payload;
use crate::error::Error;
use crate::keeper::Keeper;
use crate::registry::{ErasedWorkflow, Registry};

/// The workflow's code as a future. Its output is the result; `None` only from `on_failure`.
pub(super) type Body = BoxFuture<'static, Result<Option<Json>, Error>>;

/// A running turn.
pub(super) struct Driver {
    pub(super) service: Backend,
    pub(super) settings: TurnSettings,
    pub(super) lease: LeaseId,
    pub(super) receipt: Option<String>,
    /// Outcomes that came with the claim, until they are used.
    pub(super) brought: Option<Vec<NamedEnd>>,
    /// The latest known version of the record.
    pub(super) record: Execution,
    /// The record's number of wakes at the last read of others' outcomes.
    pub(super) seen_wakes: u64,
    pub(super) shared: Arc<Shared>,
    pub(super) workflow: ErasedWorkflow,
    pub(super) jobs: FuturesUnordered<BoxFuture<'static, Done>>,
    pub(super) busy: Busy,
    pub(super) keeper: Keeper,
    /// Since when the code has waited for a future that isn't of its context.
    pub(super) foreign_since: Option<Timestamp>,
    /// Whether an inline step has to wait for another invocation.
    pub(super) is_short_of_time: bool,
    /// Whether this turn has started any step or child.
    pub(super) has_worked: bool,
    /// What others had written until this instant is known.
    pub(super) looked_at: Timestamp,
    /// Instants up to this one were handled.
    pub(super) handled_until: Timestamp,
    /// Large results that are being read.
    pub(super) reading: HashSet<BlobId>,
    pub(super) rest: PollState,
    /// Whether the replay is complete: the code has received all outcomes in the journal.
    pub(super) is_replayed: bool,
    pub(super) wake_flag: WakeFlag,
    pub(super) body: Option<Body>,
    /// The output of the code. The turn still waits for the jobs that run.
    pub(super) answer: Option<Result<Option<Json>, Error>>,
}

/// The driver's own jobs that run, at most one of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Busy {
    /// A write of the record.
    pub(super) writing: bool,
    /// Remote steps and children are being started or ended.
    pub(super) starting: bool,
    /// The outcomes of remote steps and other executions are being read.
    pub(super) reading_outcomes: bool,
    /// The earliest instant of the next heartbeat.
    pub(super) next_heartbeat_at: Option<Timestamp>,
}

/// A job that is done.
pub(super) enum Done {
    Attempt(Box<AttemptEnd>),
    /// The attempt was stopped.
    Aborted,
    Stored(Result<Box<Execution>, ServiceError>),
    Heartbeat(Result<Box<Execution>, ServiceError>),
    /// The record, as it is at an instant.
    Looked(Timestamp, Result<Box<Execution>, ServiceError>),
    /// The whole journal of the latest known record.
    Reread(Result<Vec<Entry>, ServiceError>),
    Started(Begun),
    Ended(Result<Vec<tickover_core::id::StepName>, ServiceError>),
    OutcomesRead(Result<ReadOutcomes, ServiceError>),
    Read(Payload, Result<Json, ServiceError>),
    Kept(u64, tickover_core::id::StepName, Json, Result<Payload, ServiceError>),
}

/// Why a turn ends early.
pub(super) enum Halt {
    /// Another worker has the lease.
    Lost,
    /// The service failed.
    Broken(ServiceError),
    /// Others have written before what the code has got, and it isn't so.
    Overtaken,
    /// The service failed to start some of what the code needs. What it has started is noted.
    HalfStarted(ServiceError),
    /// The code panicked: its message and position.
    Panicked(String),
    /// The code can't continue on this worker until somebody changes something: it awaits something that isn't durable,
    /// or it needs a state that the worker lacks.
    Stuck(task::Failure),
    /// The run exceeds a limit.
    Limit(Reject),
}

impl From<ServiceError> for Halt {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Rejected(Reject::TurnLost) => Self::Lost,
            ServiceError::Rejected(reject @ Reject::LimitExceeded { .. }) => Self::Limit(reject),
            error => Self::Broken(error),
        }
    }
}

impl Driver {
    /// Creates a driver, if the worker knows the workflow.
    pub(super) fn new(
        service: &Backend,
        registry: &Registry,
        taken: StartedTurn,
        settings: &TurnSettings,
    ) -> Result<Self, Box<Unknown>> {
        let StartedTurn { execution: record, journal, input, lease, receipt, since: _, brought } = taken;
        let Some(workflow) = registry.workflow(record.workflow.as_str()) else {
            return Err(Box::new(Unknown { record, lease }));
        };
        panics::install_hook();
        let workflow = workflow.clone();
        let replay = Replay::new(&journal, &service.limits());
        let facts = Facts::in_turn(service, registry, &record, settings, &workflow, &replay);
        let wake_flag = WakeFlag::new();
        let state = State::new(replay, facts, wake_flag.waker());
        let shared = Shared::new(state, service.clone());
        let body = body_of(&workflow, Ctx::new(Arc::clone(&shared)), &record, input);
        let mut driver = Self {
            service: service.clone(),
            settings: settings.clone(),
            lease,
            receipt,
            brought,
            seen_wakes: record.wakes,
            looked_at: record.turn().map_or(Timestamp::EPOCH, |turn| turn.claimed_at),
            record,
            shared,
            workflow,
            jobs: FuturesUnordered::new(),
            busy: Busy::default(),
            keeper: Keeper::default(),
            foreign_since: None,
            is_short_of_time: false,
            has_worked: false,
            handled_until: Timestamp::EPOCH,
            reading: HashSet::new(),
            rest: PollState::to_poll(),
            is_replayed: false,
            wake_flag,
            body: Some(body),
            answer: None,
        };
        driver.note_patches();
        Ok(driver)
    }

    /// Records the patches of the code in the first turn of the run.
    fn note_patches(&mut self) {
        let (now, patches) = (self.service.now(), self.workflow.options.patches);
        let mut state = self.shared.lock();
        if state.replay.is_untouched() && !patches.is_empty() {
            let names = patches.iter().map(|name| (*name).to_owned()).collect();
            state.replay.push(now, Happened::Patches { names });
        }
        state.reads_outcomes_first();
    }

    /// Runs the turn to its end.
    pub(super) async fn run(mut self: Box<Self>) -> (TurnEnd, Box<Self>) {
        self.keep_lease();
        self.keeper.begin().await;
        let end = match self.go().await {
            Ok(end) => end,
            Err(halt) => self.halt(halt).await,
        };
        if end == TurnEnd::Lost {
            self.end_unrecorded().await;
        }
        self.shared.lock().is_over = true;
        (end, self)
    }

    async fn go(&mut self) -> Result<TurnEnd, Halt> {
        // Before the code runs: newer secrets of callbacks, what is published, and the outcomes since the last turn.
        self.service.renew_callback_secrets().await;
        self.read_outcomes_now().await?;
        self.read_published().await?;
        loop {
            let now = self.service.now();
            if self.is_lease_over(now) {
                self.renew_lease().await?;
            }
            self.note_lease();
            if let Some(kind) = self.overdue(now) {
                return self.close_overdue(kind).await;
            }
            if self.has_to_break_off(now) {
                return self.break_off().await;
            }
            self.poll_body()?;
            // The code may have taken time: what it waits for counts from now on.
            let now = self.service.now();
            let verdict = self.shared.lock().verdict.take();
            match verdict {
                // What it did is undone, and no other run follows.
                Some(Verdict::ContinueAsNew(_)) if self.is_stopping() => self.stop_code(now),
                Some(verdict) => return self.apply_verdict(verdict).await,
                None => {}
            }
            if self.answer.is_some() && self.jobs.is_empty() {
                if self.check_drift(now) {
                    continue;
                }
                self.check_leftovers();
                let answer = self.answer.take().unwrap_or(Ok(None));
                return self.close_with(answer).await;
            }
            // Before results are written: a turn that always has some to write keeps its lease as well.
            self.heartbeat_if_due(now);
            match self.progress(now) {
                Progress::Again => {
                    if self.wake_flag.is_woken() {
                        // The code may wake itself repeatedly.
                        yield_once().await;
                    }
                    continue;
                }
                Progress::Reads => {}
                Progress::Idle => {
                    if self.plan(now) {
                        continue;
                    }
                    if self.is_idle() {
                        if let Some(end) = self.idle(now).await? {
                            return Ok(end);
                        }
                        continue;
                    }
                    self.check_foreign_wait(now)?;
                }
            }
            let happened = self.wait(now).await;
            if happened.is_empty() && self.wake_flag.is_woken() {
                yield_once().await;
            }
            self.apply_all(happened)?;
        }
    }

    /// No job runs and none can start: suspends the turn, unless something has happened meanwhile.
    async fn idle(&mut self, now: Timestamp) -> Result<Option<TurnEnd>, Halt> {
        if self.is_stopping() {
            self.stop_code(now);
            return Ok(None);
        }
        if !self.is_short_of_time && self.until(now).is_some_and(|until| until <= now) {
            return Ok(None);
        }
        self.suspend(now).await
    }

    /// Waits until a job is done, the code is woken, an instant after this one passes, or the worker asks for the turn's end.
    /// Returns all jobs that are done.
    async fn wait(&mut self, now: Timestamp) -> Vec<Done> {
        self.note_lease();
        let mut alarm = pin!(self.alarm(self.next_instant(now)));
        poll_fn(|context| {
            let mut done = Vec::new();
            while let Poll::Ready(Some(one)) = self.jobs.poll_next_unpin(context) {
                done.push(one);
            }
            if self.wake_flag.listen(context) || !done.is_empty() || alarm.as_mut().poll(context).is_ready() {
                return Poll::Ready(done);
            }
            Poll::Pending
        })
        .await
    }

    /// The next instant at which the driver has something to do. What the code waits for until an earlier one is handled, or
    /// will be once a job is done.
    fn next_instant(&self, now: Timestamp) -> Option<Timestamp> {
        let foreign_wait_max = self.foreign_since.map(|since| since.plus(self.foreign_wait_max()));
        let state = self.shared.lock();
        let renewal = if self.busy.writing { None } else { self.heartbeat_due_at() };
        let needs = state.open().filter_map(Need::instant);
        let own = [
            deadline_of(&self.record),
            self.settings.limit_at,
            foreign_wait_max,
            renewal,
            self.lease_ends_at(),
        ];
        earliest(own.into_iter().chain(needs.filter(|at| *at > now).map(Some)))
    }

    /// The earliest instant at which the code can continue without a message.
    pub(super) fn until(&self, now: Timestamp) -> Option<Timestamp> {
        if self.is_short_of_time {
            return Some(now);
        }
        self.shared.lock().open().filter_map(Need::instant).filter(|at| *at > self.handled_until).min()
    }

    /// Applies all of them, even if one ends the turn: steps that were started must be known then.
    fn apply_all(&mut self, happened: Vec<Done>) -> Result<(), Halt> {
        let applied: Vec<_> = happened.into_iter().map(|done| self.apply(done)).collect();
        applied.into_iter().collect()
    }

    pub(super) fn apply(&mut self, done: Done) -> Result<(), Halt> {
        match done {
            Done::Aborted => {}
            Done::Attempt(end) => self.attempt_ended(*end)?,
            Done::Stored(stored) => {
                // If it failed, nobody knows whether it was written, and nothing may be written after it.
                self.stored(*stored?)?;
            }
            Done::Looked(at, record) => {
                self.busy.writing = false;
                self.looked(at, *record?)?;
            }
            Done::Reread(journal) => {
                self.busy.writing = false;
                self.shared.lock().replay.rebuild(&journal?);
                self.check_overtaken()?;
            }
            Done::Heartbeat(renewed) => {
                self.busy.writing = false;
                self.heartbeat_done(renewed)?;
            }
            Done::Started(started) => {
                self.busy.starting = false;
                self.work_started(started)?;
            }
            Done::Ended(ended) => {
                self.busy.starting = false;
                self.losers_ended(ended?);
            }
            Done::OutcomesRead(read) => {
                self.busy.reading_outcomes = false;
                self.outcomes_read(read?);
            }
            Done::Read(payload, text) => {
                if let Some(blob) = payload.blob() {
                    self.reading.remove(&blob.id);
                }
                self.shared.lock().remember(&payload, text?);
            }
            Done::Kept(number, name, json, kept) => self.kept(number, name, json, kept)?,
        }
        Ok(())
    }

    /// Which deadline has passed.
    fn overdue(&self, now: Timestamp) -> Option<DeadlineKind> {
        let passed = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        match &self.record.failing {
            Some(failing) => passed(Some(failing.deadline_at)).then_some(DeadlineKind::Execution),
            None if passed(self.record.deadline_at) => Some(DeadlineKind::Execution),
            None if passed(self.record.run_deadline_at) => Some(DeadlineKind::Run),
            None => None,
        }
    }

    /// Ends the run, whose deadline has passed.
    async fn close_overdue(&mut self, kind: DeadlineKind) -> Result<TurnEnd, Halt> {
        match &self.record.failing {
            Some(failing) => self.close(Ending::Outcome(failing.outcome.clone())).await,
            None => self.close_failed(ExecutionOutcome::TimedOut { kind }).await,
        }
    }

    async fn apply_verdict(&mut self, verdict: Verdict) -> Result<TurnEnd, Halt> {
        // The code goes no further: what it has published is the last of this run.
        self.is_replayed |= matches!(verdict, Verdict::Failed(_) | Verdict::ContinueAsNew(_));
        match verdict {
            Verdict::Failed(error) => {
                self.stop_steps();
                self.finish_jobs().await?;
                self.close_with(Err(error)).await
            }
            Verdict::ContinueAsNew(input) => {
                self.stop_steps();
                self.finish_jobs().await?;
                let input = Some(self.service.store_payload(input).await?);
                let carried = self.carried().await?;
                self.close(Ending::ContinueAsNew { input, carried }).await
            }
            Verdict::Stuck(failure) => Err(Halt::Stuck(failure)),
            Verdict::Broken(error) => Err(error.into()),
            Verdict::Unreadable(failure, _) => {
                self.stop_steps();
                self.finish_jobs().await?;
                self.park(failure).await
            }
        }
    }

    /// What the next run begins with.
    pub(super) async fn carried(&mut self) -> Result<Vec<Entry>, ServiceError> {
        let (mut carried, children) = {
            let state = self.shared.lock();
            (state.replay.free_events(), state.replay.left_to_next())
        };
        carried.extend(self.service.still_open(&self.record, children).await?);
        Ok(carried)
    }

    /// Whether the code has ended.
    pub(super) const fn has_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Waits for all jobs, and for nothing else. Instants may pass meanwhile.
    pub(super) async fn finish_jobs(&mut self) -> Result<(), Halt> {
        while let Some(done) = self.jobs.next().await {
            self.apply(done)?;
        }
        Ok(())
    }
}

fn body_of(workflow: &ErasedWorkflow, ctx: Ctx, record: &Execution, input: Option<Json>) -> Body {
    let workflow = workflow.clone();
    let input = input.unwrap_or_else(null);
    let failing = record.failing.clone();
    let is_handled = failing.is_none() && workflow.has_on_failure();
    Box::pin(async move {
        let answer = match failing {
            None => workflow.run(ctx.clone(), &input).await.map(Some),
            Some(failing) => match workflow.handler(ctx.clone(), &input, &failing.outcome) {
                Some(handler) => {
                    ctx.end_steps(super::state::State::steps_left_open).await;
                    handler.await
                }
                None => Ok(None),
            },
        };
        if answer.is_err() {
            ctx.undo(is_handled).await;
        }
        answer
    })
}

fn null() -> Json {
    match null_payload() {
        tickover_core::payload::Payload::Inline(json) => json,
        tickover_core::payload::Payload::Blob(_) => Json::string(""),
    }
}

/// Yields to other tasks once.
pub(super) async fn yield_once() {
    let mut made = false;
    poll_fn(|context| {
        if std::mem::replace(&mut made, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
