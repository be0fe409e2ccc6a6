//! Runs a test's system, and lets time pass.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};

use futures::future::{Either, select};
use tickover_core::time::Timestamp;

use super::clock::Standstill;
use super::system::System;
use super::{TestEnv, invalid};
use crate::busy::is_multi_threaded;
use crate::client::ClientError;
use crate::step::running;

/// Why a test refuses a runtime with several threads.
const ONE_THREAD: &str = "a `TestEnv` needs a current-thread runtime, whose clock can run with that of the test: write \
     `#[tokio::test]` without `flavor = \"multi_thread\"`";

/// How far the clock may advance.
#[derive(Clone, Copy)]
pub(super) enum Until {
    /// Until the goal is reached.
    Done,
    /// Until no work is open.
    Idle,
    /// To an instant, including everything that happens at it.
    Instant(Timestamp),
}

/// The outcome of a wait.
pub(super) enum Driven<T> {
    Done(T),
    /// The clock has advanced as far as it may.
    Reached,
    /// Nothing is left that could happen.
    Stalled,
}

impl TestEnv {
    /// Runs the system, and lets time pass, until the goal is done or the limit is reached.
    pub(super) async fn drive<F: Future>(
        &self,
        until: Until,
        goal: F,
    ) -> Result<Driven<F::Output>, ClientError> {
        if is_multi_threaded() {
            return Err(invalid("runtime", &ONE_THREAD));
        }
        let mut system_guard = self.system.lock().await;
        let system = self.started_system(&mut system_guard)?;
        // A new one before the old one goes: the clock is paused anew only if another runtime polls now.
        system.standstill = Standstill::begin().await;
        let driven = self.drive_by(system, until, goal).await;
        if !system.has_open_jobs() {
            system.standstill = None;
        }
        Ok(driven)
    }

    async fn drive_by<F: Future>(&self, system: &mut System, until: Until, goal: F) -> Driven<F::Output> {
        let mut goal = pin!(goal);
        let waker = Waker::from(Arc::clone(&self.progress));
        loop {
            let polled = poll_fn(|_| Poll::Ready(goal.as_mut().poll(&mut Context::from_waker(&waker)))).await;
            if let Poll::Ready(output) = polled {
                return Driven::Done(output);
            }
            let progressed = system.poll_jobs(&self.progress).await;
            // The test's own Tokio tasks run now. Futures that only yielded are woken.
            tokio::task::yield_now().await;
            // A job that ran may have reached the goal, and a job that was woken may run.
            let is_busy = self.progress.take() || progressed;
            if is_busy || (system.has_open_jobs() && self.waited_for_news().await) {
                continue;
            }
            let next = system.next_instant().await;
            let (at, is_end) = match (until, next) {
                (Until::Idle, _) if system.is_idle().await => return Driven::Reached,
                (Until::Instant(end), next) if next.is_none_or(|next| next > end) => (end, true),
                (Until::Done | Until::Idle | Until::Instant(_), Some(next)) => (next, false),
                (Until::Done | Until::Idle | Until::Instant(_), None) => return Driven::Stalled,
            };
            if !self.world.clock.pass(at, &self.progress).await {
                continue;
            }
            if is_end {
                return Driven::Reached;
            }
            system.tick(&self.progress).await;
        }
    }

    /// Waits in real time, if the code of a step runs. Tokio's clock stands still meanwhile: it doesn't jump while a
    /// blocking call runs.
    async fn waited_for_news(&self) -> bool {
        let real_timeout = self.real_timeout;
        if real_timeout.is_zero() || running::count() == 0 {
            return false;
        }
        let (over, is_over) = mpsc::channel::<()>();
        let mut waits = tokio::task::spawn_blocking(move || is_over.recv_timeout(real_timeout));
        if let Either::Right(_) = select(pin!(self.progress.woken.notified()), &mut waits).await {
            return false;
        }
        drop(over);
        let _ = waits.await;
        true
    }
}
