//! Messages that an actor sends again, because the answer to the call that sent them was lost, or came later than it waits.

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;

use super::timers::SLOW_MS;
use crate::Run;
use crate::history::{Actor, Event, Fault, What};

/// A call that lasts longer is given up.
const GIVEN_UP_WITHIN: Millis = Millis::from_secs(30);

/// When each actor has sent what.
pub(super) struct Unanswered<K> {
    /// Whether calls may take longer than a tick waits.
    is_slow: bool,
    sent: BTreeMap<(Actor, K), Timestamp>,
    /// Until when an answer to an actor was lost, or its clock went on during a call.
    disturbed: BTreeMap<Actor, Timestamp>,
}

impl<K> Default for Unanswered<K> {
    fn default() -> Self {
        Self { is_slow: false, sent: BTreeMap::new(), disturbed: BTreeMap::new() }
    }
}

impl<K: Ord> Unanswered<K> {
    pub(super) fn in_run(run: &Run) -> Self {
        Self { is_slow: run.plan.faults.latency_ms >= SLOW_MS, ..Self::default() }
    }

    pub(super) fn event(&mut self, event: &Event) {
        let until = match event.what {
            What::Fault(Fault::LostAnswer | Fault::ClockJumped(_)) => event.at,
            What::Fault(Fault::Frozen(span)) => event.at.plus(span),
            _ => return,
        };
        self.disturbed.insert(event.actor, until);
    }

    /// An actor sends a message. Returns whether it repeats one that may not have arrived.
    pub(super) fn repeats(&mut self, actor: Actor, key: K, at: Timestamp) -> bool {
        let Some(before) = self.sent.insert((actor, key), at) else { return false };
        let since = before.minus(GIVEN_UP_WITHIN);
        let is_disturbed = self.disturbed.get(&actor).is_some_and(|disturbed| *disturbed >= since);
        is_disturbed || (self.is_slow && at.since(before) <= GIVEN_UP_WITHIN)
    }
}
