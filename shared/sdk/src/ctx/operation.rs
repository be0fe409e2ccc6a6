//! The one future behind all that a context offers: it looks where things stand, and says what it needs.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tickover_core::time::Timestamp;

use crate::turn::state::{Need, Shared, Stage, State};

/// Something that a workflow's code can wait for.
pub(crate) trait Operation {
    /// What it comes to.
    type Output;

    /// Looks where it stands. Called with each poll, under the lock: nothing of the user's runs in it but the
    /// reading of values.
    fn look(&mut self, state: &mut State, now: Timestamp) -> Look<Self::Output>;
}

/// Where an operation stands.
pub(crate) enum Look<T> {
    /// Here it is.
    Ready(T),
    /// It needs this.
    Needs(Need),
    /// It still needs what it needed before.
    Waits,
}

/// An operation as a future.
pub(crate) struct Awaited<O> {
    shared: Arc<Shared>,
    pub(crate) operation: O,
    number: Option<u64>,
}

impl<O> Awaited<O> {
    pub(crate) fn new(shared: &Arc<Shared>, operation: O) -> Self {
        Self { shared: Arc::clone(shared), operation, number: None }
    }
}

/// Nothing in it is ever pinned.
impl<O> Unpin for Awaited<O> {}

impl<O: Operation> Future for Awaited<O> {
    type Output = O::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<O::Output> {
        let this = &mut *self;
        let now = this.shared.now();
        let mut state = this.shared.lock();
        if state.is_over {
            return Poll::Pending;
        }
        let need = match this.operation.look(&mut state, now) {
            Look::Ready(output) => {
                if let Some(number) = this.number.take() {
                    state.forget(number);
                }
                return Poll::Ready(output);
            }
            Look::Needs(need) => Some(need),
            Look::Waits => None,
        };
        this.number = Some(state.wait(this.number, need, context.waker()));
        Poll::Pending
    }
}

impl<O> Drop for Awaited<O> {
    fn drop(&mut self) {
        let Some(number) = self.number.take() else { return };
        let dropped = {
            let mut state = self.shared.lock();
            let dropped = state.forget(number);
            if let (true, Some(name)) = (state.dropping_ends, dropped.as_ref().and_then(Need::name)) {
                let name = name.clone();
                state.losers.push(name);
            }
            dropped
        };
        // A body that nobody waits for any more doesn't run on.
        if let Some(Need::Inline(inline)) = dropped
            && let Stage::Running(handle) = inline.stage
        {
            handle.abort();
        }
    }
}
