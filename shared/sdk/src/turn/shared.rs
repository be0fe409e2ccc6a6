//! The state of a turn behind its lock, and which turn a thread polls.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickover_core::time::Timestamp;
use tickover_service::ports::Clock;

use super::state::State;
use crate::backend::Backend;
use crate::error::Error;

/// The error of a context's future that is polled outside of the workflow's code.
const OUTSIDE: &str = "a future of the workflow's context was polled outside of the workflow's own code, as by \
     `tokio::spawn`: await it in the workflow, or many at once with `ctx.join_all`, `tokio::join!` or the like";

thread_local! {
    /// The turn whose code this thread is polling now.
    static POLLED: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

/// Restores the previous value of [`POLLED`], also after a panic.
struct Restore(Option<Arc<Shared>>);

impl Drop for Restore {
    fn drop(&mut self) {
        drop(POLLED.replace(self.0.take()));
    }
}

/// What the driver and the code's futures share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Those of the turn that runs.
    service: Mutex<Backend>,
    clock: Arc<dyn Clock>,
}

impl Shared {
    pub(crate) fn new(state: State, service: Backend) -> Arc<Self> {
        let clock = Arc::clone(service.clock());
        Arc::new(Self { state: Mutex::new(state), service: Mutex::new(service), clock })
    }

    /// What the turn's calls go to.
    pub(crate) fn service(&self) -> Backend {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another turn continues the run.
    pub(super) fn continue_with(&self, service: Backend) {
        *self.service.lock().unwrap_or_else(PoisonError::into_inner) = service;
    }

    /// The state. No code of the user runs under this lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Polls the code, which may use its context meanwhile.
    pub(super) fn polling<T>(self: &Arc<Self>, poll: impl FnOnce() -> T) -> T {
        let before = POLLED.replace(Some(Arc::clone(self)));
        let _after = Restore(before);
        poll()
    }

    /// The turn whose code this thread is polling now.
    pub(crate) fn polled() -> Option<Arc<Self>> {
        POLLED.with_borrow(Clone::clone)
    }

    /// Whether the code of this turn polls the context's future now. A spawned task or another thread would poll it at
    /// times that differ in a replay.
    pub(crate) fn is_polled_here(self: &Arc<Self>) -> bool {
        let mut state = self.lock();
        if POLLED.with_borrow(|polled| polled.as_ref().is_some_and(|polled| Arc::ptr_eq(polled, self))) {
            return !state.is_over;
        }
        if state.is_over {
            tracing::error!("{OUTSIDE}");
        } else {
            state.refuse_code(Error::new("outside_turn", OUTSIDE));
            state.own_waker.wake_by_ref();
        }
        false
    }

    /// Drops futures of the code. With `ends`, the remote steps that they waited for are ended.
    pub(crate) fn drop_ending<F>(&self, ends: bool, futures: F) {
        self.lock().dropping_ends = ends;
        drop(futures);
        self.lock().dropping_ends = false;
    }
}
