//! The objects that answers about executions consist of.

use std::collections::BTreeMap;

use serde::Serialize;
use tickover_service::executions::{PendingEvent, PendingEvents};
use utoipa::ToSchema;

use super::{ExecutionView, TimelineEntryView};
use crate::view::verbatim::Verbatim;

/// An execution.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ExecutionAnswer {
    /// The execution as it stands now.
    pub execution: ExecutionView,
}

/// A page of executions.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ExecutionsAnswer {
    /// The executions, latest first. A page may have fewer than asked for, even none, and still not be the last.
    pub executions: Vec<ExecutionView>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cursor: Option<String>,
}

/// What became of a cancellation.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ExecutionCancelAnswer {
    /// The execution as it stands now.
    pub execution: ExecutionView,
    /// `cancelled`; `requested`, where its code is stopped at its next step; or `already_finished`.
    #[schema(value_type = String)]
    pub outcome: &'static str,
}

/// What became of a pause or its end.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ExecutionChangeAnswer {
    /// The execution as it stands now.
    pub execution: ExecutionView,
    /// Whether this call changed it: `false` where it was like that before.
    pub changed: bool,
}

/// How an event was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SendEventAnswer {
    /// `true` where an event with this id had been offered before: the first one stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub duplicate: Option<bool>,
    /// Events of all names that wait for the execution now.
    pub pending: u32,
}

/// An event that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct EventView {
    /// Its name.
    pub name: String,
    /// Its own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub event_id: Option<String>,
    /// What came with it, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub payload: Option<Verbatim>,
    /// When it was offered.
    #[schema(format = DateTime)]
    pub offered_at: String,
}

impl From<PendingEvent> for EventView {
    fn from(event: PendingEvent) -> Self {
        Self {
            name: event.name.to_string(),
            event_id: event.id.map(|id| id.to_string()),
            payload: event.payload.map(Verbatim),
            offered_at: event.offered_at.to_rfc3339(),
        }
    }
}

/// A page of the events that wait for an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct EventsAnswer {
    /// The events, oldest first: of one name, the first is taken first.
    pub events: Vec<EventView>,
    /// How many of each name there are on all pages.
    pub counts: BTreeMap<String, u32>,
    /// Where the next page begins; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cursor: Option<String>,
}

impl From<PendingEvents> for EventsAnswer {
    fn from(page: PendingEvents) -> Self {
        Self {
            events: page.events.into_iter().map(EventView::from).collect(),
            counts: page.counts.into_iter().map(|(name, count)| (name.to_string(), count)).collect(),
            cursor: page.next,
        }
    }
}

/// How many events were thrown away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ClearEventsAnswer {
    /// So many.
    pub drained: u32,
}

/// What happened to an execution.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct TimelineAnswer {
    /// Its id.
    pub id: String,
    /// The run that it is the timeline of: the last one.
    pub run: u32,
    /// What happened, in the order of time.
    pub entries: Vec<TimelineEntryView>,
}
