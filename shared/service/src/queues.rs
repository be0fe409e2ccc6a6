//! Queues: whether they are paused, their depth, and what is known of their hints.

pub mod kinds;
pub(crate) mod parked;
pub mod provides;
pub mod routes;
pub mod workers;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tickover_core::by::By;
use tickover_core::decision::{Condition, Write};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::flow::Priority;
use tickover_core::id::{Capability, QueueName, TaskKind, WorkflowName};
use tickover_core::kind::Policies;
use tickover_core::queue::workers::THERE_FOR;
use tickover_core::queue::{Mark, QueueRecord};
use tickover_core::task::{State, Status};
use tickover_core::time::Timestamp;

use crate::contention::Tries;
use crate::error::{ServiceError, unknown_queue};
use crate::metric;
use crate::ports::{Depth, StoreError, TaskFilter, TaskIndex};
use crate::service::Service;
use crate::telemetry::field;

/// How long a copy of a queue's record is used before it is read again: a pause takes effect everywhere within this
/// time.
const CACHE_TTL: Millis = Millis::from_secs(5);
/// How long a process that only schedules uses a copy without any defaults: the first defaults of a queue count everywhere
/// within this time. So those who have none pay for a read a minute at most, and not for one every 5 s.
const NO_DEFAULTS_TTL: Millis = Millis::from_secs(60);
/// The shortest bound of the wait before a write is tried again because another process was faster.
const WAIT: Millis = Millis::new(10);
/// How many live tasks are read to find a queue's oldest one.
const OLDEST_READ_MAX: usize = 1_000;

/// The queues' records that this process has read.
#[derive(Debug, Default)]
pub(crate) struct QueueCache {
    known: Mutex<HashMap<QueueName, Known>>,
    /// The names of the queues that had a record at that instant.
    listed: Mutex<Option<(Vec<QueueName>, Timestamp)>>,
}

/// A queue's record when it was read; the queue may have had none.
#[derive(Clone, Debug)]
struct Known {
    record: Option<QueueRecord>,
    read_at: Timestamp,
}

impl QueueCache {
    fn lookup(&self, name: &QueueName, now: Timestamp) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name).filter(|known| is_fresh(known.read_at, now, CACHE_TTL)).cloned()
    }

    /// The defaults of a kind, which are empty if it has none. `None` if they must be read.
    fn defaults(&self, name: &QueueName, kind: &TaskKind, now: Timestamp) -> Option<Policies> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { record, read_at } = known.get(name)?;
        let kinds = record.as_ref().map(|record| &record.kinds).filter(|kinds| !kinds.is_empty());
        let lasts = if kinds.is_some() { CACHE_TTL } else { NO_DEFAULTS_TTL };
        let found = kinds.and_then(|kinds| kinds.get(kind));
        is_fresh(*read_at, now, lasts)
            .then(|| found.map(|defaults| defaults.policies.clone()).unwrap_or_default())
    }

    /// Whether the queue has had a record. A record is never deleted.
    fn has_record(&self, name: &QueueName) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name).is_some_and(|known| known.record.is_some())
    }

    fn store(&self, name: &QueueName, record: Option<QueueRecord>, now: Timestamp) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.clone(), Known { record, read_at: now });
    }

    fn listed(&self, now: Timestamp) -> Option<Vec<QueueName>> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = listed.as_ref().filter(|(_, read_at)| is_fresh(*read_at, now, CACHE_TTL));
        fresh.map(|(names, _)| names.clone())
    }

    fn list(&self, names: Vec<QueueName>, now: Timestamp) {
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some((names, now));
    }
}

/// If the clock jumps back, an old record must not stay valid.
fn is_fresh(read_at: Timestamp, now: Timestamp, lasts: Millis) -> bool {
    read_at <= now && now < read_at.plus(lasts)
}

/// A queue as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueInfo {
    pub name: QueueName,
    /// Whether work of the queue is not leased.
    pub paused: bool,
    /// Its messages: about as many as its tasks that wait, that run, and that start within 15 minutes.
    pub depth: Depth,
    /// The workflows whose code its workers have announced.
    pub workflows: Vec<WorkflowName>,
    /// What its workers have said that they provide.
    pub provides: Vec<Capability>,
    /// Since when its oldest waiting task could have been claimed; only read for a single queue.
    pub oldest_at: Option<Timestamp>,
    /// Who has paused or resumed it last.
    pub by: Option<By>,
}

impl Service {
    /// All queues with their depth.
    pub async fn list_queues(&self) -> Result<Vec<QueueInfo>, ServiceError> {
        let leased = self.leased()?;
        let mut infos = Vec::new();
        for name in self.queue_names().await? {
            match self.info(name, None, &leased).await {
                Ok(info) => infos.push(info),
                // Deleted since it was found.
                Err(ServiceError::Rejected(Reject::UnknownQueue { .. }))
                    if self.ports.queue.traits().finds_by_name => {}
                Err(error) => return Err(error),
            }
        }
        Ok(infos)
    }

    /// A queue with its depth and its oldest waiting task.
    pub async fn describe_queue(&self, name: &QueueName) -> Result<QueueInfo, ServiceError> {
        self.require_queue(name).await?;
        let oldest_at = self.oldest(name).await?;
        self.info(name.clone(), oldest_at, &self.leased()?).await
    }

    /// Sets the gauges of all queues, including Tickover's own, before metrics are read. A queue that doesn't answer
    /// keeps its last values.
    pub async fn observe_queues(&self) {
        for name in self.ports.queue.names() {
            match self.ports.queue.depth(&name).await {
                Ok(depth) => metric::queue_depth(&name, &depth),
                Err(error) => tracing::debug!({ field::QUEUE_NAME } = %name, %error, "depth not read"),
            }
        }
    }

    /// Stops or resumes claims of a queue's tasks; deadlines keep running.
    pub async fn pause_queue(&self, name: &QueueName, paused: bool) -> Result<QueueInfo, ServiceError> {
        self.require_queue(name).await?;
        if paused {
            let by = || self.by.as_deref().cloned();
            self.write_queue(name, |record| Some(QueueRecord { by: by(), ..record.pause()? })).await?;
        } else {
            self.resume_queue(name).await?;
        }
        self.info(name.clone(), None, &self.leased()?).await
    }

    /// Stores the name of an in-process queue: the table has a record of it from its first task on.
    pub(crate) async fn remember_queue(&self, name: &QueueName) -> Result<(), ServiceError> {
        self.write_queue(name, |record| (record.version == 0).then(|| record.clone())).await.map(drop)
    }

    /// The queues that have a record in the table.
    pub async fn remembered_queues(&self) -> Result<Vec<QueueRecord>, ServiceError> {
        Ok(self.with_retries(|| self.ports.store.queues()).await?)
    }

    /// Whether a queue is paused; the answer may be a few seconds old, so many calls cost one read.
    pub async fn is_paused(&self, name: &QueueName) -> Result<bool, ServiceError> {
        Ok(self.record(name).await?.is_some_and(|record| record.paused))
    }

    /// Whether workers have asked for a queue's work within the last minutes, or have received some, as far as is known.
    pub(crate) async fn is_served(&self, name: &QueueName) -> Result<bool, ServiceError> {
        let now = self.now();
        let is_noted = self.record(name).await?.is_some_and(|record| {
            let received = record.marks.values().any(|mark| now < mark.noted_at.plus(THERE_FOR));
            received || record.workers.values().any(|worker| worker.is_there(now))
        });
        Ok(is_noted || self.seen.has_any(name, now))
    }

    /// The same without a read: what this process has read within the last seconds. If it has read nothing, the queue
    /// counts as not paused.
    pub fn is_known_as_paused(&self, name: &QueueName) -> bool {
        let known = self.queues.lookup(name, self.now()).and_then(|known| known.record);
        known.is_some_and(|record| record.paused)
    }

    /// The class queue in which a message waited that was received; the normal one if its receipt isn't known.
    pub(crate) fn class_of(&self, receipt: Option<&str>) -> Priority {
        receipt.map_or(Priority::Normal, |receipt| self.ports.queue.class_of(receipt))
    }

    /// Records up to which instant messages have flowed, at most once a minute: a message has been received that should
    /// arrive at that instant, from the queue of this class. It only helps the tick: if it can't be written, the tick
    /// decides by other signs.
    pub(crate) async fn note_received(&self, name: &QueueName, class: Priority, arrived: Timestamp) {
        let now = self.now();
        // A message that was received early says nothing about messages for future instants.
        let mark = Mark { arrived: arrived.min(now), noted_at: now };
        let moves = |record: &QueueRecord| {
            let moved = record.marked(class, mark)?;
            Some(moved.with_workers(&self.seen.of(name), now).unwrap_or(moved))
        };
        let known = match self.record(name).await {
            Ok(known) => known,
            Err(error) => return tracing::debug!({ field::QUEUE_NAME } = %name, %error, "watermark not read"),
        };
        if known.as_ref().is_some_and(|record| record.marked(class, mark).is_none()) {
            return self.note_workers(name).await;
        }
        self.seen.noted(name, now);
        if let Err(error) = self.write_queue(name, moves).await {
            tracing::debug!({ field::QUEUE_NAME } = %name, %error, "watermark not written");
        }
    }

    /// The queue's record; it may be a few seconds old.
    pub(crate) async fn record(&self, name: &QueueName) -> Result<Option<QueueRecord>, ServiceError> {
        if let Some(known) = self.queues.lookup(name, self.now()) {
            return Ok(known.record);
        }
        let now = self.now();
        let record = self.with_retries(|| self.ports.store.recent_queue(name)).await?;
        self.queues.store(name, record.clone(), now);
        Ok(record)
    }

    /// Whether the queue has a record. Once it is known to have one, this reads nothing.
    pub(crate) async fn has_record(&self, name: &QueueName) -> Result<bool, ServiceError> {
        Ok(self.queues.has_record(name) || self.record(name).await?.is_some())
    }

    /// The defaults of a kind, which are empty if it has none. They may be a few seconds old, and for a minute none may
    /// be found for a queue that had none.
    pub(crate) async fn defaults(&self, name: &QueueName, kind: &TaskKind) -> Result<Policies, ServiceError> {
        if let Some(known) = self.queues.defaults(name, kind, self.now()) {
            return Ok(known);
        }
        let record = self.record(name).await?;
        let defaults = record.and_then(|mut record| record.kinds.remove(kind));
        Ok(defaults.map(|defaults| defaults.policies).unwrap_or_default())
    }

    /// The queue's current record.
    pub(crate) async fn fresh_record(&self, name: &QueueName) -> Result<Option<QueueRecord>, ServiceError> {
        let now = self.now();
        let record = self.with_retries(|| self.ports.store.queue(name)).await?;
        self.queues.store(name, record.clone(), now);
        Ok(record)
    }

    /// Changes the queue's record. Returns the written record; `None` if there was nothing to change.
    pub(crate) async fn write_queue(
        &self,
        name: &QueueName,
        change: impl Fn(&QueueRecord) -> Option<QueueRecord>,
    ) -> Result<Option<QueueRecord>, ServiceError> {
        let mut tries = Tries::default();
        loop {
            let stored = self.with_retries(|| self.ports.store.queue(name)).await?;
            let current = stored.unwrap_or_else(|| QueueRecord::new(name.clone(), self.new_nonce()));
            let Some(changed) = change(&current) else {
                self.queues.store(name, (current.version > 0).then_some(current), self.now());
                return Ok(None);
            };
            let record = QueueRecord { version: current.version + 1, nonce: self.new_nonce(), ..changed };
            let writes = [Write::put(record.clone(), Condition::Follows)];
            match self.with_retries(|| self.ports.store.commit(&writes)).await {
                Ok(()) => {
                    self.queues.store(name, Some(record.clone()), self.now());
                    return Ok(Some(record));
                }
                Err(StoreError::Conflict { .. }) => self.once_more(&mut tries, WAIT).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes sure that the queue exists, without creating it.
    pub(crate) async fn require_queue(&self, name: &QueueName) -> Result<(), ServiceError> {
        if !self.ports.queue.knows(name) {
            return Err(unknown_queue(name));
        }
        // Such an adapter creates no queue.
        if self.ports.queue.traits().finds_by_name && !self.ports.queue.open(name).await? {
            return Err(unknown_queue(name));
        }
        Ok(())
    }

    /// All queues of tasks, by name. Those that are found by their names are listed by their records, each from its
    /// first task or its first worker on, as long as it exists.
    pub(crate) async fn queue_names(&self) -> Result<Vec<QueueName>, ServiceError> {
        let now = self.now();
        let mut names = self.ports.queue.names();
        if self.ports.queue.traits().finds_by_name {
            let mut recorded = self.queues.listed(now);
            if recorded.is_none() {
                let records = self.remembered_queues().await?.into_iter();
                let read: Vec<_> = records.map(|record| record.name).collect();
                self.queues.list(read.clone(), now);
                recorded = Some(read);
            }
            let recorded = recorded.unwrap_or_default();
            for name in recorded {
                if self.ports.queue.knows(&name) && self.ports.queue.open(&name).await? {
                    names.push(name);
                }
            }
            names.sort_unstable();
            names.dedup();
        }
        names.retain(|name| !name.is_reserved());
        Ok(names)
    }

    /// How many tasks of each queue workers have, as far as the store counts them: messages that don't outlive the process
    /// lack those from before its start.
    fn leased(&self) -> Result<HashMap<QueueName, u64>, ServiceError> {
        let running = self.ports.store.traits().tasks.map(TaskIndex::running).transpose()?;
        Ok(running.into_iter().flatten().collect())
    }

    async fn info(
        &self,
        name: QueueName,
        oldest_at: Option<Timestamp>,
        leased: &HashMap<QueueName, u64>,
    ) -> Result<QueueInfo, ServiceError> {
        let mut depth = self.ports.queue.depth(&name).await?;
        depth.in_flight = depth.in_flight.max(leased.get(&name).copied().unwrap_or_default());
        let record = self.record(&name).await?;
        let paused = record.as_ref().is_some_and(|record| record.paused);
        let by = record.as_ref().and_then(|record| record.by.clone());
        let (workflows, provides) = record
            .map(|record| (record.workflows.into_keys().collect(), record.provides.into_keys().collect()))
            .unwrap_or_default();
        Ok(QueueInfo { name, paused, depth, workflows, provides, oldest_at, by })
    }

    /// Since when the oldest task that is ready could have been claimed.
    pub(crate) async fn oldest(&self, name: &QueueName) -> Result<Option<Timestamp>, ServiceError> {
        if let Some(index) = self.ports.store.traits().tasks {
            return Ok(index.oldest(name, self.now())?);
        }
        let filter = TaskFilter {
            queue: Some(name.clone()),
            statuses: vec![Status::Pending],
            ..TaskFilter::default()
        };
        let page = self.list(&filter, OLDEST_READ_MAX, None).await?;
        let now = self.now();
        let waiting = page.items.iter().filter_map(|task| match &task.state {
            State::Pending(pending) => Some(pending.available_at).filter(|at| *at <= now),
            State::Running(_) | State::Ended(_) => None,
        });
        Ok(waiting.min())
    }
}

#[cfg(test)]
mod tests;
