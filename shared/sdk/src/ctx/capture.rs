//! Values that are computed once and stay the same in every replay of the run.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::execution::journal::Happened;
use tickover_core::execution::replay::NameState;
use tickover_core::id::StepName;
use tickover_core::payload::{CAPTURED_BYTES, Json, Payload};
use tickover_core::time::Timestamp;

use super::operation::{FirstPoll, Operation};
use super::step::read;
use super::time::{claim, invalid, other_kind};
use crate::codec;
use crate::error::Error;
use crate::turn::need::Need;
use crate::turn::state::State;

/// A captured value: it is read from the journal, or computed if the journal has none.
pub(super) struct Remembered<T> {
    text: String,
    name: Option<StepName>,
    value: Option<Json>,
    _value: PhantomData<fn() -> T>,
}

/// What the journal has under a name.
pub(super) enum Found {
    /// There is a value, or it is being stored.
    Known,
    /// There is no value: the closure has to be called.
    Missing,
    /// The name can't be used.
    Refused(Error),
    /// The run ends.
    Over,
}

impl<T> Remembered<T> {
    pub(super) const fn new(text: String) -> Self {
        Self { text, name: None, value: None, _value: PhantomData }
    }

    /// Claims the name, and checks whether the journal has a value for it.
    pub(super) fn find(&mut self, state: &mut State) -> Found {
        if self.name.is_some() {
            return Found::Known;
        }
        let name = match claim(state, &self.text) {
            Ok(name) => name,
            Err(FirstPoll::Ready(error)) => return Found::Refused(error),
            Err(FirstPoll::Needs(_) | FirstPoll::Over) => return Found::Over,
        };
        let found = match state.replay.name_state(&name) {
            NameState::Captured(_) => Found::Known,
            NameState::Fresh => Found::Missing,
            other => {
                let found = other.kind();
                let _: FirstPoll<()> = other_kind(state, &self.text, found);
                Found::Over
            }
        };
        self.name = Some(name);
        found
    }
}

impl<T: Serialize + DeserializeOwned> Remembered<T> {
    /// Sets the value that the closure returned.
    pub(super) fn take(&mut self, value: &T) -> Result<(), Error> {
        let json = codec::encode_stored(value).map_err(|error| invalid(&self.text, &error.to_string()))?;
        self.value = Some(json);
        Ok(())
    }
}

impl<T: DeserializeOwned> Operation for Remembered<T> {
    type Output = Result<T, Error>;

    fn begin(&mut self, state: &mut State, now: Timestamp) -> FirstPoll<Self::Output> {
        let Some(name) = self.name.clone() else { return FirstPoll::Over };
        match self.value.take() {
            Some(json) if json.len() > CAPTURED_BYTES => {
                return FirstPoll::Needs(Need::Keep { name, value: Some(json) });
            }
            Some(json) => {
                let value = Payload::Inline(json);
                state.replay.push(now, Happened::Captured { name: name.clone(), value });
            }
            None => {}
        }
        match state.replay.name_state(&name) {
            NameState::Captured(value) if value.is_at_once() => match self.end(state) {
                Some(value) => FirstPoll::Ready(value),
                None => FirstPoll::Over,
            },
            NameState::Captured(_) => FirstPoll::Needs(Need::Outcome { name }),
            other => {
                let found = other.kind();
                other_kind(state, &self.text, found)
            }
        }
    }

    fn end(&mut self, state: &mut State) -> Option<Self::Output> {
        match state.replay.name_state(self.name.as_ref()?).clone() {
            NameState::Captured(payload) => read(state, &self.text, &payload).map(Ok),
            other => {
                let problem = format!("the journal has {} of that name", other.kind());
                Some(Err(invalid(&self.text, &problem)))
            }
        }
    }
}
