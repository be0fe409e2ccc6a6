//! Inline steps: an attempt runs beside the code, in its time, and what comes of it.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{AbortHandle, Abortable, Either, select};
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_core::execution::replay::{AfterFailure, FailedAttempt, TimeoutScope};
use tickover_core::id::StepName;
use tickover_core::payload::{Json, Payload};
use tickover_core::task;
use tickover_core::time::{Timestamp, earliest};
use tickover_service::{Service, ServiceError};

use super::drive::{Done, Driver, Halt};
use super::panics;
use super::state::{Attempted, Failed, Inline, Need, Runner, Stage, deadline_of};
use crate::codec;
use crate::error::Failure;
use crate::step::StepInfo;

/// Longest message of an error that the journal keeps beside the error itself.
const MESSAGE_MAX: usize = 200;

/// An attempt that is over.
pub(super) struct AttemptEnd {
    number: u64,
    name: StepName,
    attempt: u32,
    first_at: Timestamp,
    how: How,
}

/// How it went.
enum How {
    Done(Option<Payload>, Json),
    Failed {
        error: Payload,
        text: Json,
        failure: task::Failure,
        is_final: bool,
    },
    TimedOut,
    /// The run, the execution or the invocation ends: the driver sees to it.
    OutOfTime,
    Broken(ServiceError),
}

/// What an attempt is given.
struct Attempt {
    service: Service,
    runner: Runner,
    info: StepInfo,
    timeout_at: Option<Timestamp>,
    stop_at: Option<Timestamp>,
}

impl Attempt {
    async fn run(self) -> How {
        let Self { service, runner, info, timeout_at, stop_at } = self;
        let clock = Arc::clone(service.clock());
        let until = earliest([timeout_at, stop_at]);
        let ran = {
            let attempt = AssertUnwindSafe(async move { runner(info).await }).catch_unwind();
            let alarm = async {
                match until {
                    Some(until) => clock.sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            match select(pin!(attempt), pin!(alarm)).await {
                Either::Left((ran, _)) => Some(ran),
                Either::Right(_) => None,
            }
        };
        let attempted = match ran {
            // The deadline behind the timeout wins where both come at once.
            None if timeout_at.is_some() && timeout_at == until && stop_at != until => return How::TimedOut,
            None => return How::OutOfTime,
            Some(Ok(attempted)) => attempted,
            Some(Err(panic)) => {
                let failure = task::Failure::new("panic", panics::told(&*panic));
                Attempted::Failed { error: failure_json(&failure), failure }
            }
        };
        match attempted {
            Attempted::Done(text) if text.as_str() == "null" => How::Done(None, text),
            Attempted::Done(text) => match service.keep(text.clone()).await {
                Ok(payload) => How::Done(Some(payload), text),
                Err(ServiceError::Rejected(reject)) => {
                    How::refused(&task::Failure::new(reject.code(), reject.to_string()))
                }
                Err(error) => How::Broken(error),
            },
            Attempted::Unwritable(failure) => How::refused(&failure),
            Attempted::Failed { error: text, failure } => match service.keep(text.clone()).await {
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
    /// A failure that no other attempt would change.
    fn refused(failure: &task::Failure) -> Self {
        let failure = failure.cut(MESSAGE_MAX);
        let text = failure_json(&failure);
        Self::Failed { error: Payload::Inline(text.clone()), text, failure, is_final: true }
    }
}

impl Driver {
    /// Starts all inline steps that are due.
    pub(super) fn start_steps(&mut self, now: Timestamp) {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        let key = state.facts.key.clone();
        for (number, waiting) in &mut state.needs {
            let Need::Inline(inline) = &mut waiting.need else { continue };
            let Stage::Due { attempt, first_at } = inline.stage else { continue };
            self.has_worked = true;
            inline.stage = Stage::Running(self.start_step(*number, inline, (attempt, first_at), &key, now));
        }
    }

    fn start_step(
        &self,
        number: u64,
        inline: &Inline,
        (attempt, first_at): (u32, Timestamp),
        key: &str,
        now: Timestamp,
    ) -> AbortHandle {
        let name = inline.name.clone();
        let from = match inline.policy.scope {
            TimeoutScope::Global => first_at,
            TimeoutScope::PerAttempt => now,
        };
        let run = Attempt {
            service: self.service.clone(),
            runner: Arc::clone(&inline.runner),
            info: StepInfo {
                idempotency_key: format!("{key}:{name}"),
                attempt,
                name: inline.shown.clone(),
                traceparent: self.service.carried(self.record.trace).map(|trace| trace.traceparent()),
            },
            timeout_at: inline.policy.timeout.map(|timeout| from.plus(timeout)),
            stop_at: earliest([deadline_of(&self.record), self.settings.limit_at]),
        };
        let (handle, registration) = AbortHandle::new_pair();
        let job = async move {
            let how = run.run().await;
            AttemptEnd { number, name, attempt, first_at, how }
        };
        let job = Abortable::new(job, registration).map(|ended| match ended {
            Ok(end) => Done::Attempt(Box::new(end)),
            Err(_) => Done::Aborted,
        });
        self.jobs.push(job.boxed());
        handle
    }

    /// Drops what inline steps are doing.
    pub(super) fn stop_steps(&mut self) {
        for waiting in self.shared.lock().needs.values_mut() {
            if let Need::Inline(inline) = &mut waiting.need
                && let Stage::Running(handle) = &inline.stage
            {
                handle.abort();
                inline.stage = Stage::Ended;
            }
        }
    }

    /// What follows an attempt that is over.
    pub(super) fn attempt_ended(&mut self, end: AttemptEnd) -> Result<(), Halt> {
        let AttemptEnd { number, name, attempt, first_at, how } = end;
        let now = self.service.now();
        let mut state = self.shared.lock();
        let outcome = match how {
            How::Broken(error) => return Err(error.into()),
            How::OutOfTime => return Ok(()),
            How::TimedOut => StepOutcome::TimedOut,
            How::Done(output, text) => {
                if let Some(output) = &output {
                    state.remember(output, text);
                }
                StepOutcome::Completed { output }
            }
            How::Failed { error, text, failure, is_final } => {
                state.remember(&error, text);
                let (bounds, seed) = (state.bounds(), state.facts.seed ^ seed_of(&name));
                // Nobody waits for it any more: then nobody tries again.
                let Some(waiting) = state.needs.get_mut(&number) else { return Ok(()) };
                let Need::Inline(inline) = &mut waiting.need else { return Ok(()) };
                let failed = FailedAttempt { attempt, first_at, code: &failure.code, seed, now };
                match inline.policy.after_failure(&failed, bounds, error.clone()) {
                    AfterFailure::End(_) | AfterFailure::Retry { .. } if is_final => {
                        StepOutcome::Failed { error }
                    }
                    AfterFailure::End(outcome) => outcome,
                    AfterFailure::Retry { at } => {
                        let error = failure.cut(MESSAGE_MAX);
                        let in_place = at.since(now) <= self.settings.in_place;
                        let failed = Failed { attempt, first_at, error: error.clone(), at };
                        inline.stage = Stage::Retry { attempt, first_at, error, at, in_place };
                        inline.unwritten = in_place.then(|| failed.clone());
                        if !in_place {
                            state.replay.push(now, failed.entry(name));
                        }
                        return Ok(());
                    }
                }
            }
        };
        if let Some(Need::Inline(inline)) = state.needs.get_mut(&number).map(|waiting| &mut waiting.need) {
            inline.stage = Stage::Ended;
            inline.unwritten = None;
        }
        state.replay.push(now, Happened::Step { name, outcome, attempts: Some(attempt) });
        Ok(())
    }

    /// Writes down which steps have failed and are tried again here, or are about to be: that goes on elsewhere.
    pub(super) fn note_retries(&mut self) {
        let now = self.service.now();
        let mut state = self.shared.lock();
        let mut noted = Vec::new();
        for waiting in state.needs.values_mut() {
            let Need::Inline(inline) = &mut waiting.need else { continue };
            if let Stage::Retry { in_place, .. } = &mut inline.stage {
                *in_place = false;
            }
            // Of an attempt that is cut off only the one before it is known.
            let failed = inline.unwritten.take();
            noted.extend(failed.map(|failed| failed.entry(inline.name.clone())));
        }
        for what in noted {
            state.replay.push(now, what);
        }
    }

    /// A value that the code captured has been kept.
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

/// Spreads the retries of different steps of one execution.
fn seed_of(name: &StepName) -> u64 {
    name.as_str()
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

/// A failure as the journal holds one.
pub(super) fn failure_json(failure: &task::Failure) -> Json {
    let cut = failure.cut(MESSAGE_MAX);
    let failure = Failure::new(cut.code, cut.message);
    codec::encode(&failure).unwrap_or_else(|_| Json::string(&failure.code))
}

/// The same as a payload.
pub(super) fn failure_payload(failure: &task::Failure) -> Payload {
    Payload::Inline(failure_json(failure))
}
