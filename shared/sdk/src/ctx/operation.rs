//! The one future behind all that a context offers: it says what it needs, and is told when that has ended.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tickover_core::time::Timestamp;

use crate::turn::need::{Need, Stage};
use crate::turn::state::{Shared, State};

/// Something that a workflow's code can wait for. Both calls are made under the lock: nothing of the user's runs in
/// them but the reading of values.
pub(crate) trait Operation {
    /// What it comes to.
    type Output;

    /// The first poll: what has to happen. If that is in the journal already, the code is told in its turn.
    fn begin(&mut self, state: &mut State, now: Timestamp) -> Look<Self::Output>;

    /// It has happened: what it comes to. `None` if the run ends for it.
    fn end(&mut self, state: &mut State) -> Option<Self::Output>;
}

/// What a first poll comes to.
pub(crate) enum Look<T> {
    /// It is known at once, and would be in each replay: a small value that was captured, a call that can't be made.
    Ready(T),
    /// It needs this.
    Needs(Need),
    /// The run ends for it.
    Over,
}

impl<T> Look<T> {
    /// The same with what is ready turned into something else.
    pub(crate) fn map<U>(self, turn: impl FnOnce(T) -> U) -> Look<U> {
        match self {
            Self::Ready(value) => Look::Ready(turn(value)),
            Self::Needs(need) => Look::Needs(need),
            Self::Over => Look::Over,
        }
    }
}

/// An operation as a future.
#[must_use = "it does nothing unless it is awaited"]
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

impl<O> Awaited<O> {
    /// What its turn shares with it.
    pub(crate) const fn turn(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl<O: Clone> Awaited<O> {
    /// The operation, which nothing waits for any more.
    pub(crate) fn operation(&self) -> O {
        self.operation.clone()
    }
}

/// Nothing in it is ever pinned.
impl<O> Unpin for Awaited<O> {}

impl<O: Operation> Future for Awaited<O> {
    type Output = O::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<O::Output> {
        let this = &mut *self;
        if !this.shared.is_polled_here() {
            return Poll::Pending;
        }
        let now = this.shared.now();
        let mut state = this.shared.lock();
        match this.number {
            None => match this.operation.begin(&mut state, now) {
                Look::Ready(output) => return Poll::Ready(output),
                Look::Needs(need) => this.number = Some(state.wait(need, context.waker())),
                Look::Over => {}
            },
            Some(number) if state.is_heard(number) => {
                if let Some(output) = this.operation.end(&mut state) {
                    state.forget(number);
                    this.number = None;
                    return Poll::Ready(output);
                }
            }
            Some(number) => state.wait_on(number, context.waker()),
        }
        Poll::Pending
    }
}

impl<O> Drop for Awaited<O> {
    fn drop(&mut self) {
        let Some(number) = self.number.take() else { return };
        let dropped = {
            let mut state = self.shared.lock();
            let dropped = state.forget(number);
            if let (true, Some(name)) = (state.dropping_ends, dropped.as_ref().and_then(Need::begun)) {
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
