//! The order in which a run's code receives outcomes: the order of the journal.
//!
//! Code that waits for several outcomes at once continues with the first one. So that each replay takes the same path,
//! the code receives one outcome at a time, and the next one when it makes no more progress. An outcome that the code
//! doesn't wait for yet is passed over. Code that waits for it later receives it as soon as it makes no more progress.
//! If there are several of those, the first in this order comes first.

use std::collections::{BTreeMap, VecDeque};

use super::Replay;
use crate::id::StepName;

/// The outcomes that the code has received in this turn, and those that it has yet to receive.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    ahead: VecDeque<StepName>,
    /// Each with its position among them.
    passed: BTreeMap<StepName, u64>,
    next_place: u64,
}

impl Order {
    pub(super) fn add(&mut self, name: &StepName) {
        if !self.passed.contains_key(name) {
            self.ahead.push_back(name.clone());
        }
    }

    /// The recorded outcome of a name no longer counts.
    pub(super) fn forget(&mut self, name: &StepName) {
        self.ahead.retain(|ahead| ahead != name);
        self.passed.remove(name);
    }

    /// The journal is read again from its beginning. Outcomes that the code has received stay received.
    pub(super) fn restart_replay(&mut self) {
        self.ahead.clear();
    }
}

impl Replay {
    /// The next outcome that the code hasn't received.
    pub fn next_outcome(&self) -> Option<&StepName> {
        self.order.ahead.front()
    }

    /// All outcomes that the code hasn't received, in their order.
    pub fn undelivered_outcomes(&self) -> impl Iterator<Item = &StepName> {
        self.order.ahead.iter()
    }

    /// The code has received the next outcome, or doesn't wait for it.
    pub fn pass(&mut self) {
        if let Some(name) = self.order.ahead.pop_front() {
            self.order.passed.entry(name).or_insert(self.order.next_place);
            self.order.next_place += 1;
        }
    }

    /// Whether the code has received or passed over this outcome.
    pub fn is_delivered(&self, name: &StepName) -> bool {
        self.position(name).is_some()
    }

    /// The position of an outcome among those that the code has received or passed over.
    pub fn position(&self, name: &StepName) -> Option<u64> {
        self.order.passed.get(name).copied()
    }
}
