//! A day of what each queue did, where the store keeps it: one machine's file.
//!
//! A process counts what ends and how late work starts. Once a minute it adds the counts to those of their five minutes,
//! with the depth of the queue and its oldest task. What was counted within the last minute before a crash is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::QueueName;
use tickover_core::task::Status;
use tickover_core::time::Timestamp;

use crate::error::ServiceError;
use crate::ports::Sample;
use crate::service::Service;

/// The part of the day of one sample.
pub const SAMPLE_LENGTH: Millis = Millis::from_secs(300);
/// How long samples are kept.
pub const KEPT_FOR: Millis = Millis::from_secs(86_400);
/// Of how many queues there are samples: the first by their names.
pub const QUEUES_MAX: usize = 50;

/// What a queue did since the last sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    completed: u64,
    failed: u64,
    late: Millis,
}

/// What each queue did since the last sample, at most [`QUEUES_MAX`] of them.
#[derive(Debug, Default)]
pub(crate) struct Tallies(Mutex<BTreeMap<QueueName, Tally>>);

impl Tallies {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<QueueName, Tally>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, queue: &QueueName, count: impl FnOnce(&mut Tally)) {
        let mut tallies = self.lock();
        if let Some(tally) = tallies.get_mut(queue) {
            count(tally);
        } else if tallies.len() < QUEUES_MAX {
            count(tallies.entry(queue.clone()).or_default());
        }
    }

    pub(crate) fn task_ended(&self, queue: &QueueName, status: Status) {
        match status {
            Status::Completed => self.count(queue, |tally| tally.completed += 1),
            Status::Failed | Status::TimedOut => self.count(queue, |tally| tally.failed += 1),
            Status::Pending | Status::Running | Status::Cancelled | Status::Skipped => {}
        }
    }

    pub(crate) fn execution_ended(&self, queue: &QueueName, status: ExecutionStatus) {
        match status {
            ExecutionStatus::Completed => self.count(queue, |tally| tally.completed += 1),
            ExecutionStatus::Failed | ExecutionStatus::TimedOut => {
                self.count(queue, |tally| tally.failed += 1);
            }
            ExecutionStatus::Pending
            | ExecutionStatus::Running
            | ExecutionStatus::Waiting
            | ExecutionStatus::Paused
            | ExecutionStatus::Cancelled => {}
        }
    }

    /// A worker took work that it could have had this much earlier.
    pub(crate) fn started(&self, queue: &QueueName, late: Millis) {
        self.count(queue, |tally| tally.late = tally.late.max(late));
    }
}

impl Service {
    /// Adds what has happened since the last call to the store's history, if it keeps one. For a process that alone has
    /// the store, once a minute.
    pub async fn keep_history(&self) -> Result<(), ServiceError> {
        let Some(history) = self.ports.store.traits().history else { return Ok(()) };
        let mut tallies = std::mem::take(&mut *self.notifications.tallies.lock());
        let now = self.now();
        let at = beginning(now);
        let names: BTreeSet<_> =
            self.queue_names().await?.into_iter().chain(tallies.keys().cloned()).collect();
        let mut samples = Vec::new();
        for queue in names.into_iter().take(QUEUES_MAX) {
            let Tally { completed, failed, late } = tallies.remove(&queue).unwrap_or_default();
            let depth = self.ports.queue.depth(&queue).await.unwrap_or_default();
            let oldest = self.oldest(&queue).await?.map_or(Millis::ZERO, |since| now.since(since));
            let (depth, running) = (depth.visible, depth.in_flight);
            samples.push(Sample { at, queue, completed, failed, late, depth, oldest, running });
        }
        Ok(history.add(&samples, at.minus(KEPT_FOR)).await?)
    }

    /// The samples of a day, of all queues together or of one, from an instant on if there is one, the earliest first.
    /// `None` if the store keeps none.
    pub fn history(
        &self,
        queue: Option<&QueueName>,
        from: Option<Timestamp>,
    ) -> Result<Option<Vec<Sample>>, ServiceError> {
        let Some(history) = self.ports.store.traits().history else { return Ok(None) };
        let day = self.now().minus(KEPT_FOR);
        Ok(Some(history.since(from.map_or(day, |from| from.max(day)), queue)?))
    }
}

/// The beginning of the five minutes that an instant is in.
pub fn beginning(instant: Timestamp) -> Timestamp {
    let length = i64::try_from(SAMPLE_LENGTH.as_u64()).unwrap_or(i64::MAX);
    Timestamp::from_millis(instant.as_millis().div_euclid(length) * length)
}
