//! The tick: everything that is due now, and what will be before the tick after the next is sure to have come.
//!
//! Shard by shard, earliest first, until nothing is left or time is up. What is due is dealt with; what comes in the
//! tick's slot is handed to timers; a backlog that is more than one tick's work is handed to others through the same
//! queue. Overlapping, repeated and missed ticks are harmless, because each record is decided on under its own
//! condition, and a timer too many finds nothing to do.
//!
//! What passes with time needs the store alone: queues are asked only where a hint may be lost, and never for long.

mod brief;
mod chain;
mod handover;
mod rehint;
mod sweep;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{self, StreamExt as _};
use tickover_core::decision::DueReply;
use tickover_core::id::QueueName;
use tickover_core::queue::{QueueView, Standing};
use tickover_core::tick::slot_end;
use tickover_core::time::Timestamp;
use tokio::sync::OnceCell;

use crate::error::ServiceError;
use crate::metric;
use crate::ports::QueueError;
use crate::service::Service;
use crate::telemetry::field;
use handover::Ledger;
pub(crate) use handover::outgoing;
use sweep::Reach;

/// Shards swept at once.
const SHARDS_AT_ONCE: usize = 4;

/// What a tick did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TickReport {
    pub looked_at: u64,
    /// Those whose deadline or timeout had passed.
    pub timed_out: u64,
    /// Those whose hint was sent.
    pub dispatched: u64,
    /// Those that were looked at too early.
    pub rearmed: u64,
    /// Those that could not be dealt with; they stay due, and the log says why.
    pub failed: u64,
    /// Instants to come that were handed to timers.
    pub timers: u64,
    /// Shards whose backlog was handed to others.
    pub fanned_out: u64,
    /// Whether time was up before everything was done.
    pub out_of_time: bool,
}

impl TickReport {
    fn count(&mut self, reply: DueReply) {
        match reply {
            DueReply::TimedOut => self.timed_out += 1,
            DueReply::Dispatched => self.dispatched += 1,
            DueReply::Rearmed => self.rearmed += 1,
            DueReply::Waiting | DueReply::Nothing => {}
        }
    }

    fn add(mut self, other: Self) -> Self {
        self.looked_at += other.looked_at;
        self.timed_out += other.timed_out;
        self.dispatched += other.dispatched;
        self.rearmed += other.rearmed;
        self.failed += other.failed;
        self.timers += other.timers;
        self.fanned_out += other.fanned_out;
        self.out_of_time |= other.out_of_time;
        self
    }
}

/// What is to be done, and what is known so far.
struct Job {
    /// What is due at or before this is dealt with.
    until: Timestamp,
    /// Instants before this are handed to timers.
    slot_end: Timestamp,
    /// Nothing new is begun after this, by the service's clock.
    stop_at: Timestamp,
    /// How far a shard is swept before the rest is handed to others.
    reach: Reach,
    /// What earlier ticks have noted, and what this one will.
    ledger: Ledger,
    /// Queues as they were found, looked up once each.
    views: Mutex<HashMap<QueueName, Arc<OnceCell<QueueView>>>>,
}

impl Job {
    fn new(until: Timestamp, slot_end: Timestamp, stop_at: Timestamp, reach: Reach) -> Self {
        Self { until, slot_end, stop_at, reach, ledger: Ledger::default(), views: Mutex::default() }
    }
}

impl Service {
    /// The tick of the minute `scheduled_at`: deals with everything due now, and hands over what comes before
    /// three minutes after that minute. Begins nothing new after `stop_at`, by the service's clock.
    ///
    /// What is due is judged by the service's own clock. Run by hand, `scheduled_at` is simply now.
    pub async fn tick(
        &self,
        scheduled_at: Timestamp,
        stop_at: Timestamp,
    ) -> Result<TickReport, ServiceError> {
        let (until, service) = (self.now(), self.briefly());
        let job = Job::new(until, slot_end(scheduled_at, until), stop_at, Reach::Share);
        let reports: Vec<Result<TickReport, ServiceError>> = stream::iter(self.shards_shuffled())
            .map(|shard| service.tick_shard(shard, &job))
            .buffer_unordered(SHARDS_AT_ONCE)
            .collect()
            .await;
        // One shard's trouble must not hide what the others did, but it is reported.
        let mut total = TickReport::default();
        let mut trouble = None;
        for report in reports {
            match report {
                Ok(report) => total = total.add(report),
                Err(error) => trouble = Some(error),
            }
        }
        self.note_tick(&job).await;
        metric::tick(&total, self.now().since(until));
        trouble.map_or(Ok(total), Err)
    }

    async fn tick_shard(&self, shard: u16, job: &Job) -> Result<TickReport, ServiceError> {
        let swept = if self.now() >= job.stop_at {
            Ok(TickReport { out_of_time: true, ..TickReport::default() })
        } else {
            let swept = self.sweep_shard(shard, job).await;
            if swept.is_ok() {
                return swept;
            }
            swept
        };
        // Nobody knows how much of its slot was handed over.
        job.ledger.fell_behind(shard, Timestamp::EPOCH);
        swept
    }

    /// All shards, each time in another order: two ticks at once are seldom at the same one, and when time is up
    /// early it isn't always up for the same ones.
    fn shards_shuffled(&self) -> Vec<u16> {
        let mut shards: Vec<u16> = (0..self.limits.due_shards.max(1)).collect();
        self.shuffle(&mut shards);
        shards
    }

    /// A queue as this tick finds it, asked once: one that doesn't answer isn't asked again for each record.
    async fn view(&self, queue: &QueueName, job: &Job) -> Result<QueueView, ServiceError> {
        let once = {
            let mut views = job.views.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(views.entry(queue.clone()).or_default())
        };
        let view = *once.get_or_try_init(|| self.look_at_queue(queue)).await?;
        // A long sweep must not go on moving what is parked far ahead when the walks of a resumed queue have begun.
        let paused = view.paused && self.is_paused(queue).await?;
        Ok(QueueView { paused, ..view })
    }

    async fn look_at_queue(&self, queue: &QueueName) -> Result<QueueView, ServiceError> {
        let (looks_empty, standing) = match self.ports.queue.depth(queue).await {
            Ok(depth) => (depth.is_empty(), Standing::Answers),
            Err(error) => {
                let standing = match &error {
                    QueueError::Unknown { .. } => Standing::Missing,
                    QueueError::StaleReceipt | QueueError::Throttled | QueueError::Unavailable { .. } => {
                        Standing::Silent
                    }
                };
                tracing::warn!(
                    { field::QUEUE_NAME } = %queue, %error, "work waits for a queue that doesn't answer"
                );
                metric::queue_without_answer(queue, standing);
                (false, standing)
            }
        };
        let record = self.record(queue).await?;
        let paused = record.as_ref().is_some_and(|record| record.paused);
        let (watermark, marked_at) =
            record.map_or((None, None), |record| (record.watermark, record.marked_at));
        Ok(QueueView { looks_empty, watermark, marked_at, standing, paused })
    }
}
