//! Inline steps: runs an attempt in parallel to the code, with its timeouts, and applies the result.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{AbortHandle, Abortable, Either, select};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{FailedAttempt, Happened, StepOutcome};
use tickover_core::execution::replay::{AfterFailure, EndedAttempt, Replay, timed_out};
use tickover_core::id::StepName;
use tickover_core::payload::{Json, Payload};
use tickover_core::reported::Reported;
use tickover_core::task;
use tickover_core::time::{Timestamp, earliest};
use tickover_core::timeout::{Expired, ExpiredKind};
use tickover_service::ServiceError;

use super::drive::{Done, Driver, Halt};
use super::facts::deadline_of;
use super::need::{Attempted, Failed, Inline, Need, Runner, Running, Stage};
use super::panics;
use super::state::State;
use crate::backend::Backend;
use crate::busy::watch;
use crate::codec;
use crate::error::Failure;
use crate::step::{Beat, ProgressSender, StepInfo};

/// The maximum length of an error's message in the journal, in bytes. The error itself is stored in full.
const MESSAGE_MAX: usize = 200;

/// An attempt that has ended.
pub(super) struct AttemptEnd {
    number: u64,
    name: StepName,
    attempt: u32,
    first_at: Timestamp,
    /// What it reported.
    reported: Reported,
    how: How,
}

/// How it ended.
enum How {
    Done(Option<Payload>, Json),
    Failed {
        error: Payload,
        text: Json,
        failure: task::Failure,
        is_final: bool,
    },
    TimedOut(Expired),
    /// The run, the execution or the invocation ends. The driver handles that.
    OutOfTime,
    Broken(ServiceError),
}

/// What an attempt needs to run.
struct Attempt {
    service: Backend,
    runner: Runner,
    info: StepInfo,
    limits: AttemptLimits,
}

/// What ends an attempt that doesn't end by itself.
#[derive(Clone, Copy)]
struct AttemptLimits {
    /// Its timeout, or the one over all attempts.
    own: Option<Expired>,
    /// How long it may go on without a sign of life.
    heartbeat: Option<Millis>,
    /// The end of the run, the execution or the invocation.
    stop_at: Option<Timestamp>,
}

impl AttemptLimits {
    /// The limit of the step itself that passes first, if its last sign of life came then. Of two that pass at one
    /// instant, it is that over all attempts, then the silence, then that of the attempt.
    fn first(&self, beat_at: Timestamp) -> Option<Expired> {
        let silence = self
            .heartbeat
            .map(|after| Expired { kind: ExpiredKind::Heartbeat, deadline_at: beat_at.plus(after) });
        let (over_all, own): (Vec<_>, Vec<_>) =
            self.own.into_iter().partition(|own| own.kind == ExpiredKind::ScheduleToClose);
        over_all.into_iter().chain(silence).chain(own).min_by_key(|limit| limit.deadline_at)
    }
}

impl Attempt {
    async fn run(self) -> How {
        let Self { service, runner, info, limits } = self;
        let clock = Arc::clone(service.clock());
        let mut beats = info.progress_sender.listen();
        let mut limit = limits.first(clock.now());
        let ran = {
            let name = info.name.clone();
            let attempt = AssertUnwindSafe(async move { runner(info).await }).catch_unwind();
            let mut attempt = pin!(watch().over(&name, attempt.boxed()));
            loop {
                let until = earliest([limit.map(|limit| limit.deadline_at), limits.stop_at]);
                let alarm = async {
                    match until {
                        Some(until) => clock.sleep_until(until).await,
                        None => std::future::pending().await,
                    }
                };
                let beat = async {
                    if beats.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                };
                match select(attempt.as_mut(), select(pin!(alarm), pin!(beat))).await {
                    Either::Left((ran, _)) => break Some(ran),
                    Either::Right((Either::Left(_), _)) => break None,
                    Either::Right((Either::Right(_), _)) => limit = limits.first(clock.now()),
                }
            }
        };
        let attempted = match (ran, limit) {
            // If the timeout and the deadline are at the same instant, the deadline wins.
            (None, Some(limit)) if limits.stop_at.is_none_or(|at| limit.deadline_at < at) => {
                return How::TimedOut(limit);
            }
            (None, _) => return How::OutOfTime,
            // It blocked its thread, so the timeout couldn't stop it. A result after the timeout is discarded.
            (Some(_), Some(limit)) if limit.deadline_at <= clock.now() => return How::TimedOut(limit),
            (Some(Ok(attempted)), _) => attempted,
            (Some(Err(panic)), _) => {
                let failure = task::Failure::new("panic", panics::message_of(&*panic));
                Attempted::Failed { error: failure_json(&failure), failure }
            }
        };
        match attempted {
            Attempted::Done(text) if text.as_str() == "null" => How::Done(None, text),
            Attempted::Done(text) => match service.store_payload(text.clone()).await {
                Ok(payload) => How::Done(Some(payload), text),
                Err(ServiceError::Rejected(reject)) => {
                    How::refused(&task::Failure::new(reject.code(), reject.to_string()))
                }
                Err(error) => How::Broken(error),
            },
            Attempted::Unwritable(failure) => How::refused(&failure),
            Attempted::Failed { error: text, failure } => match service.store_payload(text.clone()).await {
                Ok(error) => How::Failed { error, text, failure, is_final: false },
                Err(ServiceError::Rejected(reject)) => {
                    How::refused(&task::Failure::new(reject.code(), reject.to_string()))
                }
                Err(error) => How::Broken(error),
            },
        }
    }
}

impl How {
    /// A failure that isn't retried.
    fn refused(failure: &task::Failure) -> Self {
        let failure = failure.cut(MESSAGE_MAX);
        let text = failure_json(&failure);
        Self::Failed { error: Payload::Inline(text.clone()), text, failure, is_final: true }
    }
}

impl Driver {
    /// Starts all inline steps that are ready to run.
    pub(super) fn start_steps(&mut self, now: Timestamp) {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        let State { needs, facts, .. } = &mut *state;
        let key = facts.key();
        for (number, waiting) in needs {
            let Need::Inline(inline) = &mut waiting.need else { continue };
            let Stage::Due { attempt, first_at, limit } = inline.stage else { continue };
            self.has_worked = true;
            // Other workers use the recorded timeout, so this worker uses it too.
            let limit = if inline.policy.at_most_once { limit } else { inline.policy.limit(first_at, now) };
            let running = self.start_step(*number, inline, (attempt, first_at), &key, limit);
            inline.stage = Stage::Running(running);
        }
    }

    fn start_step(
        &self,
        number: u64,
        inline: &Inline,
        (attempt, first_at): (u32, Timestamp),
        key: &str,
        limit: Option<Expired>,
    ) -> Running {
        let name = inline.name.clone();
        let progress_sender = ProgressSender::after(inline.reported.details.clone());
        let run = Attempt {
            service: self.service.clone(),
            runner: Arc::clone(&inline.runner),
            info: StepInfo {
                idempotency_key: format!("{key}:{name}"),
                attempt,
                name: inline.given_name.clone(),
                traceparent: self.service.carried(self.record.trace).map(|trace| trace.traceparent()),
                progress: inline.reported.progress,
                progress_sender: progress_sender.clone(),
            },
            limits: AttemptLimits {
                own: limit,
                heartbeat: inline.policy.heartbeat.map(|heartbeat| heartbeat.after),
                stop_at: earliest([deadline_of(&self.record), self.settings.limit_at]),
            },
        };
        let running = progress_sender.clone();
        let (handle, registration) = AbortHandle::new_pair();
        let job = async move {
            let how = run.run().await;
            AttemptEnd { number, name, attempt, first_at, reported: reported_to(&progress_sender), how }
        };
        let job = Abortable::new(job, registration).map(|ended| match ended {
            Ok(end) => Done::Attempt(Box::new(end)),
            Err(_) => Done::Aborted,
        });
        self.jobs.push(job.boxed());
        Running { handle, attempt, first_at, progress_sender: running }
    }

    /// Stops the running inline steps.
    pub(super) fn stop_steps(&mut self) {
        for waiting in self.shared.lock().needs.values_mut() {
            if let Need::Inline(inline) = &mut waiting.need
                && let Stage::Running(running) = &inline.stage
            {
                running.handle.abort();
                inline.stage = Stage::Ended;
            }
        }
    }

    /// Applies the end of an attempt.
    pub(super) fn attempt_ended(&mut self, end: AttemptEnd) -> Result<(), Halt> {
        let AttemptEnd { number, name, attempt, first_at, reported, how } = end;
        let now = self.service.now();
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        let bounds = state.bounds();
        let ended = EndedAttempt { attempt, first_at, seed: state.seed_of(&name), now };
        let (reported, before) = match state.inline(number) {
            Some(inline) => (reported.or(&inline.reported), inline.failures.clone()),
            None => (reported, vec![]),
        };
        let then = |after, failure: &task::Failure| match after {
            AfterFailure::End(outcome) => Ok((outcome, None)),
            AfterFailure::TimedOut(expired) => Ok((StepOutcome::TimedOut, Some(expired))),
            AfterFailure::Cancelled(expired) => Ok((StepOutcome::Cancelled, Some(expired))),
            AfterFailure::Retry { at } => {
                let error = failure.cut(MESSAGE_MAX);
                let (reported, before) = (reported.clone(), before.clone());
                Err(Box::new(Failed { attempt, first_at, error, at, reported, before }))
            }
        };
        // The failure for which there was no time to try again.
        let mut last_failure = None;
        // The outcome of the step, or the failed attempt that is followed by another one.
        let ending = match how {
            How::Broken(error) => return Err(error.into()),
            How::OutOfTime => return Ok(()),
            How::Done(output, text) => {
                if let Some(output) = &output {
                    state.remember(output, text);
                }
                Ok((StepOutcome::Completed { output }, None))
            }
            How::Failed { error, text, failure, is_final } => {
                state.remember(&error, text);
                // The code no longer waits for the step, so it isn't retried.
                let Some(inline) = state.inline(number) else { return Ok(()) };
                if is_final {
                    Ok((StepOutcome::Failed { error }, None))
                } else {
                    let after = inline.policy.after_failure(&ended, &failure.code, bounds, error);
                    if matches!(after, AfterFailure::TimedOut(_)) {
                        let error = failure.cut(MESSAGE_MAX);
                        last_failure = Some(FailedAttempt { at: now, attempt, error });
                    }
                    then(after, &failure)
                }
            }
            How::TimedOut(expired) => {
                let Some(inline) = state.inline(number) else { return Ok(()) };
                then(inline.policy.after_timeout(&ended, expired, bounds), &timed_out(expired))
            }
        };
        let State { needs, replay, .. } = &mut *state;
        let inline = needs.get_mut(&number).and_then(|waiting| match &mut waiting.need {
            Need::Inline(inline) => Some(inline),
            _ => None,
        });
        match (ending, inline) {
            (Err(failed), Some(inline)) => self.try_again(replay, inline, *failed, now),
            (Err(_), None) => {}
            (Ok((outcome, expired)), mut inline) => {
                if let (Some(failed), Some(inline)) = (last_failure, &mut inline) {
                    inline.note_failure(failed);
                }
                let errors = inline.map(|inline| inline.end()).unwrap_or_default();
                replay.push(now, Happened::Step { name, outcome, attempts: Some(attempt), expired, errors });
            }
        }
        Ok(())
    }

    /// Schedules another attempt after one that failed or timed out.
    pub(super) fn try_again(&self, replay: &mut Replay, inline: &mut Inline, failed: Failed, now: Timestamp) {
        let Failed { attempt, first_at, error, at, .. } = failed.clone();
        let in_place = at.since(now) <= self.settings.in_place;
        // If the journal has the attempt's own timeout, another worker would treat it as lost during the wait.
        let is_watched = at > now && inline.policy.at_most_once && inline.watched_until().is_some();
        inline.stage = Stage::Retry { attempt, first_at, error: error.clone(), at, in_place };
        inline.reported = failed.reported.clone();
        inline.unwritten = None;
        if in_place && !is_watched {
            inline.note_failure(FailedAttempt { at: now, attempt, error });
            inline.unwritten = Some(failed);
        } else {
            inline.failures.clear();
            replay.push(now, failed.entry(inline.name.clone()));
        }
    }

    /// Records the failed attempts whose retries would have run here: they run in another turn.
    pub(super) fn note_retries(&mut self) {
        let now = self.service.now();
        let mut state = self.shared.lock();
        let mut noted = Vec::new();
        for waiting in state.needs.values_mut() {
            let Need::Inline(inline) = &mut waiting.need else { continue };
            if let Stage::Retry { in_place, .. } = &mut inline.stage {
                *in_place = false;
            }
            // If an attempt is stopped, only the failed attempt before it is recorded.
            let failed = inline.unwritten.take();
            if failed.is_some() {
                inline.failures.clear();
            }
            noted.extend(failed.map(|failed| failed.entry(inline.name.clone())));
        }
        for what in noted {
            state.replay.push(now, what);
        }
    }

    /// Records a captured value that has been stored.
    pub(super) fn kept(
        &mut self,
        number: u64,
        name: StepName,
        text: Json,
        kept: Result<Payload, ServiceError>,
    ) -> Result<(), Halt> {
        let now = self.service.now();
        let mut state = self.shared.lock();
        match kept {
            Ok(value) => {
                state.remember(&value, text);
                if state.needs.contains_key(&number) {
                    state.replay.push(now, Happened::Captured { name, value });
                }
                Ok(())
            }
            Err(ServiceError::Rejected(reject)) => {
                state.fail(crate::error::Error::new(reject.code(), format!("`{name}`: {reject}")));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What an attempt has reported to this sender.
pub(super) fn reported_to(sender: &ProgressSender) -> Reported {
    let Beat { progress, details, .. } = sender.last_beat();
    Reported { progress, details }
}

/// A failure in the form of a stored error.
pub(super) fn failure_json(failure: &task::Failure) -> Json {
    let cut = failure.cut(MESSAGE_MAX);
    let failure = Failure::new(cut.code, cut.message);
    codec::encode(&failure).unwrap_or_else(|_| Json::string(&failure.code))
}

/// The same, as a payload.
pub(super) fn failure_payload(failure: &task::Failure) -> Payload {
    Payload::Inline(failure_json(failure))
}
