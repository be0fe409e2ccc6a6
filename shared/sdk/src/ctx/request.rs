//! Requests: events whose senders wait for an answer.

use std::fmt;
use std::marker::PhantomData;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use tickover_core::execution::journal::ANSWER_PREFIX;
use tickover_core::id::EventId;

use super::event::{EventError, Wait, Within};
use super::operation::Awaited;
use super::{Ctx, Stored};
use crate::error::Result;

/// The requests of a name, of [`Ctx::requests`]. Cheap to clone.
pub struct Requests<Q, A> {
    ctx: Ctx,
    event: String,
    _types: PhantomData<fn() -> (Q, A)>,
}

impl<Q, A> Requests<Q, A> {
    pub(super) fn new(ctx: &Ctx, event: String) -> Self {
        Self { ctx: ctx.clone(), event, _types: PhantomData }
    }
}

impl<Q: DeserializeOwned + Send + 'static, A: Stored> Requests<Q, A> {
    /// Waits for a request and takes the oldest one that isn't taken yet, as [`Ctx::wait_for_event`] takes an event.
    ///
    /// # Errors
    ///
    /// The same. A request whose payload isn't a `Q` is taken, and has no answer: its sender gets `unanswered` when the run
    /// ends.
    pub fn next(&self, within: Within) -> BoxFuture<'static, Result<Request<Q, A>, EventError>> {
        let taken = Awaited::new(&self.ctx.shared, Wait::new(self.event.clone(), within));
        let ctx = self.ctx.clone();
        let request = |(id, body)| Request { ctx, id, body, _answer: PhantomData };
        taken.map(|taken| taken.map(request)).boxed()
    }
}

/// A request that the code has taken. Its sender waits until it is [answered](Self::answer), or until the run has ended.
#[must_use = "its sender waits for an answer"]
pub struct Request<Q, A> {
    ctx: Ctx,
    id: Option<EventId>,
    body: Q,
    _answer: PhantomData<fn(A)>,
}

impl<Q, A> Request<Q, A> {
    /// What was sent.
    pub const fn body(&self) -> &Q {
        &self.body
    }

    /// Its id. `None` if it was sent as an event without one, so that nobody can ask for its answer.
    pub fn id(&self) -> Option<&str> {
        self.id.as_ref().map(EventId::as_str)
    }
}

impl<Q, A: Stored> Request<Q, A> {
    /// Answers it. The answer is a stored value, as of [`Ctx::capture`]: the next write of the turn brings it, and the first
    /// one counts. It need not be given in the order of the requests.
    ///
    /// # Errors
    ///
    /// `invalid_value` if it can't be written as JSON, or is too large. The same in each replay.
    pub fn answer(self, answer: A) -> BoxFuture<'static, Result<()>> {
        let Self { ctx, id, .. } = self;
        match id {
            Some(id) => {
                let stored = ctx.capture(format!("{ANSWER_PREFIX}{id}"), move || answer);
                stored.map(|stored| stored.map(|_| ())).boxed()
            }
            None => std::future::ready(Ok(())).boxed(),
        }
    }
}

impl<Q, A> Clone for Requests<Q, A> {
    fn clone(&self) -> Self {
        Self::new(&self.ctx, self.event.clone())
    }
}

impl<Q, A> fmt::Debug for Requests<Q, A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Requests").field(&self.event).finish()
    }
}

impl<Q, A> fmt::Debug for Request<Q, A> {
    /// Without its body, which may be secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Request").field("id", &self.id).finish_non_exhaustive()
    }
}
