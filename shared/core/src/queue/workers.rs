//! Which workers have asked for a queue's work.
//!
//! It is for people, and for who is called first of those that wait for a place: nothing else is decided by it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::QueueRecord;
use crate::duration::Millis;
use crate::id::{WorkerName, WorkerVersion};
use crate::time::Timestamp;

/// Most workers that a queue's record names: each takes at most 170 bytes of it.
pub const WORKERS_MAX: usize = 20;
/// The time after which a worker that still asks is noted again.
pub const NOTED_EVERY: Millis = Millis::from_secs(60);
/// A worker that has asked within this time is there: that is longer than two notes and a claim's wait take.
pub const THERE_FOR: Millis = Millis::from_secs(180);
/// How long a worker that is gone is still named.
pub const NAMED_FOR: Millis = Millis::from_secs(86_400);

/// What is known of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenWorker {
    /// When it asked first.
    #[serde(rename = "s")]
    pub since: Timestamp,
    /// When it last asked, or said that it works.
    #[serde(rename = "t")]
    pub seen_at: Timestamp,
    /// The version of its code, if it has named one.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub version: Option<WorkerVersion>,
}

/// Workers by their names.
pub type Workers = BTreeMap<WorkerName, SeenWorker>;

impl SeenWorker {
    /// Whether it is there, as far as is known at that instant.
    pub fn is_there(&self, now: Timestamp) -> bool {
        now < self.seen_at.plus(THERE_FOR)
    }

    /// What two processes know of one worker.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (earlier, later) = if self.seen_at <= other.seen_at { (self, other) } else { (other, self) };
        Self {
            since: earlier.since.min(later.since),
            seen_at: later.seen_at,
            version: later.version.clone().or_else(|| earlier.version.clone()),
        }
    }
}

/// What two processes know of a queue's workers: at most so many, those that were seen last. Those that are gone for
/// longer than [`NAMED_FOR`] are left out.
pub fn together(some: &Workers, others: &Workers, now: Timestamp, most: usize) -> Workers {
    let mut all = some.clone();
    for (name, seen) in others {
        let seen = all.get(name).map_or_else(|| seen.clone(), |known| known.and(seen));
        all.insert(name.clone(), seen);
    }
    all.retain(|_, seen| now < seen.seen_at.plus(NAMED_FOR));
    while all.len() > most {
        let longest_ago = all.iter().min_by_key(|(_, seen)| seen.seen_at).map(|(name, _)| name.clone());
        let Some(name) = longest_ago else { break };
        all.remove(&name);
    }
    all
}

impl QueueRecord {
    /// The record after a process has seen these workers. `None` if it says so already, to within [`NOTED_EVERY`], or if
    /// it names as many others as it can that were seen within that time: so it is written [`WORKERS_MAX`] times in that
    /// time at most, however many workers there are.
    #[must_use]
    pub fn with_workers(&self, seen: &Workers, now: Timestamp) -> Option<Self> {
        let is_noted = |name, at: Timestamp| {
            self.workers.get(name).is_some_and(|known| at < known.seen_at.plus(NOTED_EVERY))
        };
        let fresh = self.workers.values().filter(|known| now < known.seen_at.plus(NOTED_EVERY)).count();
        let has_room = |name| fresh < WORKERS_MAX || self.workers.contains_key(name);
        let is_new = seen.iter().any(|(name, seen)| !is_noted(name, seen.seen_at) && has_room(name));
        is_new.then(|| Self { workers: together(&self.workers, seen, now, WORKERS_MAX), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Nonce, QueueName};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn seen(name: &str, since: i64, seen_at: i64) -> Workers {
        let seen = SeenWorker { since: at(since), seen_at: at(seen_at), version: None };
        [(WorkerName::parse(name).unwrap(), seen)].into()
    }

    fn blank() -> QueueRecord {
        QueueRecord::new(QueueName::parse("q").unwrap(), Nonce::from_bytes([1; Nonce::LEN]))
    }

    #[test]
    fn a_worker_that_goes_on_asking_is_noted_once_a_minute_with_its_first_instant() {
        let first = blank().with_workers(&seen("ada", 10, 10), at(10)).unwrap();
        assert_eq!(first.with_workers(&seen("ada", 10, 69), at(69)), None);
        // Another process has seen it later.
        let second = first.with_workers(&seen("ada", 70, 70), at(70)).unwrap();
        assert_eq!(second.workers, seen("ada", 10, 70));
        let late = second.with_workers(&seen("ada", 20, 30), at(200));
        assert_eq!(late, None, "an earlier instant says nothing new");
    }

    #[test]
    fn a_queue_with_many_workers_names_some_of_them_and_is_written_no_more_often() {
        let name = |number: usize| format!("w-{number}");
        let add = |record: QueueRecord, number| {
            record.with_workers(&seen(&name(number), 0, 0), at(0)).unwrap_or(record)
        };
        let full = (0..WORKERS_MAX + 5).fold(blank(), add);
        assert_eq!(full.workers.len(), WORKERS_MAX);
        assert_eq!(full.with_workers(&seen("late", 59, 59), at(59)), None);
        let after = full.with_workers(&seen("late", 60, 60), at(60)).unwrap();
        assert_eq!(after.workers.len(), WORKERS_MAX);
        assert!(after.workers.contains_key(&WorkerName::parse("late").unwrap()));
    }

    #[test]
    fn a_worker_that_is_gone_is_named_for_a_day() {
        let record = blank().with_workers(&seen("gone", 0, 0), at(0)).unwrap();
        let day = i64::try_from(NAMED_FOR.as_u64() / 1_000).unwrap();
        let before = record.with_workers(&seen("ada", day - 1, day - 1), at(day - 1)).unwrap();
        assert!(before.workers.contains_key(&WorkerName::parse("gone").unwrap()));
        assert_eq!(
            record.with_workers(&seen("ada", day, day), at(day)).unwrap().workers,
            seen("ada", day, day)
        );
        let gone = &record.workers[&WorkerName::parse("gone").unwrap()];
        assert!(gone.is_there(at(179)) && !gone.is_there(at(180)));
    }
}
