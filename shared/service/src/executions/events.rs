//! Events: sent to an execution, listed, and cleared.

use std::collections::BTreeMap;

use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::execution::command::{Command, SendEvent};
use tickover_core::execution::decision::Reply;
use tickover_core::execution::journal::{Entry, Happened, pending_events};
use tickover_core::id::{BlobId, EventId, EventName, ExecutionId, Incarnation};
use tickover_core::limits;
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;
use tickover_core::trace::TraceContext;

use super::start::hash;
use crate::callbacks::is_reserved;
use crate::contention::Tries;
use crate::drive::CONFLICT_WAIT;
use crate::drive::Known;
use crate::error::ServiceError;
use crate::service::Service;

/// How many events are read at once if all are asked for.
const EVENTS_PAGE: usize = 500;
/// Bytes of payloads after which a page ends: an answer has 6 MiB, and the last payload is added to this size.
const EVENTS_PAGE_BYTES: usize = 4 * 1024 * 1024;

/// An event to be sent.
#[derive(Clone, Debug)]
pub struct SentEvent {
    pub name: EventName,
    /// Of several events with one id, the first counts.
    pub id: Option<EventId>,
    pub payload: Option<Json>,
}

/// The answer to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSent {
    /// Whether an event with its id had been sent before: the first one counts.
    pub duplicate: bool,
    /// Events of all names that wait for the execution now.
    pub pending: u32,
}

/// A page of the events that wait for an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingEvents {
    /// The events, oldest first.
    pub events: Vec<PendingEvent>,
    /// How many of each name wait in total.
    pub counts: BTreeMap<EventName, u32>,
    /// The cursor of the next page; absent at the end.
    pub next: Option<String>,
}

/// An event that waits for an execution to take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingEvent {
    pub name: EventName,
    pub id: Option<EventId>,
    pub payload: Option<Json>,
    pub sent_at: Timestamp,
}

/// The key of the item that says that an execution has the event with this id.
pub(crate) fn blob_of_event(of: &ExecutionId, incarnation: Incarnation, id: &EventId) -> BlobId {
    BlobId::from_bytes(hash(&[
        b"event",
        of.as_str().as_bytes(),
        incarnation.as_bytes(),
        id.as_str().as_bytes(),
    ]))
}

impl Service {
    /// Sends an event. It waits until the execution takes it, first in, first out among the events of its name.
    pub async fn send_event(
        &self,
        id: &ExecutionId,
        name: EventName,
        event_id: Option<EventId>,
        payload: Option<Json>,
    ) -> Result<EventSent, ServiceError> {
        self.send_event_traced(id, SentEvent { name, id: event_id, payload }, None).await
    }

    /// A random id for an event whose sender wants an answer and gives none.
    #[expect(clippy::expect_used, clippy::missing_panics_doc, reason = "hexadecimal digits are in every id")]
    pub fn new_event_id(&self) -> EventId {
        EventId::parse(self.new_task_id().as_str()).expect("hexadecimal is a name")
    }

    /// The same for an event that belongs to a trace. An execution that has no trace yet gets this one.
    pub async fn send_event_traced(
        &self,
        id: &ExecutionId,
        event: SentEvent,
        trace: Option<TraceContext>,
    ) -> Result<EventSent, ServiceError> {
        self.check_event(&event)?;
        let (execution, duplicate) = self.offer_event(id, event, None, trace).await?;
        Ok(EventSent { duplicate, pending: execution.pending_events })
    }

    /// The same for an event that is checked. Returns the execution, and whether it had an event with this id before.
    /// `kept` is the payload if it is stored already.
    pub(super) async fn offer_event(
        &self,
        id: &ExecutionId,
        event: SentEvent,
        mut kept: Option<Payload>,
        trace: Option<TraceContext>,
    ) -> Result<(Execution, bool), ServiceError> {
        let trace = self.carried(trace);
        let mut tries = Tries::default();
        loop {
            let Some(execution) = self.load_execution(id).await? else {
                return Err(Reject::NoExecution.into());
            };
            let known = self.is_known(&execution, event.id.as_ref()).await?;
            if execution.closed().is_some() {
                let is_known = |id| execution.journal.iter().any(|entry| entry.is_event(id));
                let is_repeated = known || event.id.as_ref().is_some_and(is_known);
                let reject = Reject::ExecutionClosed { status: execution.status() };
                return if is_repeated { Ok((execution, true)) } else { Err(reject.into()) };
            }
            if let (Some(json), None, false) = (&event.payload, &kept, known) {
                kept = Some(self.store_payload(json.clone()).await?);
            }
            let seen = execution.stage();
            let (name, event_id, payload) = (event.name.clone(), event.id.clone(), kept.clone());
            let offer = SendEvent { name, id: event_id, payload, known, seen, trace, bound: None };
            let record = Known::Record(Box::new(execution));
            let decision = self.drive_execution(id, record, &Command::SendEvent(offer)).await?;
            let (execution, reply) = decision.outcome?;
            if let Reply::EventSent { duplicate } = reply {
                return Ok((execution, duplicate));
            }
            // More events have left the record after this call had looked for this one.
            self.once_more_soon(&mut tries, CONFLICT_WAIT).await?;
        }
    }

    pub(super) fn check_event(&self, event: &SentEvent) -> Result<(), Reject> {
        if is_reserved(&event.name) {
            return Err(Reject::field("name", "is the name of a callback: report with its token"));
        }
        self.check_payload(event.payload.as_ref())
    }

    pub(crate) fn check_payload(&self, payload: Option<&Json>) -> Result<(), Reject> {
        limits::check("payload_bytes", payload.map_or(0, Json::len), self.limits.payload_bytes)?;
        limits::check("json_depth", payload.map_or(0, Json::depth), limits::JSON_DEPTH_MAX)
    }

    /// Whether an event with this id was sent that the record no longer shows: in a segment, or in an earlier run.
    pub(crate) async fn is_known(
        &self,
        execution: &Execution,
        event_id: Option<&EventId>,
    ) -> Result<bool, ServiceError> {
        let Some(event_id) = event_id.filter(|_| execution.stage() != (1, 0)) else { return Ok(false) };
        let at = blob_of_event(&execution.id, execution.incarnation, event_id);
        Ok(self.with_retries(|| self.ports.store.blob(&at)).await?.is_some())
    }

    /// All events that wait for an execution, oldest first.
    pub async fn events(&self, id: &ExecutionId) -> Result<Vec<PendingEvent>, ServiceError> {
        let mut page = self.events_page(id, EVENTS_PAGE, None).await?;
        let mut events = page.events;
        while let Some(cursor) = page.next {
            page = self.events_page(id, EVENTS_PAGE, Some(&cursor)).await?;
            events.append(&mut page.events);
        }
        Ok(events)
    }

    /// A page of the waiting events: at most `limit`, and no more than an answer may contain.
    pub async fn events_page(
        &self,
        id: &ExecutionId,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<PendingEvents, ServiceError> {
        let Some(execution) = self.load_execution(id).await? else { return Err(Reject::NoExecution.into()) };
        let from = cursor.map_or(Ok(0), |cursor| place_of(cursor, execution.run))?;
        let journal = self.journal_of(&execution).await?;
        let mut page = PendingEvents { events: vec![], counts: BTreeMap::new(), next: None };
        let mut pending = pending_events(&journal).into_iter().peekable();
        let mut bytes = 0;
        // An event's position in its run's journal stays the same, whatever is taken or added meanwhile.
        for (place, entry) in journal.iter().enumerate() {
            if pending.next_if(|pending| std::ptr::eq(*pending, entry)).is_none() {
                continue;
            }
            let Happened::Event { name, id, payload } = &entry.what else { continue };
            *page.counts.entry(name.clone()).or_default() += 1;
            if place < from || page.next.is_some() {
                continue;
            }
            if page.events.len() >= limit || bytes >= EVENTS_PAGE_BYTES {
                page.next = Some(format!("{}.{place}", execution.run));
                continue;
            }
            let payload = self.payload(payload.as_ref()).await?;
            bytes += payload.as_ref().map_or(0, Json::len);
            page.events.push(PendingEvent { name: name.clone(), id: id.clone(), payload, sent_at: entry.at });
        }
        Ok(page)
    }

    /// Deletes the waiting events of a name. Returns how many there were.
    pub async fn clear_events(&self, id: &ExecutionId, name: EventName) -> Result<u32, ServiceError> {
        let mut tries = Tries::default();
        loop {
            let Some(execution) = self.load_execution(id).await? else {
                return Err(Reject::NoExecution.into());
            };
            let journal = self.journal_of(&execution).await?;
            let is_of =
                |entry: &&&Entry| matches!(&entry.what, Happened::Event { name: of, .. } if *of == name);
            let waiting = pending_events(&journal).iter().filter(is_of).count();
            let count = u32::try_from(waiting).unwrap_or(u32::MAX);
            let seen_version = execution.version;
            let command = Command::ClearEvents { name: name.clone(), count, seen_version };
            let record = Known::Record(Box::new(execution));
            let (_, reply) = self.drive_execution(id, record, &command).await?.outcome?;
            if count == 0 || reply == Reply::EventsCleared(count) {
                return Ok(count);
            }
            // Other writers changed the journal meanwhile, so the events are counted again.
            self.once_more_soon(&mut tries, CONFLICT_WAIT).await?;
        }
    }
}

/// The position in a run's journal at which a page starts. Another run has other positions.
pub(super) fn place_of(cursor: &str, run: u32) -> Result<usize, Reject> {
    let place = cursor.split_once('.').filter(|(of, _)| of.parse() == Ok(run));
    place.and_then(|(_, place)| place.parse().ok()).ok_or_else(|| {
        Reject::field("cursor", "expected the cursor of an earlier answer about this execution's run")
    })
}
