//! Events: waited for, looked at, counted, thrown away.
//!
//! What the code learns about events is remembered, since later replays of the run know of later events. Waits and
//! looks need no names of their own: they are numbered by their event.

use serde::de::DeserializeOwned;
use std::any::type_name;
use std::marker::PhantomData;

use tickover_core::duration::{DurationError, Millis, ZeroRule};
use tickover_core::execution::journal::Happened;
use tickover_core::execution::replay::{Standing, Taken};
use tickover_core::id::{EventName, StepName};
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;

use super::operation::{Look, Operation};
use super::step::{nothing, read};
use super::time::{claim, invalid, other_kind};
use crate::codec;
use crate::error::Error;
use crate::options::IntoMillis;
use crate::turn::state::{Need, State};

/// How long an event is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Within(Option<Result<Millis, DurationError>>);

/// At most so long: `within("7d")`.
pub fn within(span: impl IntoMillis) -> Within {
    Within(Some(span.into_millis(ZeroRule::Allow)))
}

/// Until the event comes, the execution is cancelled, or its deadline passes.
pub const fn forever() -> Within {
    Within(None)
}

/// Why a wait brought no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// None came in time.
    #[error("no event `{event}` came within {waited}")]
    Timeout {
        /// The event's name.
        event: String,
        /// How long it was waited for.
        waited: Millis,
    },
    /// One came that isn't what the code expects. It is taken: the next wait sees the next one.
    #[error("event `{event}` doesn't fit `{type_name}`: {problem}")]
    Unreadable {
        /// The event's name.
        event: String,
        /// The type that the code expects.
        type_name: String,
        /// Where and why it doesn't fit.
        problem: String,
    },
    /// It can't be waited for as it is written.
    #[error("event {event:?} can't be waited for: {problem}")]
    Invalid {
        /// The event's name.
        event: String,
        /// What is wrong.
        problem: String,
    },
}

impl EventError {
    /// Whether none came in time.
    pub const fn is_timeout(&self) -> bool {
        match self {
            Self::Timeout { .. } => true,
            Self::Unreadable { .. } | Self::Invalid { .. } => false,
        }
    }
}

/// The name of the use of an event with this number.
fn numbered(state: &mut State, what: &str, event: &str) -> String {
    let text = format!("{what}:{event}");
    match state.count(&text) {
        0 => text,
        number => format!("{text}[{number}]"),
    }
}

/// A wait for an event.
pub(super) struct Wait<T> {
    event: String,
    within: Within,
    name: Option<(StepName, EventName)>,
    set: bool,
    _payload: PhantomData<fn() -> T>,
}

impl<T> Wait<T> {
    pub(super) fn new(event: String, within: Within) -> Self {
        Self { event, within, name: None, set: false, _payload: PhantomData }
    }

    fn invalid(&self, problem: impl Into<String>) -> EventError {
        EventError::Invalid { event: self.event.clone(), problem: problem.into() }
    }

    fn names(&mut self, state: &mut State) -> Result<(StepName, EventName), Look<EventError>> {
        if let Some(names) = &self.name {
            return Ok(names.clone());
        }
        let event = EventName::parse(self.event.as_str())
            .map_err(|error| Look::Ready(self.invalid(format!("the name {error}"))))?;
        if let Some(Err(error)) = &self.within.0 {
            return Err(Look::Ready(self.invalid(error.to_string())));
        }
        let text = numbered(state, "event", &self.event);
        let name = claim(state, &text).map_err(|look| look.map(|error| self.invalid(error.message())))?;
        self.name = Some((name.clone(), event.clone()));
        Ok((name, event))
    }

    fn waited(&self) -> Millis {
        match &self.within.0 {
            Some(Ok(span)) => *span,
            Some(Err(_)) | None => Millis::ZERO,
        }
    }
}

impl<T: DeserializeOwned> Operation for Wait<T> {
    type Output = Result<T, EventError>;

    fn look(&mut self, state: &mut State, now: Timestamp) -> Look<Self::Output> {
        let (name, event) = match self.names(state) {
            Ok(names) => names,
            Err(look) => return look.map(Err),
        };
        let until = match state.replay.standing(&name) {
            Standing::Waited(taken) => {
                let taken = taken.clone();
                return self.read(state, taken);
            }
            Standing::Until(until) => Some(*until),
            Standing::Fresh => None,
            other => {
                let error = other_kind(name.as_str(), other);
                return Look::Ready(Err(self.invalid(error.message())));
            }
        };
        let until = until.or_else(|| Some(now.plus(self.within.0.as_ref()?.as_ref().ok().copied()?)));
        // An event that was offered too late is another wait's.
        let in_time = |offered_at: Timestamp| until.is_none_or(|until| offered_at < until);
        if state.replay.next_event(&event).is_some_and(|event| in_time(event.offered_at)) {
            state.replay.push(now, Happened::Waited { name: name.clone(), event: Some(event) });
            let Standing::Waited(taken) = state.replay.standing(&name).clone() else { return Look::Waits };
            return self.read(state, taken);
        }
        if until.is_some_and(|until| until <= now) {
            state.replay.push(now, Happened::Waited { name, event: None });
            return self.read(state, Taken::Nothing);
        }
        if std::mem::replace(&mut self.set, true) {
            return Look::Waits;
        }
        if let (Some(until), Standing::Fresh) = (until, state.replay.standing(&name)) {
            state.replay.push(now, Happened::Until { name, until });
        }
        Look::Needs(Need::Instant(until))
    }
}

impl<T: DeserializeOwned> Wait<T> {
    /// What the event that was taken holds, if one was.
    fn read(&self, state: &State, taken: Taken) -> Look<Result<T, EventError>> {
        let Taken::Event(payload) = taken else {
            return Look::Ready(Err(EventError::Timeout {
                event: self.event.clone(),
                waited: self.waited(),
            }));
        };
        let payload = payload.unwrap_or_else(nothing);
        let Some(text) = state.text(&payload) else { return Look::Needs(Need::Text(payload)) };
        Look::Ready(codec::decode(&text).map_err(|error| EventError::Unreadable {
            event: self.event.clone(),
            type_name: type_name::<T>().to_owned(),
            problem: error.to_string(),
        }))
    }
}

/// What is asked about the events of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Count,
    Drain,
}

/// How many events there are, or were before they were thrown away.
pub(super) struct Counted {
    pub(super) event: String,
    pub(super) question: Question,
}

impl Operation for Counted {
    type Output = Result<usize, Error>;

    fn look(&mut self, state: &mut State, now: Timestamp) -> Look<Self::Output> {
        let event = match EventName::parse(self.event.as_str()) {
            Ok(event) => event,
            Err(error) => return Look::Ready(Err(invalid(&self.event, &format!("the name {error}")))),
        };
        let what = match self.question {
            Question::Count => "count",
            Question::Drain => "drain",
        };
        let text = numbered(state, what, &self.event);
        let name = match claim(state, &text) {
            Ok(name) => name,
            Err(look) => return look.map(Err),
        };
        let payload = match state.replay.standing(&name) {
            Standing::Captured(payload) => payload.clone(),
            Standing::Fresh => {
                let count = state.replay.event_count(&event);
                if let (Question::Drain, Ok(count @ 1..)) = (self.question, u32::try_from(count)) {
                    state.replay.push(now, Happened::Drained { name: event, count });
                }
                let Some(json) = Json::parse(count.to_string()) else { return Look::Waits };
                let value = Payload::Inline(json);
                state.replay.push(now, Happened::Captured { name: name.clone(), value: value.clone() });
                value
            }
            other => return Look::Ready(Err(other_kind(&text, other))),
        };
        read(state, name.as_str(), &payload).map(Ok)
    }
}

/// A look at the oldest event of a name, which stays.
pub(super) struct Peek<T> {
    pub(super) event: String,
    pub(super) name: Option<(StepName, EventName)>,
    pub(super) _payload: PhantomData<fn() -> T>,
}

impl<T> Peek<T> {
    fn names(&mut self, state: &mut State) -> Result<(StepName, EventName), Look<Error>> {
        if let Some(names) = &self.name {
            return Ok(names.clone());
        }
        let event = EventName::parse(self.event.as_str())
            .map_err(|error| Look::Ready(invalid(&self.event, &format!("the name {error}"))))?;
        let text = numbered(state, "peek", &self.event);
        let name = claim(state, &text)?;
        self.name = Some((name.clone(), event.clone()));
        Ok((name, event))
    }
}

impl<T: DeserializeOwned> Operation for Peek<T> {
    type Output = Result<Option<T>, Error>;

    fn look(&mut self, state: &mut State, now: Timestamp) -> Look<Self::Output> {
        let (name, event) = match self.names(state) {
            Ok(names) => names,
            Err(look) => return look.map(Err),
        };
        let seen = match state.replay.standing(&name) {
            Standing::Captured(payload) => payload.clone(),
            // That there was none is remembered as a wait that brought nothing: a payload can be anything.
            Standing::Waited(_) => return Look::Ready(Ok(None)),
            Standing::Fresh => {
                let Some(seen) = state.replay.next_event(&event) else {
                    state.replay.push(now, Happened::Waited { name, event: None });
                    return Look::Ready(Ok(None));
                };
                let value = seen.payload.clone().unwrap_or_else(nothing);
                state.replay.push(now, Happened::Captured { name: name.clone(), value: value.clone() });
                value
            }
            other => return Look::Ready(Err(other_kind(name.as_str(), other))),
        };
        let Some(text) = state.text(&seen) else { return Look::Needs(Need::Text(seen)) };
        let problem = |error: codec::CodecError| {
            let text = format!("event `{}` doesn't fit `{}`: {error}", self.event, type_name::<T>());
            Error::new("invalid_event", text)
        };
        Look::Ready(codec::decode(&text).map(Some).map_err(problem))
    }
}
