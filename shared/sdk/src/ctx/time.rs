//! Sleeping, and what happens in time or not at all.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tickover_core::duration::{DurationError, Millis, ZeroRule};
use tickover_core::execution::journal::Happened;
use tickover_core::execution::replay::Standing;
use tickover_core::id::StepName;
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;

use super::operation::{Awaited, Look, Operation};
use crate::codec;
use crate::error::Error;
use crate::options::IntoMillis;
use crate::turn::state::{ClaimProblem, Need, Shared, State};

/// When a sleep ends.
pub(super) enum End {
    After(Result<Millis, DurationError>),
    At(Timestamp),
}

/// A sleep.
pub(super) struct Sleep {
    pub(super) text: String,
    pub(super) end: End,
    pub(super) name: Option<StepName>,
}

impl Operation for Sleep {
    type Output = Result<(), Error>;

    fn look(&mut self, state: &mut State, now: Timestamp) -> Look<Self::Output> {
        let name = match (&self.name, &self.end) {
            (Some(name), _) => name.clone(),
            (None, End::After(Err(error))) => {
                return Look::Ready(Err(invalid(&self.text, &error.to_string())));
            }
            (None, End::After(Ok(_)) | End::At(_)) => match claim(state, &self.text) {
                Ok(name) => name,
                Err(look) => return look.map(Err),
            },
        };
        let first = self.name.is_none();
        self.name = Some(name.clone());
        let until = match state.replay.standing(&name) {
            Standing::Until(until) => *until,
            Standing::Fresh => {
                let until = match &self.end {
                    End::After(span) => now.plus(span.as_ref().map_or(Millis::ZERO, |span| *span)),
                    End::At(instant) => *instant,
                };
                state.replay.push(now, Happened::Until { name, until });
                until
            }
            other => return Look::Ready(Err(other_kind(&self.text, other))),
        };
        match until <= now {
            true => Look::Ready(Ok(())),
            false if first => Look::Needs(Need::Instant(Some(until))),
            false => Look::Waits,
        }
    }
}

/// Takes a name for something whose errors are plain ones.
pub(super) fn claim(state: &mut State, text: &str) -> Result<StepName, Look<Error>> {
    state.claim(text).map_err(|problem| match problem {
        ClaimProblem::Refused(problem) => Look::Ready(invalid(text, &problem)),
        ClaimProblem::Over => Look::Waits,
    })
}

pub(super) fn invalid(text: &str, problem: &str) -> Error {
    Error::new("invalid_step", format!("`{text}` can't be used: {problem}"))
}

pub(super) fn other_kind(text: &str, standing: &Standing) -> Error {
    invalid(text, &format!("the run remembers {} of that name", standing.kind()))
}

/// It took too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` took longer than {after}")]
pub struct Elapsed {
    /// The timeout's name in the run.
    pub name: String,
    /// How long there was.
    pub after: Millis,
}

/// A future of the context with a time limit. Whether it was in time is remembered, so that every replay of the run
/// says the same.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Timeout<F> {
    shared: Arc<Shared>,
    text: String,
    after: Result<Millis, DurationError>,
    future: Option<Pin<Box<F>>>,
    /// Has the driver look again when the time is over.
    alarm: Awaited<Alarm>,
    name: Option<StepName>,
}

impl<F: Future> Timeout<F> {
    pub(super) fn new(shared: &Arc<Shared>, text: String, after: impl IntoMillis, future: F) -> Self {
        Self {
            shared: Arc::clone(shared),
            text,
            after: after.into_millis(ZeroRule::Reject),
            future: Some(Box::pin(future)),
            alarm: Awaited::new(shared, Alarm { until: None, set: false }),
            name: None,
        }
    }

    /// Where it stands: in time, too late, or, with its end, undecided. `None` if the run ends for it.
    fn stand(&mut self) -> Option<Stand> {
        let now = self.shared.now();
        let mut state = self.shared.lock();
        let name = match &self.name {
            Some(name) => name.clone(),
            None => match (&self.after, claim(&mut state, &self.text)) {
                (Err(error), _) => {
                    state.fail(invalid(&self.text, &error.to_string()));
                    return None;
                }
                (Ok(_), Ok(name)) => name,
                (Ok(_), Err(Look::Ready(error))) => {
                    state.fail(error);
                    return None;
                }
                (Ok(_), Err(_)) => return None,
            },
        };
        self.name = Some(name.clone());
        match state.replay.standing(&name) {
            Standing::Captured(Payload::Inline(json)) => {
                let in_time = codec::decode(json).unwrap_or(false);
                Some(if in_time { Stand::InTime } else { Stand::TooLate })
            }
            Standing::Until(until) => Some(Stand::Until(*until)),
            Standing::Fresh => {
                let until = now.plus(self.after());
                state.replay.push(now, Happened::Until { name, until });
                Some(Stand::Until(until))
            }
            other => {
                let error = other_kind(&self.text, other);
                state.fail(error);
                None
            }
        }
    }

    fn after(&self) -> Millis {
        self.after.as_ref().map_or(Millis::ZERO, |after| *after)
    }

    fn decide(&self, in_time: bool) {
        let Some(name) = self.name.clone() else { return };
        let Some(json) = Json::parse(in_time.to_string()) else { return };
        let now = self.shared.now();
        let value = Payload::Inline(json);
        self.shared.lock().replay.push(now, Happened::Captured { name, value });
    }

    fn elapsed(&mut self) -> Poll<Result<F::Output, Elapsed>> {
        // What it waited for is ended: nobody will look at it.
        self.shared.drop_ending(true, self.future.take());
        Poll::Ready(Err(Elapsed { name: self.text.clone(), after: self.after() }))
    }
}

/// Where a time limit stands.
enum Stand {
    InTime,
    TooLate,
    Until(Timestamp),
}

impl<F> Unpin for Timeout<F> {}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let until = match this.stand() {
            None => return Poll::Pending,
            Some(Stand::TooLate) => return this.elapsed(),
            Some(Stand::InTime) => None,
            Some(Stand::Until(until)) => Some(until),
        };
        let Some(future) = &mut this.future else { return Poll::Pending };
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            if until.is_some() {
                this.decide(true);
            }
            return Poll::Ready(Ok(output));
        }
        let Some(until) = until else { return Poll::Pending };
        this.alarm.operation.until = Some(until);
        match Pin::new(&mut this.alarm).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                this.decide(false);
                this.elapsed()
            }
        }
    }
}

/// An instant that the driver is to wake for.
struct Alarm {
    until: Option<Timestamp>,
    set: bool,
}

impl Operation for Alarm {
    type Output = ();

    fn look(&mut self, _: &mut State, now: Timestamp) -> Look<()> {
        match self.until.filter(|until| *until > now) {
            None => Look::Ready(()),
            Some(_) if std::mem::replace(&mut self.set, true) => Look::Waits,
            Some(until) => Look::Needs(Need::Instant(Some(until))),
        }
    }
}
