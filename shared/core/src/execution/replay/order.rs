//! The order in which a run's code receives outcomes: the order of the journal.
//!
//! Code that waits for several outcomes at once continues with the first one. So that each replay takes the same path,
//! the code receives one outcome at a time, and the next one when it makes no more progress. An outcome that the code
//! doesn't wait for yet is passed over. Code that waits for it later receives it as soon as it makes no more progress.
//! If there are several of those, the first in this order comes first.

use std::collections::{BTreeMap, VecDeque};

use super::Replay;
use crate::execution::journal::{Happened, STOPPED};
use crate::id::StepName;
use crate::time::Timestamp;

/// The outcomes that the code has received in this turn, and those that it has yet to receive.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// `None` stands where the code was stopped.
    ahead: VecDeque<Option<StepName>>,
    /// Whether the code was stopped in this turn, so that what it isn't to receive goes to its undo steps.
    stopped: bool,
    /// Each with its position among them.
    passed: BTreeMap<StepName, u64>,
    next_place: u64,
}

impl Order {
    pub(super) fn add(&mut self, name: &StepName) {
        if !self.passed.contains_key(name) {
            self.ahead.push_back(Some(name.clone()));
        }
    }

    /// The code was stopped here.
    pub(super) fn stop(&mut self) {
        if !self.stopped {
            self.ahead.push_back(None);
        }
    }

    /// The recorded outcome of a name no longer counts.
    pub(super) fn forget(&mut self, name: &StepName) {
        self.ahead.retain(|ahead| ahead.as_ref() != Some(name));
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
        self.order.ahead.front()?.as_ref()
    }

    /// All outcomes that the code hasn't received, in their order.
    pub fn undelivered_outcomes(&self) -> impl Iterator<Item = &StepName> {
        self.order.ahead.iter().flatten()
    }

    /// The code has received the next outcome, or doesn't wait for it.
    pub fn pass(&mut self) {
        if self.next_outcome().is_some()
            && let Some(Some(name)) = self.order.ahead.pop_front()
        {
            self.order.passed.entry(name).or_insert(self.order.next_place);
            self.order.next_place += 1;
        }
    }

    /// The turn stops the code, at the place where an earlier turn has, if one has: the journal says that. From now on
    /// outcomes go to the undo steps.
    pub fn stop_code(&mut self, now: Timestamp) {
        if !self.order.ahead.contains(&None) {
            self.push(now, Happened::Note { kind: STOPPED.to_owned(), name: None, by: None });
        }
        self.order.stopped = true;
        self.order.ahead.retain(Option::is_some);
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
