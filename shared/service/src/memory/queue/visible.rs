//! The messages of a queue that may be received, and which of them comes next.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tickover_core::flow::Priority;
use tickover_core::lane::{Lane, Turns};

use super::messages::Position;

/// Messages by priority, then tenants in turn, then those that have been visible longest. Each operation takes time
/// with the logarithm of their number, whatever the number of tenants.
#[derive(Debug, Default)]
pub(super) struct Visible {
    /// Only lanes that have messages.
    lanes: HashMap<Lane, Waiting>,
    /// The lanes of each priority, by their turns.
    rings: [BTreeMap<u64, Lane>; 3],
    next_turn: u64,
    turns: Turns,
    count: u64,
}

/// The messages of a lane.
#[derive(Debug)]
struct Waiting {
    messages: BTreeSet<Position>,
    /// Its place in the ring of its priority.
    turn: u64,
}

impl Visible {
    pub(super) fn insert(&mut self, lane: Lane, position: Position) {
        let waiting = self.lanes.entry(lane).or_insert_with(|| {
            self.next_turn += 1;
            self.rings[lane.priority.place()].insert(self.next_turn, lane);
            Waiting { messages: BTreeSet::new(), turn: self.next_turn }
        });
        self.count += u64::from(waiting.messages.insert(position));
    }

    pub(super) fn remove(&mut self, lane: Lane, position: Position) {
        let Some(waiting) = self.lanes.get_mut(&lane) else { return };
        self.count -= u64::from(waiting.messages.remove(&position));
        if waiting.messages.is_empty() {
            self.rings[lane.priority.place()].remove(&waiting.turn);
            self.lanes.remove(&lane);
        }
    }

    /// Takes the next one out.
    pub(super) fn pop(&mut self) -> Option<Position> {
        let waits = Priority::ALL.map(|priority| !self.rings[priority.place()].is_empty());
        let priority = self.turns.next(waits)?;
        let ring = &mut self.rings[priority.place()];
        let (_, lane) = ring.pop_first()?;
        let waiting = self.lanes.get_mut(&lane)?;
        let position = waiting.messages.pop_first()?;
        self.turns.took(priority, 1, waits);
        self.count -= 1;
        if waiting.messages.is_empty() {
            self.lanes.remove(&lane);
        } else {
            // Behind all others of its priority.
            self.next_turn += 1;
            waiting.turn = self.next_turn;
            ring.insert(self.next_turn, lane);
        }
        Some(position)
    }

    pub(super) const fn len(&self) -> u64 {
        self.count
    }

    /// How many messages a lane has.
    pub(super) fn len_of(&self, lane: Lane) -> u64 {
        self.lanes.get(&lane).map_or(0, |waiting| waiting.messages.len() as u64)
    }

    /// How many lanes have messages, this one counted in any case.
    pub(super) fn lanes_with(&self, lane: Lane) -> u64 {
        self.lanes.len() as u64 + u64::from(!self.lanes.contains_key(&lane))
    }
}

#[cfg(test)]
mod tests {
    use tickover_core::id::Fingerprint;
    use tickover_core::time::Timestamp;

    use super::*;

    fn lane(priority: Priority, tenant: u8) -> Lane {
        Lane { priority, tenant: (tenant > 0).then(|| Fingerprint::from_bytes([tenant; 16])) }
    }

    fn at(id: u64) -> Position {
        (Timestamp::EPOCH, id)
    }

    fn drain(visible: &mut Visible) -> Vec<u64> {
        std::iter::from_fn(|| visible.pop()).map(|(_, id)| id).collect()
    }

    #[test]
    fn tenants_take_turns_and_those_without_a_key_are_one_of_them() {
        let mut visible = Visible::default();
        for (id, tenant) in [(1, 1), (2, 1), (3, 1), (4, 1), (5, 2), (6, 2), (7, 0), (8, 0)] {
            visible.insert(lane(Priority::Normal, tenant), at(id));
        }
        assert_eq!(drain(&mut visible), [1, 5, 7, 2, 6, 8, 3, 4]);
        assert_eq!((visible.len(), visible.lanes.len()), (0, 0));
    }

    #[test]
    fn a_burst_of_one_tenant_delays_another_by_one_message_each() {
        let mut visible = Visible::default();
        (0..100_000).for_each(|id| visible.insert(lane(Priority::Normal, 1), at(id)));
        for _ in 0..1_000 {
            visible.pop();
        }
        (200_000..200_010).for_each(|id| visible.insert(lane(Priority::Normal, 2), at(id)));
        let first: Vec<_> = (0..20).filter_map(|_| visible.pop()).collect();
        assert_eq!(first.iter().filter(|(_, id)| *id >= 200_000).count(), 10, "{first:?}");
    }

    #[test]
    fn priorities_go_before_tenants() {
        let mut visible = Visible::default();
        for id in 0..3 {
            visible.insert(lane(Priority::Low, 1), at(id));
            visible.insert(lane(Priority::Normal, 2), at(10 + id));
            visible.insert(lane(Priority::High, 3), at(20 + id));
        }
        assert_eq!(drain(&mut visible), [20, 21, 22, 10, 11, 12, 0, 1, 2]);
    }

    #[test]
    fn removed_messages_leave_nothing_behind() {
        let mut visible = Visible::default();
        let mut random = 1_u64;
        let mut all = vec![];
        for id in 0..2_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let lane =
                lane(Priority::ALL[(random >> 40) as usize % 3], u8::try_from((random >> 50) % 5).unwrap());
            visible.insert(lane, at(id));
            all.push((lane, id));
            if id % 3 == 0 {
                let (lane, id) = all.swap_remove((random >> 33) as usize % all.len());
                visible.remove(lane, at(id));
                visible.remove(lane, at(id));
            }
            assert_eq!(visible.len(), all.len() as u64);
        }
        let mut left: Vec<_> = all.iter().map(|(_, id)| *id).collect();
        left.sort_unstable();
        let mut popped = drain(&mut visible);
        popped.sort_unstable();
        assert_eq!(popped, left);
        assert!(visible.lanes.is_empty() && visible.rings.iter().all(BTreeMap::is_empty));
    }
}
