//! Sends events, and waits for the answers to requests.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::id::{EventId, EventName, ExecutionId};
use tickover_core::limits::WAIT_MAX;
use tickover_wire::answer::SendEventAnswer as EventSent;
use tickover_wire::request::EventRequest;

use super::request::{payload, random_id};
use super::retries::Retries;
use super::{Client, ClientError};
use crate::codec;

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

/// A request that is sent when it is awaited. Then it waits for the answer, without a limit.
#[must_use = "nothing is sent before it is awaited"]
#[derive(Debug)]
pub struct SendRequest<A> {
    event: SendEvent,
    _answer: PhantomData<fn() -> A>,
}

impl<A> SendRequest<A> {
    pub(super) const fn new(event: SendEvent) -> Self {
        Self { event, _answer: PhantomData }
    }

    /// Sets its id, which is random by default. With an id, the call may be repeated, also by another process or after the
    /// end of the execution: the request is there once, and each call gets its answer.
    pub fn id(self, id: impl Into<String>) -> Self {
        Self { event: self.event.id(id), ..self }
    }
}

impl<A: DeserializeOwned + 'static> IntoFuture for SendRequest<A> {
    /// The answer. [`ClientError::Refused`] with the code `unanswered` if there will be none: the run that has taken the
    /// request has ended, or it was cleared. With the code `already_terminal` if the execution had ended before.
    type Output = Result<A, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let SendEvent { client, execution, event } = self.event;
            let (name, mut request) = event?;
            if request.event_id.is_none() {
                let id = EventId::parse(random_id())
                    .map_err(|problem| ClientError::invalid("event_id", problem))?;
                request.event_id = Some(id);
            }
            let mut retries = Retries::default();
            loop {
                match client.api.request(&execution, &name, &request, WAIT_MAX).await {
                    Ok(EventSent { answer: Some(answer), .. }) => {
                        return codec::decode(&answer)
                            .map_err(|problem| ClientError::of_another_type(name.as_str(), problem));
                    }
                    Ok(_) => retries = Retries::default(),
                    Err(error) => retries.wait_or_fail(error, &client).await?,
                }
            }
        })
    }
}
