//! Pending events of a run: first in, first out for each name.

use std::collections::VecDeque;

use super::{Replay, WaitOutcome};
use crate::execution::journal::{Entry, Happened};
use crate::id::EventName;
use crate::payload::Payload;
use crate::time::Timestamp;

/// A pending event: no wait has taken it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntakenEvent {
    pub sent_at: Timestamp,
    pub payload: Option<Payload>,
}

/// Pending events of one name, oldest first, each with its entry.
#[derive(Clone, Debug, Default)]
pub(super) struct EventQueue(VecDeque<(Entry, UntakenEvent)>);

impl EventQueue {
    pub(super) fn add(&mut self, entry: &Entry, event: UntakenEvent) {
        self.0.push_back((entry.clone(), event));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Replay {
    /// The oldest pending event of a name.
    pub fn next_event(&self, name: &EventName) -> Option<&UntakenEvent> {
        self.events.get(name)?.0.front().map(|(_, event)| event)
    }

    /// How many events of a name are pending.
    pub fn event_count(&self, name: &EventName) -> usize {
        self.events.get(name).map_or(0, EventQueue::len)
    }

    /// All pending events, in the order of their names. A next run starts with them.
    pub fn free_events(&self) -> Vec<Entry> {
        self.events.values().flat_map(|line| line.0.iter().map(|(entry, _)| entry.clone())).collect()
    }

    pub(super) fn take_event(&mut self, name: &EventName) -> WaitOutcome {
        let taken = self.events.get_mut(name).and_then(|line| line.0.pop_front());
        match taken.map(|(entry, _)| entry.what) {
            Some(Happened::Event { id, payload, .. }) => WaitOutcome::Event { id, payload },
            _ => WaitOutcome::Event { id: None, payload: None },
        }
    }

    pub(super) fn clear_events(&mut self, name: &EventName, count: u32) {
        let Some(line) = self.events.get_mut(name) else { return };
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(line.0.len());
        line.0.drain(..count);
    }
}
