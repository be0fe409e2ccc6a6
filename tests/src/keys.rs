//! How hot the keys of the table and its indexes get. It counts every write of a load at each key, as `DynamoDB` bills
//! it.
//!
//! The load runs through the service on a store in memory. The keys of a write are taken from the requests that the
//! adapter would send. So a key that isn't spread over shards is seen here, whatever its name.

mod load;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickover_core::decision::Write;
use tickover_core::time::Timestamp;
use tickover_dynamodb::indexed::{Entry, Indexed};
use tickover_service::ports::Listed;

pub use load::{Load, Work, run};

/// The table or an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    Table,
    /// The due index.
    Due,
    /// The index of lists.
    List,
    /// The index of executions of all workflows, all of which are listed.
    All,
}

/// The hottest key of one target.
#[derive(Clone, Debug, PartialEq)]
pub struct Hottest {
    pub target: Target,
    /// The key with the most write units over the whole load.
    pub key: String,
    /// The write units of this key.
    pub units: u64,
    /// The write units of all keys.
    pub all: u64,
    /// The largest part that any key had of its target's units within one second.
    pub share: f64,
}

/// Write units by key.
type Units = HashMap<(Target, String), u64>;

/// Counts writes at their keys.
#[derive(Clone, Default)]
pub struct Keys(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    records: HashMap<String, Indexed>,
    this_second: Units,
    second: i64,
    whole: Units,
    share: BTreeMap<Target, f64>,
}

impl Keys {
    /// Counts the writes of one commit.
    ///
    /// # Panics
    ///
    /// If a record can't be made into an item.
    pub fn count(&self, writes: &[Write], now: Timestamp) {
        let mut counts = self.counts();
        counts.turn_to(now.as_millis().div_euclid(1_000));
        // Writes in one transaction cost twice. Wakes and changes of an expiry aren't part of the transaction.
        let is_decided = |write: &&Write| !matches!(write, Write::Wake { .. } | Write::Extend { .. });
        let together = writes.iter().filter(is_decided).count() > 1;
        for write in writes {
            counts.write(write, if together && is_decided(&write) { 2 } else { 1 });
        }
    }

    /// The records that follow are in a new store.
    pub fn forget_records(&self) {
        self.counts().records.clear();
    }

    /// The hottest key of each target that was written to.
    pub fn hottest(&self) -> Vec<Hottest> {
        let mut counts = self.counts();
        counts.turn_to(i64::MAX);
        let targets = [Target::Table, Target::Due, Target::List, Target::All];
        targets.into_iter().filter_map(|target| counts.hottest(target)).collect()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    #[expect(clippy::expect_used, reason = "test code, outside of a test function")]
    fn write(&mut self, write: &Write, units: u64) {
        // The key first: it finds the record's earlier state.
        let (pk, _) = Indexed::default().after(write, Listed::All).expect("an item");
        let before = self.records.remove(&pk).unwrap_or_default();
        let (_, after) = before.after(write, Listed::All).expect("an item");
        self.add(Target::Table, &pk, units);
        self.moved(Target::Due, before.due(), after.due());
        self.moved(Target::List, before.list(), after.list());
        self.moved(Target::All, before.all(), after.all());
        self.records.insert(pk, after);
    }

    /// An index entry costs one unit to make, to delete, and to change in place. Moving it means deleting and making
    /// it.
    fn moved(&mut self, index: Target, before: Option<Entry>, after: Option<Entry>) {
        if before == after {
            return;
        }
        match (before, after) {
            (Some(before), Some(after)) if before.has_same_keys(&after) => self.add(index, &after.key, 1),
            (before, after) => {
                for entry in before.into_iter().chain(after) {
                    self.add(index, &entry.key, 1);
                }
            }
        }
    }

    fn add(&mut self, target: Target, key: &str, units: u64) {
        *self.this_second.entry((target, key.to_owned())).or_default() += units;
    }

    fn turn_to(&mut self, second: i64) {
        if second == self.second {
            return;
        }
        self.second = second;
        let mut all: BTreeMap<Target, (u64, u64)> = BTreeMap::new();
        for ((target, key), units) in std::mem::take(&mut self.this_second) {
            let (sum, most) = all.entry(target).or_default();
            *sum += units;
            *most = units.max(*most);
            *self.whole.entry((target, key)).or_default() += units;
        }
        for (target, (sum, most)) in all {
            let share = self.share.entry(target).or_default();
            *share = share.max(float(most) / float(sum));
        }
    }

    fn hottest(&self, target: Target) -> Option<Hottest> {
        let of_target = || self.whole.iter().filter(|((of, _), _)| *of == target);
        let ((_, key), units) = of_target().max_by_key(|(_, units)| **units)?;
        let all = of_target().map(|(_, units)| units).sum();
        let share = self.share.get(&target).copied().unwrap_or_default();
        Some(Hottest { target, key: key.clone(), units: *units, all, share })
    }
}

/// A count as a float. Counts of a load are far below the largest integer that a float holds exactly.
#[expect(clippy::cast_precision_loss, reason = "the count is for people to read")]
fn float(count: u64) -> f64 {
    count as f64
}
