//! An execution's pending events.

use tickover_service::executions::{PendingEvent, PendingEvents};
use tickover_wire::answer::{EventView, EventsAnswer};
use tickover_wire::{Cursor, Verbatim};

/// The view of an event.
pub fn event(event: PendingEvent) -> EventView {
    EventView {
        name: event.name,
        event_id: event.id,
        payload: event.payload.map(Verbatim),
        sent_at: event.sent_at.into(),
    }
}

/// The view of a page of events.
pub fn events(page: PendingEvents) -> EventsAnswer {
    EventsAnswer {
        events: page.events.into_iter().map(event).collect(),
        counts: page.counts,
        cursor: page.next.map(Cursor),
    }
}
