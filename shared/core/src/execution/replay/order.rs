//! The order in which a run's code hears how what it waits for has ended: that of the journal.
//!
//! Code that waits for several things at once goes on with whichever ends first. So that it goes the same way in each
//! replay, it hears of one outcome at a time, and of the next one once it has come to rest. An outcome that came while
//! nothing waited for it is passed over; whatever begins to wait for it later is told as soon as the code rests. Where
//! there are several of those, the first in this order comes first.

use std::collections::{BTreeMap, VecDeque};

use super::Replay;
use crate::id::StepName;

/// What the code has heard of in this turn, and what it is to hear of next.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    ahead: VecDeque<StepName>,
    /// Each with its place among them.
    passed: BTreeMap<StepName, u64>,
    next_place: u64,
}

impl Order {
    pub(super) fn add(&mut self, name: &StepName) {
        if !self.passed.contains_key(name) {
            self.ahead.push_back(name.clone());
        }
    }

    /// What was remembered of a name no longer counts.
    pub(super) fn forget(&mut self, name: &StepName) {
        self.ahead.retain(|ahead| ahead != name);
        self.passed.remove(name);
    }

    /// The journal is read again from its beginning. What the code has heard it has heard.
    pub(super) fn begin_again(&mut self) {
        self.ahead.clear();
    }
}

impl Replay {
    /// What ended next, of what the code hasn't heard of.
    pub fn next_outcome(&self) -> Option<&StepName> {
        self.order.ahead.front()
    }

    /// What ends after that, in its order.
    pub fn outcomes_ahead(&self) -> impl Iterator<Item = &StepName> {
        self.order.ahead.iter()
    }

    /// The code has heard of the next outcome, or nothing of it waits for that.
    pub fn pass(&mut self) {
        if let Some(name) = self.order.ahead.pop_front() {
            self.order.passed.entry(name).or_insert(self.order.next_place);
            self.order.next_place += 1;
        }
    }

    /// Whether the code has come past this outcome.
    pub fn has_passed(&self, name: &StepName) -> bool {
        self.place(name).is_some()
    }

    /// Where an outcome stands among those that the code has come past.
    pub fn place(&self, name: &StepName) -> Option<u64> {
        self.order.passed.get(name).copied()
    }
}
