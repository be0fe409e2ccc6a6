//! Sends events.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use serde::Serialize;
use tickover_core::id::{EventId, EventName, ExecutionId};
use tickover_wire::answer::SendEventAnswer as EventSent;
use tickover_wire::request::EventRequest;

use super::request::payload;
use super::{Client, ClientError};

/// An event that is sent when it is awaited.
#[must_use = "nothing is sent before it is awaited"]
#[derive(Debug)]
pub struct SendEvent {
    client: Client,
    execution: ExecutionId,
    event: Result<(EventName, EventRequest), ClientError>,
}

impl SendEvent {
    pub(super) fn new(client: Client, execution: ExecutionId, name: String, value: &impl Serialize) -> Self {
        let name = EventName::parse(name).map_err(|problem| ClientError::invalid("event", problem));
        let event = name.and_then(|name| {
            let payload = Some(payload("payload", value)?);
            Ok((name, EventRequest { payload, ..EventRequest::default() }))
        });
        Self { client, execution, event }
    }

    /// Sets an id. An event with this id counts once for the execution, over all its runs and after its end.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        if let Ok((_, event)) = &mut self.event {
            match EventId::parse(id) {
                Ok(id) => event.event_id = Some(id),
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
            let (name, request) = event?;
            client.api.send_event(&execution, &name, &request).await
        })
    }
}
