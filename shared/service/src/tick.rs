//! The tick: processes everything that is due now, and what will be due before the tick after the next has surely run.
//!
//! It goes shard by shard, earliest first, until nothing is left or its time is up. It processes what is due and hands
//! over to timers what comes in its slot. A backlog that is more than one tick's work continues in other calls, by
//! messages of the timers queue. Overlapping, repeated and missed ticks are harmless, because each record is decided
//! under its own condition, and a superfluous timer finds nothing to do.
//!
//! Expiries need the store alone: queues are asked only where a hint may be lost, and only briefly.

mod brief;
mod chain;
mod handover;
mod resend;
mod sleeps;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join;
use futures::stream::{self, StreamExt as _};
use tickover_core::decision::DueReply;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_core::queue::{QueueView, Reachability};
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
use sleeps::Waking;
use sweep::Reach;

/// Shards swept at the same time.
const SHARDS_AT_ONCE: usize = 4;

/// The counts of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TickReport {
    pub looked_at: u64,
    /// Records whose deadline or timeout had passed.
    pub timed_out: u64,
    /// Records whose hint was sent.
    pub dispatched: u64,
    /// Records that were not due yet; their due slot was moved.
    pub rearmed: u64,
    /// Records that could not be processed; they stay due, and the log has the reason.
    pub failed: u64,
    /// Future instants that were handed over to timers.
    pub timers: u64,
    /// Shards whose backlog was passed to another call by message.
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

/// By queue and by the priority of the messages.
type Views = HashMap<(QueueName, Priority), Arc<OnceCell<QueueView>>>;

/// The job of one call, and what it has found so far.
struct Job {
    /// Entries due at or before this are processed.
    until: Timestamp,
    /// Instants before this are handed over to timers.
    slot_end: Timestamp,
    /// No new work starts after this, by the service's clock.
    stop_at: Timestamp,
    /// How far a shard is swept before the rest is passed to another call.
    reach: Reach,
    /// What earlier ticks have recorded, and what this one will record.
    ledger: Ledger,
    /// Hints of long sleeps that are sent when all shards have been read.
    held: Mutex<Vec<Waking>>,
    /// The state of queues for the messages of a priority, read once each.
    views: Mutex<Views>,
}

impl Job {
    fn new(until: Timestamp, slot_end: Timestamp, stop_at: Timestamp, reach: Reach) -> Self {
        let (held, views) = (Mutex::default(), Mutex::default());
        Self { until, slot_end, stop_at, reach, ledger: Ledger::default(), held, views }
    }
}

impl Service {
    /// The tick of the minute `scheduled_at`: processes everything due now, and hands over the instants before three
    /// minutes after that minute. Starts no new work after `stop_at`, by the service's clock.
    ///
    /// The service's own clock decides what is due. For a manual tick, `scheduled_at` is now.
    pub async fn tick(
        &self,
        scheduled_at: Timestamp,
        stop_at: Timestamp,
    ) -> Result<TickReport, ServiceError> {
        let (until, service) = (self.now(), self.with_short_timeouts());
        let job = Job::new(until, slot_end(scheduled_at, until), stop_at, Reach::Share);
        let sweeps = stream::iter(self.shards_shuffled())
            .map(|shard| service.tick_shard(shard, &job))
            .buffer_unordered(SHARDS_AT_ONCE)
            .collect::<Vec<Result<TickReport, ServiceError>>>();
        // At the same time: a backlog that takes the whole of the tick must not keep it from the lines. Boxed, because the
        // future of each tick would contain all of this.
        let (reports, patrol) = join(sweeps, Box::pin(service.patrol_lines(stop_at))).await;
        // One shard's error must not hide the results of the others, but it is returned.
        let mut total = TickReport::default();
        let mut trouble = None;
        for report in reports {
            match report {
                Ok(report) => total = total.add(report),
                Err(error) => trouble = Some(error),
            }
        }
        match patrol {
            Ok(finished) => total.out_of_time |= !finished,
            Err(error) => trouble = Some(error),
        }
        // Nothing says yet that these were sent: if this process dies, the next tick sends them.
        total.dispatched += service.wake_held(&job).await;
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
        // It isn't known how much of the shard's slot was handed over.
        job.ledger.fell_behind(shard, Timestamp::EPOCH);
        swept
    }

    /// All shards, each time in another order: two concurrent ticks are seldom at the same shard, and if time is often
    /// up early, it isn't always the same shards that are skipped.
    fn shards_shuffled(&self) -> Vec<u16> {
        let mut shards: Vec<u16> = (0..self.limits.due_shards.max(1)).collect();
        self.shuffle(&mut shards);
        shards
    }

    /// The state of a queue for the messages of a priority in this tick, read once: a queue that doesn't answer isn't
    /// asked again for each record.
    async fn view(&self, queue: &QueueName, class: Priority, job: &Job) -> Result<QueueView, ServiceError> {
        let once = {
            let mut views = job.views.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(views.entry((queue.clone(), class)).or_default())
        };
        let view = *once.get_or_try_init(|| self.read_queue_view(queue, class)).await?;
        // A long sweep must not move parked records far ahead once the walks of a resumed queue have started.
        let paused = view.paused && self.is_paused(queue).await?;
        Ok(QueueView { paused, ..view })
    }

    async fn read_queue_view(&self, queue: &QueueName, class: Priority) -> Result<QueueView, ServiceError> {
        let (looks_empty, apart, reachability) = match self.ports.queue.class_depth(queue, class).await {
            Ok(there) => (there.depth.is_empty(), there.apart, Reachability::Reachable),
            Err(error) => {
                let reachability = match &error {
                    QueueError::Unknown { .. } => Reachability::NotConfigured,
                    QueueError::StaleReceipt | QueueError::Throttled | QueueError::Unavailable { .. } => {
                        Reachability::Unreachable
                    }
                };
                tracing::warn!(
                    { field::QUEUE_NAME } = %queue, %error, "work waits for a queue that doesn't answer"
                );
                metric::queue_without_answer(queue, reachability);
                (false, false, reachability)
            }
        };
        let record = self.record(queue).await?;
        let paused = record.as_ref().is_some_and(|record| record.paused);
        // That normal messages are received says nothing about those that wait apart from them.
        let there = if apart { class } else { Priority::Normal };
        let mark = record.and_then(|record| record.marks.get(&there).copied());
        let (watermark, marked_at) = mark.map(|mark| (mark.arrived, mark.noted_at)).unzip();
        Ok(QueueView { looks_empty, watermark, marked_at, reachability, paused })
    }
}
