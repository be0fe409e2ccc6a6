//! Events of a run that nobody has taken: first in, first out by name.

use std::collections::VecDeque;

use super::Replay;
use crate::execution::journal::Entry;
use crate::id::EventName;
use crate::payload::Payload;
use crate::time::Timestamp;

/// An event that waits for somebody to take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeEvent {
    pub sent_at: Timestamp,
    /// What came with it.
    pub payload: Option<Payload>,
}

/// Events of one name, oldest first, each with its entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(VecDeque<(Entry, FreeEvent)>);

impl Line {
    pub(super) fn add(&mut self, entry: &Entry, event: FreeEvent) {
        self.0.push_back((entry.clone(), event));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Replay {
    /// The oldest event of a name that nobody has taken.
    pub fn next_event(&self, name: &EventName) -> Option<&FreeEvent> {
        self.events.get(name)?.0.front().map(|(_, event)| event)
    }

    /// How many events of a name nobody has taken.
    pub fn event_count(&self, name: &EventName) -> usize {
        self.events.get(name).map_or(0, Line::len)
    }

    /// All events that nobody has taken, in the order of their names, as a next run begins with them.
    pub fn free_events(&self) -> Vec<Entry> {
        self.events.values().flat_map(|line| line.0.iter().map(|(entry, _)| entry.clone())).collect()
    }

    pub(super) fn take_event(&mut self, name: &EventName) -> Option<Payload> {
        let (_, event) = self.events.get_mut(name)?.0.pop_front()?;
        event.payload
    }

    pub(super) fn clear_events(&mut self, name: &EventName, count: u32) {
        let Some(line) = self.events.get_mut(name) else { return };
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(line.0.len());
        line.0.drain(..count);
    }
}
