//! Batches: tasks of a kind and of a tenant that one call of a worker's code gets together.
//!
//! Owns the bounds, what the tasks of a batch have in common, and when a batch is complete.

use std::collections::BTreeMap;

use crate::duration::Millis;
use crate::id::{Fingerprint, TaskKind};
use crate::limits::WAIT_MAX;
use crate::task::Task;
use crate::time::{Timestamp, earliest};

/// Most tasks in a batch.
pub const BATCH_MAX: usize = 1_000;
/// The longest time for which a batch waits for more tasks: that of a long poll.
pub const FILL_MAX: Millis = WAIT_MAX;
/// How long a claim waits at most, for its first task and then for others. The caller's gateway waits for 30 s.
pub const CLAIM_WAIT_MAX: Millis = Millis::from_secs(25);

/// How many tasks a batch has at most, and how long it waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    max: usize,
    within: Millis,
}

/// Why a batch is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    #[error("a batch has 1 to {BATCH_MAX} tasks, not {0}")]
    Size(usize),
    #[error("a batch waits at most {FILL_MAX} to fill, not {0}")]
    Within(Millis),
}

impl Batch {
    /// At most `max` tasks (1 to [`BATCH_MAX`]), of which the first waits at most `within` (up to [`FILL_MAX`]).
    pub fn new(max: usize, within: Millis) -> Result<Self, BatchError> {
        if !(1..=BATCH_MAX).contains(&max) {
            return Err(BatchError::Size(max));
        }
        if within > FILL_MAX {
            return Err(BatchError::Within(within));
        }
        Ok(Self { max, within })
    }

    /// At most how many tasks it has.
    pub const fn max(&self) -> usize {
        self.max
    }

    /// How long its first task waits for the others.
    pub const fn within(&self) -> Millis {
        self.within
    }
}

/// How long messages may wait for their batch while they are hidden for the length of a lease: half of it. The rest is
/// for the first heartbeat, which hides them for longer.
pub fn fill_max(lease: Millis) -> Millis {
    FILL_MAX.min(Millis::new(lease.as_u64() / 2))
}

/// What the tasks of a batch have in common: their kind and their tenant. Tasks without a fairness key are one tenant
/// together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchKey {
    pub kind: TaskKind,
    pub tenant: Option<Fingerprint>,
}

impl Task {
    /// With which tasks it may be in a batch.
    pub fn batch_key(&self) -> BatchKey {
        BatchKey { kind: self.kind.clone(), tenant: self.lane().tenant }
    }
}

/// Members that wait until their batch is full, or the time to fill it is over.
#[derive(Debug)]
pub struct Gathering<M> {
    /// None of them is empty or full.
    groups: BTreeMap<BatchKey, Group<M>>,
}

#[derive(Debug)]
struct Group<M> {
    members: Vec<M>,
    max: usize,
    due_at: Timestamp,
}

impl<M> Default for Gathering<M> {
    fn default() -> Self {
        Self { groups: BTreeMap::new() }
    }
}

impl<M> Gathering<M> {
    /// Adds a member to the batch of its key, and returns the batch if it is full now. The first member of a batch fixes
    /// when the time to fill is over.
    pub fn add(&mut self, key: &BatchKey, member: M, max: usize, due_at: Timestamp) -> Option<Vec<M>> {
        let group =
            self.groups.entry(key.clone()).or_insert_with(|| Group { members: Vec::new(), max, due_at });
        group.members.push(member);
        if group.members.len() < group.max {
            return None;
        }
        self.groups.remove(key).map(|group| group.members)
    }

    /// Whether a batch of the key waits for more.
    pub fn waits_for(&self, key: &BatchKey) -> bool {
        self.groups.contains_key(key)
    }

    /// Takes out the batches whose time to fill is over.
    pub fn take_due(&mut self, now: Timestamp) -> Vec<Vec<M>> {
        let due = self.groups.extract_if(.., |_, group| group.due_at <= now);
        due.map(|(_, group)| group.members).collect()
    }

    /// Takes out all batches.
    pub fn take_all(&mut self) -> Vec<Vec<M>> {
        std::mem::take(&mut self.groups).into_values().map(|group| group.members).collect()
    }

    /// When the time to fill is over for the first of them.
    pub fn next_due(&self) -> Option<Timestamp> {
        earliest(self.groups.values().map(|group| Some(group.due_at)))
    }

    /// How many members the batches that wait still take.
    pub fn room(&self) -> usize {
        self.groups.values().map(|group| group.max.saturating_sub(group.members.len())).sum()
    }

    /// How many batches wait.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str, tenant: u8) -> BatchKey {
        let tenant = (tenant > 0).then(|| Fingerprint::from_bytes([tenant; 16]));
        BatchKey { kind: TaskKind::parse(kind).unwrap(), tenant }
    }

    const fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_batch_has_one_to_a_thousand_tasks_and_waits_at_most_as_long_as_a_poll() {
        let second = Millis::from_secs(1);
        for max in [1, 1_000] {
            assert_eq!(Batch::new(max, FILL_MAX).unwrap().max(), max);
        }
        assert_eq!(Batch::new(0, second), Err(BatchError::Size(0)));
        assert_eq!(
            Batch::new(1_001, second).unwrap_err().to_string(),
            "a batch has 1 to 1000 tasks, not 1001"
        );
        let error = Batch::new(5, Millis::new(20_001)).unwrap_err();
        assert!(error.to_string().starts_with("a batch waits at most 20s to fill, not "), "{error}");
        assert_eq!(fill_max(Millis::from_secs(60)), FILL_MAX);
        assert_eq!(fill_max(second), Millis::new(500));
    }

    #[test]
    fn a_batch_is_complete_when_it_is_full_or_its_time_is_over() {
        let mut all = Gathering::default();
        assert_eq!(all.add(&key("mail", 0), 1, 2, at(10)), None);
        assert_eq!(all.add(&key("mail", 1), 2, 2, at(12)), None);
        assert_eq!(all.add(&key("text", 0), 3, 2, at(14)), None);
        assert_eq!((all.len(), all.room(), all.next_due()), (3, 3, Some(at(10))));
        // A later member doesn't move the end of the wait.
        assert_eq!(all.add(&key("mail", 0), 4, 2, at(90)), Some(vec![1, 4]));
        assert!(!all.waits_for(&key("mail", 0)) && all.waits_for(&key("mail", 1)));
        assert_eq!(all.take_due(at(11)), Vec::<Vec<i32>>::new());
        assert_eq!(all.take_due(at(12)), [vec![2]]);
        assert_eq!(all.take_all(), [vec![3]]);
        assert!(all.is_empty() && all.next_due().is_none() && all.room() == 0);
        assert_eq!(all.add(&key("mail", 0), 5, 1, at(99)), Some(vec![5]));
    }
}
