//! Events: wait for them, peek at them, count them, clear them.
//!
//! Each answer that the code gets about events is stored in the journal, because a later replay would see other events.
//! Waits, peeks and counts have no names of their own: they are named after their event and numbered.

use serde::de::DeserializeOwned;
use std::any::type_name;
use std::marker::PhantomData;

use tickover_core::duration::{DurationError, Millis, ZeroRule};
use tickover_core::execution::journal::{EVENT_PREFIX, Happened};
use tickover_core::execution::replay::{NameState, WaitOutcome};
use tickover_core::id::{EventId, EventName, StepName};
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;

use super::operation::{FirstPoll, Operation};
use super::step::{null_payload, read, text_of};
use super::time::{claim, invalid, other_kind};
use crate::codec;
use crate::error::Error;
use crate::options::IntoMillis;
use crate::turn::need::Need;
use crate::turn::state::State;

/// How long to wait for an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Within(Option<Result<Millis, DurationError>>);

impl Within {
    /// How long, if it isn't for ever.
    pub(super) fn length(self) -> Option<Result<Millis, DurationError>> {
        self.0
    }
}

/// Waits at most this long: `within("7d")`.
pub fn within(span: impl IntoMillis) -> Within {
    Within(Some(span.into_millis(ZeroRule::Allow)))
}

/// Waits until the event arrives, the execution is cancelled, or its deadline passes.
pub const fn forever() -> Within {
    Within(None)
}

/// Why a wait returned no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// No event arrived in time.
    #[error("no event `{event}` came within {waited}")]
    Timeout {
        /// The event's name.
        event: String,
        /// How long the wait was.
        waited: Millis,
    },
    /// An event arrived whose payload doesn't fit the type that the code expects. It is taken: the next wait returns
    /// the next event.
    #[error("event `{event}` doesn't fit `{type_name}`: {problem}")]
    Unreadable {
        /// The event's name.
        event: String,
        /// The type that the code expects.
        type_name: String,
        /// The field that doesn't fit, and why.
        problem: String,
    },
    /// The name or the duration of the wait isn't valid.
    #[error("event {event:?} can't be waited for: {problem}")]
    Invalid {
        /// The event's name.
        event: String,
        /// What is wrong.
        problem: String,
    },
}

impl EventError {
    /// Whether no event arrived in time.
    pub const fn is_timeout(&self) -> bool {
        match self {
            Self::Timeout { .. } => true,
            Self::Unreadable { .. } | Self::Invalid { .. } => false,
        }
    }
}

/// The name of the next operation of this kind on an event: numbered from the second one on.
fn next_event_name(state: &mut State, what: &str, event: &str) -> String {
    let text = format!("{what}{event}");
    match state.count(&text) {
        0 => text,
        number => format!("{text}[{number}]"),
    }
}

/// A wait for an event.
pub(super) struct Wait<T> {
    event: String,
    within: Within,
    name: Option<StepName>,
    _payload: PhantomData<fn() -> T>,
}

impl<T> Wait<T> {
    pub(super) fn new(event: String, within: Within) -> Self {
        Self { event, within, name: None, _payload: PhantomData }
    }

    fn invalid(&self, problem: impl Into<String>) -> EventError {
        EventError::Invalid { event: self.event.clone(), problem: problem.into() }
    }

    fn names(&self, state: &mut State) -> Result<(StepName, EventName), FirstPoll<EventError>> {
        let event = EventName::parse(self.event.as_str())
            .map_err(|error| FirstPoll::Ready(self.invalid(format!("the name {error}"))))?;
        if let Some(Err(error)) = &self.within.0 {
            return Err(FirstPoll::Ready(self.invalid(error.to_string())));
        }
        let text = next_event_name(state, EVENT_PREFIX, &self.event);
        let name = claim(state, &text).map_err(|poll| poll.map(|error| self.invalid(error.message())))?;
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
    /// The event's id, if it has one, and its payload.
    type Output = Result<(Option<EventId>, T), EventError>;

    fn begin(&mut self, state: &mut State, now: Timestamp) -> FirstPoll<Self::Output> {
        let (name, event) = match self.names(state) {
            Ok(names) => names,
            Err(poll) => return poll.map(Err),
        };
        self.name = Some(name.clone());
        let until = match state.replay.name_state(&name) {
            NameState::Waited(_) => return FirstPoll::Needs(Need::Outcome { name }),
            NameState::Until(until) => Some(*until),
            NameState::Fresh => self.within.0.as_ref().and_then(|span| Some(now.plus(*span.as_ref().ok()?))),
            other => {
                let found = other.kind();
                return other_kind(state, name.as_str(), found);
            }
        };
        FirstPoll::Needs(Need::Event { name, event, until })
    }

    fn end(&mut self, state: &mut State) -> Option<Self::Output> {
        let NameState::Waited(WaitOutcome::Event { id, payload }) =
            state.replay.name_state(self.name.as_ref()?)
        else {
            let (event, waited) = (self.event.clone(), self.waited());
            return Some(Err(EventError::Timeout { event, waited }));
        };
        let (id, payload) = (id.clone(), payload.clone().unwrap_or_else(null_payload));
        let text = text_of::<T>(state, &self.event, &payload)?;
        Some(codec::decode(&text).map(|payload| (id, payload)).map_err(|error| EventError::Unreadable {
            event: self.event.clone(),
            type_name: type_name::<T>().to_owned(),
            problem: error.to_string(),
        }))
    }
}

/// An operation on all events of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventQuery {
    Count,
    ClearEvents,
}

/// The number of events of a name; for [`EventQuery::ClearEvents`], the number before they were deleted.
pub(super) struct CountEvents {
    pub(super) event: String,
    pub(super) query: EventQuery,
}

impl Operation for CountEvents {
    type Output = Result<usize, Error>;

    fn begin(&mut self, state: &mut State, now: Timestamp) -> FirstPoll<Self::Output> {
        let event = match EventName::parse(self.event.as_str()) {
            Ok(event) => event,
            Err(error) => return FirstPoll::Ready(Err(invalid(&self.event, &format!("the name {error}")))),
        };
        let what = match self.query {
            EventQuery::Count => "count:",
            EventQuery::ClearEvents => "drain:", // Part of names that are stored: it must not change.
        };
        let text = next_event_name(state, what, &self.event);
        let name = match claim(state, &text) {
            Ok(name) => name,
            Err(poll) => return poll.map(Err),
        };
        let payload = match state.replay.name_state(&name) {
            NameState::Captured(payload) => payload.clone(),
            NameState::Fresh => {
                let count = state.replay.event_count(&event);
                if let (EventQuery::ClearEvents, Ok(count @ 1..)) = (self.query, u32::try_from(count)) {
                    state.replay.push(now, Happened::EventsCleared { name: event, count });
                }
                let Some(json) = Json::parse(count.to_string()) else { return FirstPoll::Over };
                let value = Payload::Inline(json);
                state.replay.push(now, Happened::Captured { name: name.clone(), value: value.clone() });
                value
            }
            other => {
                let found = other.kind();
                return other_kind(state, &text, found);
            }
        };
        read(state, name.as_str(), &payload).map_or(FirstPoll::Over, |count| FirstPoll::Ready(Ok(count)))
    }

    /// The first poll has returned the result.
    fn end(&mut self, _: &mut State) -> Option<Self::Output> {
        None
    }
}

/// Reads the oldest event of a name and leaves it in place.
pub(super) struct Peek<T> {
    event: String,
    name: Option<StepName>,
    _payload: PhantomData<fn() -> T>,
}

impl<T> Peek<T> {
    pub(super) const fn new(event: String) -> Self {
        Self { event, name: None, _payload: PhantomData }
    }

    fn names(&self, state: &mut State) -> Result<(StepName, EventName), FirstPoll<Error>> {
        let event = EventName::parse(self.event.as_str())
            .map_err(|error| FirstPoll::Ready(invalid(&self.event, &format!("the name {error}"))))?;
        let text = next_event_name(state, "peek:", &self.event);
        let name = claim(state, &text)?;
        Ok((name, event))
    }
}

impl<T: DeserializeOwned> Operation for Peek<T> {
    type Output = Result<Option<T>, Error>;

    fn begin(&mut self, state: &mut State, now: Timestamp) -> FirstPoll<Self::Output> {
        let (name, event) = match self.names(state) {
            Ok(names) => names,
            Err(poll) => return poll.map(Err),
        };
        self.name = Some(name.clone());
        let seen = match state.replay.name_state(&name) {
            NameState::Captured(payload) => payload.clone(),
            // A peek that found no event is stored as a wait without an event, because a captured payload can have any
            // value.
            NameState::Waited(_) => return FirstPoll::Ready(Ok(None)),
            NameState::Fresh => {
                let Some(seen) = state.replay.next_event(&event) else {
                    state.replay.push(now, Happened::Waited { name, event: None });
                    return FirstPoll::Ready(Ok(None));
                };
                let value = seen.payload.clone().unwrap_or_else(null_payload);
                state.replay.push(now, Happened::Captured { name: name.clone(), value: value.clone() });
                value
            }
            other => {
                let found = other.kind();
                return other_kind(state, name.as_str(), found);
            }
        };
        if !seen.is_at_once() {
            return FirstPoll::Needs(Need::Outcome { name });
        }
        self.end(state).map_or(FirstPoll::Over, FirstPoll::Ready)
    }

    fn end(&mut self, state: &mut State) -> Option<Self::Output> {
        let NameState::Captured(seen) = state.replay.name_state(self.name.as_ref()?).clone() else {
            return Some(Ok(None));
        };
        let text = text_of::<T>(state, &self.event, &seen)?;
        let problem = |error: codec::CodecError| {
            let text = format!("event `{}` doesn't fit `{}`: {error}", self.event, type_name::<T>());
            Error::new("invalid_event", text)
        };
        Some(codec::decode(&text).map(Some).map_err(problem))
    }
}
