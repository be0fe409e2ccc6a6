//! The future behind everything that a context offers: it says what it needs, and is woken when that has ended.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tickover_core::time::Timestamp;

use crate::turn::need::{Need, Stage};
use crate::turn::shared::Shared;
use crate::turn::state::State;

/// Something that a workflow's code can wait for. Both methods are called under the lock. The only user code that runs
/// in them is the deserialisation of values.
pub(crate) trait Operation {
    /// The result.
    type Output;

    /// The first poll: returns what has to happen. If the journal has the outcome already, it is delivered to the code
    /// in the journal's order.
    fn begin(&mut self, state: &mut State, now: Timestamp) -> FirstPoll<Self::Output>;

    /// What was needed has happened: returns the result. `None` if the run ends because of it.
    fn end(&mut self, state: &mut State) -> Option<Self::Output>;
}

/// The result of a first poll.
pub(crate) enum FirstPoll<T> {
    /// The result is known at once, and would be in each replay: a small captured value, or an invalid call.
    Ready(T),
    /// Something has to happen first.
    Needs(Need),
    /// The run ends because of it.
    Over,
}

impl<T> FirstPoll<T> {
    /// Converts the result, if there is one.
    pub(crate) fn map<U>(self, turn: impl FnOnce(T) -> U) -> FirstPoll<U> {
        match self {
            Self::Ready(value) => FirstPoll::Ready(turn(value)),
            Self::Needs(need) => FirstPoll::Needs(need),
            Self::Over => FirstPoll::Over,
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
    /// The state that the turn shares with it.
    pub(crate) const fn turn(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl<O: Clone> Awaited<O> {
    /// A copy of the operation, without its wait.
    pub(crate) fn operation(&self) -> O {
        self.operation.clone()
    }
}

/// No field is pinned.
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
                FirstPoll::Ready(output) => return Poll::Ready(output),
                FirstPoll::Needs(need) => this.number = Some(state.wait(need, context.waker())),
                FirstPoll::Over => {}
            },
            Some(number) if state.is_available(number) => {
                if let Some(output) = this.operation.end(&mut state) {
                    // The code has it now. Whoever waits for it again has it read again.
                    if let Some(need) = state.forget(number) {
                        state.forget_text(need.name());
                    }
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
        // An inline attempt whose future was dropped is stopped.
        if let Some(Need::Inline(inline)) = dropped
            && let Stage::Running(running) = inline.stage
        {
            running.handle.abort();
        }
    }
}

#[cfg(all(test, feature = "test"))]
mod tests {
    use super::*;
    use crate as tickover;
    use crate::prelude::*;
    use crate::test::TestEnv;

    #[tickover::step]
    async fn fill(bytes: usize) -> Result<String> {
        Ok("x".repeat(bytes))
    }

    /// How many stored values are in memory at most: after each of two replays of large results of every kind.
    #[tickover::workflow("frugal")]
    async fn frugal(ctx: Ctx, steps: usize) -> Result<usize> {
        let shared = Arc::clone(&ctx.shared);
        let (in_memory, mut most) = (|| shared.lock().texts(), 0);
        for turn in 0..2 {
            for number in 0..steps {
                let step = fill(20_000).named(format!("{turn}-fill[{number}]"));
                ctx.step(if number % 2 == 0 { step } else { step.remote() }).await?;
                most = most.max(in_memory());
            }
            ctx.capture(format!("{turn}-large"), || "y".repeat(20_000)).await?;
            most = most.max(in_memory());
            ctx.sleep(format!("{turn}-sleep"), "1h").await?;
        }
        let event: String = ctx.wait_for_event("note", forever()).await?;
        let all = ctx.join_all("fan", (0..40).map(|_| fill(20_000))).await?;
        assert_eq!((event.len(), all.len()), (20_000, 40));
        Ok(most.max(in_memory()))
    }

    #[tokio::test]
    async fn a_large_result_that_the_code_has_is_not_kept_in_memory() {
        let env = TestEnv::new().workflow(frugal).step::<fill>();
        let run = env.start(&frugal, 20).await.unwrap();
        env.advance("3h").await.unwrap();
        run.send_event("note", "z".repeat(20_000)).await.unwrap();
        assert_eq!(run.result().await.unwrap(), 0);
    }
}
