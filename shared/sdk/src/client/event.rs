//! Events as they are offered, and as they wait.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::id::{EventId, EventName, ExecutionId};
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;

use super::calls::NewEvent;
use super::outcome::null;
use super::request::written;
use super::{Client, ClientError};
use crate::codec;

/// An event that is sent when it is awaited.
#[must_use = "nothing is offered before it is awaited"]
#[derive(Debug)]
pub struct SendEvent {
    client: Client,
    execution: ExecutionId,
    event: Result<NewEvent, ClientError>,
}

/// How an event was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSent {
    /// Whether one with its id had been offered before: the first one stands.
    pub duplicate: bool,
    /// Events of all names that wait for the execution now.
    pub pending: u32,
}

/// An event that waits for an execution to take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Its own id.
    pub id: Option<String>,
    /// What came with it, as JSON.
    pub payload: Option<Json>,
    /// When it was offered.
    pub offered_at: Timestamp,
}

impl SendEvent {
    pub(super) fn new(
        client: Client,
        execution: ExecutionId,
        name: String,
        payload: &impl Serialize,
    ) -> Self {
        let event = EventName::parse(name)
            .map_err(|problem| ClientError::invalid("event", problem))
            .and_then(|name| Ok(NewEvent { name, id: None, payload: Some(written("payload", payload)?) }));
        Self { client, execution, event }
    }

    /// With an id of its own: offering it twice is offering it once.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        if let Ok(event) = &mut self.event {
            match EventId::parse(id) {
                Ok(id) => event.id = Some(id),
                Err(problem) => self.event = Err(ClientError::invalid("event_id", problem)),
            }
        }
        self
    }
}

impl IntoFuture for SendEvent {
    type Output = Result<EventSent, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { client, execution, event } = self;
            client.calls.send_event(&execution, event?).await
        })
    }
}

impl Event {
    /// What came with it, read as a type. Nothing is read as `null`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        let payload = self.payload.clone().unwrap_or_else(null);
        codec::decode(&payload).map_err(|error| ClientError::Unreadable { reason: error.to_string() })
    }
}
