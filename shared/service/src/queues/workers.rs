//! Which workers ask for the work of each queue.
//!
//! A process remembers the workers that it has answered, and notes them in the queue's record once a minute: in the write of
//! the watermark, if that moves anyway. So a claim costs nothing more, a worker of an idle queue costs one write a minute, and
//! a frozen process just isn't seen. A note that can't be written is left out: no work depends on it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tickover_core::id::{QueueName, WorkerName};
use tickover_core::queue::workers::{NOTED_EVERY, SeenWorker, Workers, together};
use tickover_core::time::Timestamp;

use super::QueueInfo;
use crate::error::ServiceError;
use crate::service::Service;
use crate::telemetry::field;

/// Most workers of a queue that a process remembers.
const REMEMBERED_MAX: usize = 200;
/// The name that stands for all workers without one.
const UNNAMED: &str = "unnamed";

/// The workers that this process has seen, by queue.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<HashMap<QueueName, OfQueue>>);

#[derive(Debug, Default)]
struct OfQueue {
    workers: Workers,
    /// When the queue's record was last compared with them.
    noted_at: Option<Timestamp>,
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, HashMap<QueueName, OfQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, queue: &QueueName, name: WorkerName, seen: SeenWorker) {
        let now = seen.seen_at;
        let mut queues = self.lock();
        let workers = &mut queues.entry(queue.clone()).or_default().workers;
        match workers.get_mut(&name) {
            Some(known) => *known = known.and(&seen),
            None => *workers = together(workers, &Workers::from([(name, seen)]), now, REMEMBERED_MAX),
        }
    }

    /// The workers of a queue.
    pub(super) fn of(&self, queue: &QueueName) -> Workers {
        self.lock().get(queue).map(|of_queue| of_queue.workers.clone()).unwrap_or_default()
    }

    /// Whether a worker of a queue is there.
    pub(super) fn has_any(&self, queue: &QueueName, now: Timestamp) -> bool {
        self.lock()
            .get(queue)
            .is_some_and(|of_queue| of_queue.workers.values().any(|seen| seen.is_there(now)))
    }

    /// Whether it is time to compare the queue's record with them. If the clock was set back, it is.
    fn is_due(&self, queue: &QueueName, now: Timestamp) -> bool {
        let queues = self.lock();
        let noted_at = queues.get(queue).and_then(|of_queue| of_queue.noted_at);
        noted_at.is_none_or(|at| now < at || now >= at.plus(NOTED_EVERY))
    }

    pub(super) fn noted(&self, queue: &QueueName, now: Timestamp) {
        self.lock().entry(queue.clone()).or_default().noted_at = Some(now);
    }
}

/// A queue with its workers, as operators see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueWorkers {
    pub queue: QueueInfo,
    /// Those that have asked for its work within a day.
    pub workers: Workers,
    /// Whether work waits, no worker has any, and none has asked for some minutes.
    pub unserved: bool,
}

impl Service {
    /// All queues with their workers.
    pub async fn list_workers(&self) -> Result<Vec<QueueWorkers>, ServiceError> {
        let mut all = Vec::new();
        for queue in self.list_queues().await? {
            let noted = self.record(&queue.name).await?.map(|record| record.workers).unwrap_or_default();
            let now = self.now();
            let workers = together(&noted, &self.seen.of(&queue.name), now, usize::MAX);
            let is_served = workers.values().any(|seen| seen.is_there(now)) || queue.depth.in_flight > 0;
            let unserved = queue.depth.visible > 0 && !queue.paused && !is_served;
            all.push(QueueWorkers { queue, workers, unserved });
        }
        Ok(all)
    }

    /// Remembers that a worker asks for work of a queue, or works on it.
    pub(crate) fn see_worker(&self, queue: &QueueName, name: Option<&WorkerName>) {
        let Some(name) = name.cloned().or_else(|| WorkerName::parse(UNNAMED).ok()) else { return };
        let now = self.now();
        self.seen.add(queue, name, SeenWorker { since: now, seen_at: now, version: self.version.clone() });
    }

    /// Notes the workers of a queue in its record, unless it did so within the last minute.
    pub(crate) async fn note_workers(&self, queue: &QueueName) {
        let now = self.now();
        if !self.seen.is_due(queue, now) {
            return;
        }
        let seen = self.seen.of(queue);
        if seen.is_empty() {
            return;
        }
        self.seen.noted(queue, now);
        let is_noted = match self.record(queue).await {
            Ok(known) => known.is_some_and(|record| record.with_workers(&seen, now).is_none()),
            Err(error) => return tracing::debug!({ field::QUEUE_NAME } = %queue, %error, "workers not read"),
        };
        if !is_noted
            && let Err(error) = self.write_queue(queue, |record| record.with_workers(&seen, now)).await
        {
            tracing::debug!({ field::QUEUE_NAME } = %queue, %error, "workers not noted");
        }
    }
}
