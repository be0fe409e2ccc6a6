//! The body of a workflow: when it is polled, which outcomes are delivered to it, and how long it may wait for a future
//! that isn't of its context.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use tickover_core::duration::Millis;
use tickover_core::payload::Payload;
use tickover_core::time::Timestamp;

use super::deliver::Delivered;
use super::drive::{Done, Driver, Halt};
use super::panics;
use super::state::UndoStage;
use crate::ctx::Ctx;

/// What the driver knows about the code since the last delivery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PollState {
    /// Whether it must be polled: an outcome was delivered to it, or it hasn't run yet.
    must_poll: bool,
    /// How often it has woken itself since the last delivery.
    self_wakes: u32,
    /// Whether it was polled once more without a new outcome, to see what it still waits for.
    is_confirmed: bool,
    /// Whether the turn has stopped waiting for futures that aren't of the context.
    ignores_foreign: bool,
}

/// How often code may wake itself before the next outcome is delivered in any case.
const SELF_WAKES_MAX: u32 = 1_000;

/// What the driver does after a poll of the code.
pub(super) enum Progress {
    /// It polls again.
    Again,
    /// It waits until a result is read.
    Reads,
    /// It starts what the code needs: all known outcomes were delivered.
    Idle,
}

impl PollState {
    /// The state of code that has to be polled.
    pub(super) fn to_poll() -> Self {
        Self { must_poll: true, ..Self::default() }
    }
}

impl Driver {
    /// Whether the code is to be stopped, because the execution is to be cancelled. It still receives what has ended, so
    /// that it can register what undoes that. What undoes a failure goes on.
    pub(super) fn is_stopping(&self) -> bool {
        self.record.cancel_requested && self.shared.lock().undo == UndoStage::NotYet
    }

    /// Stops the code where it waits. Its undo steps follow.
    pub(super) fn stop_code(&mut self, now: Timestamp) {
        // Dropping the code may run code of the user, so the lock isn't held.
        self.body = None;
        let is_handled = self.workflow.on_cancel_timeout().is_some();
        let ctx = Ctx::new(Arc::clone(&self.shared));
        let mut state = self.shared.lock();
        if is_handled || state.undoes() {
            state.replay.stop_code(now);
        }
        state.undo = UndoStage::Cancellation;
        drop(state);
        self.body = Some(Box::pin(async move {
            ctx.undo(is_handled).await;
            Ok(None)
        }));
        self.rest = PollState::to_poll();
    }

    /// Polls the code, if an outcome was delivered or its waker was called.
    pub(super) fn poll_body(&mut self) -> Result<(), Halt> {
        if self.body.is_none() || !(self.rest.must_poll || self.wake_flag.is_woken()) {
            return Ok(());
        }
        self.rest.must_poll = false;
        let waker = self.wake_flag.next();
        self.shared.lock().poll_with(waker.clone());
        let Some(body) = &mut self.body else { return Ok(()) };
        let mut context = Context::from_waker(&waker);
        let poll = AssertUnwindSafe(|| body.as_mut().poll(&mut context));
        let polled = self.shared.polling(|| std::panic::catch_unwind(poll));
        match polled {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(answer)) => {
                self.answer = Some(answer);
                self.body = None;
                self.stop_steps();
            }
            Err(panic) => {
                self.body = None;
                return Err(Halt::Panicked(panics::message_of(&*panic)));
            }
        }
        for warning in self.shared.lock().replay.warnings() {
            tracing::warn!(
                { tickover_service::telemetry::field::EXECUTION_ID } = %self.record.id,
                limit = warning.limit, value = warning.value, maximum = warning.maximum,
                "near a limit"
            );
        }
        Ok(())
    }

    /// Delivers the next outcome to the code. Outcomes are delivered one at a time, each when the code no longer wakes
    /// itself.
    pub(super) fn progress(&mut self, now: Timestamp) -> Progress {
        if self.body.is_none() {
            self.handled_until = now;
            return Progress::Idle;
        }
        if self.wake_flag.is_woken() && self.rest.self_wakes < SELF_WAKES_MAX {
            self.rest.self_wakes += 1;
            self.rest.is_confirmed = false;
            return Progress::Again;
        }
        let is_stopping = self.is_stopping();
        let mut state = self.shared.lock();
        let delivered = match state.deliver() {
            Delivered::Nothing if !is_stopping => {
                // Something may have arrived before, and the turn doesn't know it.
                let is_unknown = |at| at > self.looked_at || self.busy.reading_outcomes;
                if state.next_end_by_time(now).is_some_and(is_unknown) {
                    drop(state);
                    self.look(now);
                    return Progress::Reads;
                }
                if state.record_next_end(now) { state.deliver() } else { Delivered::Nothing }
            }
            delivered => delivered,
        };
        drop(state);
        match delivered {
            Delivered::Something => {
                self.rest = PollState::to_poll();
                Progress::Again
            }
            Delivered::NotYet(payloads) => {
                self.read(payloads);
                Progress::Reads
            }
            Delivered::Nothing => {
                self.handled_until = now;
                if !is_stopping && self.check_drift(now) {
                    return Progress::Again;
                }
                if self.keeps_waker() && !self.rest.is_confirmed {
                    // A future that has ended may still keep the waker of its last poll.
                    self.rest = PollState { must_poll: true, is_confirmed: true, ..self.rest };
                    return Progress::Again;
                }
                Progress::Idle
            }
        }
    }

    /// Starts reading large results that are to be delivered.
    pub(super) fn read(&mut self, payloads: Vec<Payload>) {
        for payload in payloads {
            if !payload.blob().is_some_and(|blob| self.reading.insert(blob.id)) {
                continue;
            }
            let service = self.service.clone();
            self.jobs.push(Box::pin(async move {
                let text = service.open(&payload).await;
                Done::Read(payload, text)
            }));
        }
    }

    /// Whether a future that isn't of the context keeps the body's waker. Executors within the code keep it too: their
    /// number is at most the number of the context's futures that they poll.
    pub(super) fn keeps_waker(&self) -> bool {
        self.wake_flag.kept() > self.shared.lock().inner_count()
    }

    /// Whether the code was polled until it waits, and waits for futures of its context only.
    pub(super) fn rests(&self) -> bool {
        let is_polled = !self.rest.must_poll && !self.rest.ignores_foreign && !self.wake_flag.is_woken();
        self.body.is_some() && is_polled && !self.keeps_waker()
    }

    /// Whether the code waits for a future that isn't of its context.
    pub(super) fn awaits_foreign(&self) -> bool {
        if self.body.is_none() {
            return false;
        }
        if self.is_stopping() && self.rest.ignores_foreign {
            return false;
        }
        self.awaits_nothing_known()
            || !self.rest.ignores_foreign && (self.wake_flag.is_woken() || self.keeps_waker())
    }

    /// Whether the code waits for no future of its context.
    pub(super) fn awaits_nothing_known(&self) -> bool {
        self.shared.lock().open().next().is_none()
    }

    /// How long the turn waits for a future that isn't of the context: at most
    /// [`TurnSettings::in_place`](super::TurnSettings::in_place) if the code also waits for its context.
    pub(super) fn foreign_wait_max(&self) -> Millis {
        let foreign_wait_max = self.settings.foreign_wait_max;
        if self.awaits_nothing_known() {
            foreign_wait_max
        } else {
            foreign_wait_max.min(self.settings.in_place)
        }
    }

    pub(super) fn check_foreign_wait(&mut self, now: Timestamp) -> Result<(), Halt> {
        if !self.awaits_foreign() || self.has_running() {
            self.foreign_since = None;
            return Ok(());
        }
        let since = *self.foreign_since.get_or_insert(now);
        if now.since(since) < self.foreign_wait_max() {
            return Ok(());
        }
        if self.awaits_nothing_known() && !self.is_stopping() {
            return Err(Halt::Stuck(self.foreign_wait()));
        }
        self.foreign_since = None;
        self.rest.ignores_foreign = true;
        Ok(())
    }
}
