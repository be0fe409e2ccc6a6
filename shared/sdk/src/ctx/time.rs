//! Sleeps and timeouts.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tickover_core::duration::{DurationError, Millis, ZeroRule};
use tickover_core::execution::replay::NameState;
use tickover_core::id::StepName;
use tickover_core::time::Timestamp;

use super::operation::{Awaited, FirstPoll, Operation};
use crate::error::Error;
use crate::options::IntoMillis;
use crate::turn::need::Need;
use crate::turn::shared::Shared;
use crate::turn::state::{ClaimProblem, State};

/// When a sleep ends.
pub(super) enum End {
    After(Result<Millis, DurationError>),
    At(Timestamp),
}

/// A sleep.
pub(super) struct Sleep {
    text: String,
    end: End,
}

impl Sleep {
    pub(super) const fn new(text: String, end: End) -> Self {
        Self { text, end }
    }
}

impl Operation for Sleep {
    type Output = Result<(), Error>;

    fn begin(&mut self, state: &mut State, now: Timestamp) -> FirstPoll<Self::Output> {
        let from_now = match &self.end {
            End::After(Err(error)) => return FirstPoll::Ready(Err(invalid(&self.text, &error.to_string()))),
            End::After(Ok(span)) => now.plus(*span),
            End::At(instant) => *instant,
        };
        let name = match claim(state, &self.text) {
            Ok(name) => name,
            Err(poll) => return poll.map(Err),
        };
        match state.replay.name_state(&name) {
            NameState::Fired => FirstPoll::Needs(Need::Outcome { name }),
            NameState::Until(until) => FirstPoll::Needs(Need::Timer { until: *until, name }),
            NameState::Fresh => FirstPoll::Needs(Need::Timer { name, until: from_now }),
            other => {
                let found = other.kind();
                other_kind(state, &self.text, found)
            }
        }
    }

    fn end(&mut self, _: &mut State) -> Option<Self::Output> {
        Some(Ok(()))
    }
}

/// Claims a name for an operation whose error type is [`Error`].
pub(super) fn claim(state: &mut State, text: &str) -> Result<StepName, FirstPoll<Error>> {
    state.claim(text).map_err(|problem| match problem {
        ClaimProblem::Refused(problem) => FirstPoll::Ready(invalid(text, &problem)),
        ClaimProblem::Over => FirstPoll::Over,
    })
}

pub(super) fn invalid(text: &str, problem: &str) -> Error {
    Error::new("invalid_step", format!("`{text}` can't be used: {problem}"))
}

/// The journal has something else under the name: other code has begun the run.
pub(super) fn other_kind<T>(state: &mut State, text: &str, found: &str) -> FirstPoll<T> {
    state.refuse_code(invalid(text, &format!("the journal has {found} of that name")));
    FirstPoll::Over
}

/// The timeout passed before the future ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` took longer than {after}")]
pub struct Elapsed {
    /// The timeout's name in the run.
    pub name: String,
    /// The length of the timeout.
    pub after: Millis,
}

/// A future of the context with a timeout. Whether the future or the timeout ends first is the same in every replay of
/// the run.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Timeout<F> {
    shared: Arc<Shared>,
    text: String,
    after: Result<Millis, DurationError>,
    /// The future and its timeout, until one of them has ended.
    race: Option<(Pin<Box<F>>, Awaited<Sleep>)>,
}

impl<F: Future> Timeout<F> {
    pub(super) fn new(shared: &Arc<Shared>, text: String, after: impl IntoMillis, future: F) -> Self {
        let after = after.into_millis(ZeroRule::Reject);
        let limit = Awaited::new(shared, Sleep::new(text.clone(), End::After(after.clone())));
        Self { shared: Arc::clone(shared), text, after, race: Some((Box::pin(future), limit)) }
    }

    fn fail(&self, error: Error) -> Poll<Result<F::Output, Elapsed>> {
        self.shared.lock().fail(error);
        Poll::Pending
    }
}

impl<F> Unpin for Timeout<F> {}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let after = match &this.after {
            Ok(after) => *after,
            Err(error) => return this.fail(invalid(&this.text, &error.to_string())),
        };
        let Some((future, limit)) = &mut this.race else { return Poll::Pending };
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            this.race = None;
            return Poll::Ready(Ok(output));
        }
        match Pin::new(limit).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => this.fail(error),
            Poll::Ready(Ok(())) => {
                // The step or wait behind the future is ended: its outcome isn't needed any more.
                this.shared.drop_ending(true, this.race.take());
                Poll::Ready(Err(Elapsed { name: this.text.clone(), after }))
            }
        }
    }
}
