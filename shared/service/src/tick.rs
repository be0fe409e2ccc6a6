//! The tick: everything that is due now, and what will be before the tick after the next is sure to have come.
//!
//! Shard by shard, earliest first, until nothing is left or time is up. What is due is dealt with; what comes in the
//! tick's slot is handed to timers; a backlog that is more than one tick's work is handed to others through the same
//! queue. Overlapping, repeated and missed ticks are harmless, because each record is decided on under its own
//! condition, and a timer too many finds nothing to do.

mod handover;
mod rehint;
mod sweep;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures::stream::{self, StreamExt as _};
use tickover_core::decision::DueReply;
use tickover_core::id::QueueName;
use tickover_core::queue::QueueView;
use tickover_core::tick::slot_end;
use tickover_core::time::Timestamp;

use crate::error::ServiceError;
use crate::metric;
use crate::service::Service;
use handover::Ledger;
pub(crate) use handover::outgoing;
use sweep::Reach;

/// Shards swept at once.
const SHARDS_AT_ONCE: usize = 4;

/// What a tick did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TickReport {
    /// Records looked at.
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
    views: Mutex<HashMap<QueueName, QueueView>>,
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
        let until = self.now();
        let job = Job::new(until, slot_end(scheduled_at, until), stop_at, Reach::Share);
        let reports: Vec<Result<TickReport, ServiceError>> = stream::iter(self.shards_shuffled())
            .map(|shard| self.sweep_shard(shard, &job))
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
        let all_seen = trouble.is_none() && !total.out_of_time;
        self.note_tick(&job, all_seen).await;
        metric::tick(&total, self.now().since(until));
        trouble.map_or(Ok(total), Err)
    }

    /// Sweeps one shard for somebody who had not the time, until nothing is left in it.
    pub(crate) async fn sweep_rest(
        &self,
        shard: u16,
        stop_at: Timestamp,
    ) -> Result<TickReport, ServiceError> {
        let until = self.now();
        let job = Job::new(until, until, stop_at, Reach::Whole);
        self.sweep_shard(shard, &job).await
    }

    /// All shards, each time in another order: two ticks at once are seldom at the same one, and when time is up
    /// early it isn't always up for the same ones.
    fn shards_shuffled(&self) -> Vec<u16> {
        let mut shards: Vec<u16> = (0..self.limits.due_shards.max(1)).collect();
        self.shuffle(&mut shards);
        shards
    }

    async fn view(&self, queue: &QueueName, job: &Job) -> Result<QueueView, ServiceError> {
        if let Some(view) = job.views.lock().unwrap_or_else(PoisonError::into_inner).get(queue) {
            return Ok(*view);
        }
        let looks_empty = self.ports.queue.depth(queue).await?.is_empty();
        let record = self.record(queue).await?;
        let paused = record.as_ref().is_some_and(|record| record.paused);
        let view = QueueView { looks_empty, watermark: record.and_then(|record| record.watermark), paused };
        job.views.lock().unwrap_or_else(PoisonError::into_inner).insert(queue.clone(), view);
        Ok(view)
    }
}
