//! The tick and the timers of a local system: a tick once a minute, as from the schedule on AWS, and a consumer of
//! timers.

use std::sync::Arc;

use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::time::Timestamp;
use tickover_service::Service;
use tickover_service::memory::MemoryQueue;
use tickover_service::ports::{Queue as _, Received};
use tickover_service::warn_unless_logged;
use tokio::sync::Semaphore;

/// How long a tick or a part of a sweep may run. The next one continues where it stopped.
const BUDGET: Millis = Millis::from_secs(50);
/// Longer than the handling of any timer takes.
const VISIBILITY: Millis = Millis::from_secs(60);
const BATCH: usize = 10;
const POLL: Millis = Millis::from_secs(20);
/// Timers handled concurrently.
const TIMERS_CONCURRENT: usize = 128;
/// How often a message is tried before it is dropped: here is no dead-letter queue.
const RECEIVES_MAX: u32 = 5;

/// When ticks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// The time between two ticks: one minute as on AWS, except in some tests.
    pub every: Millis,
    /// How late each tick is. A schedule on AWS may be up to a minute late.
    pub late: Millis,
}

impl Default for Ticks {
    fn default() -> Self {
        Self { every: Millis::from_secs(60), late: Millis::ZERO }
    }
}

impl Ticks {
    /// The first tick after `last`, or after `now` if that is later. If the clock was set back, ticks go by the new time.
    fn next(self, last: Timestamp, now: Timestamp) -> Timestamp {
        let every = i64::try_from(self.every.as_u64().max(1)).unwrap_or(i64::MAX);
        let now = now.minus(self.late);
        let after = if last > now.plus(self.every) { now } else { last.max(now) }.as_millis();
        Timestamp::from_millis((after.div_euclid(every) + 1).saturating_mul(every))
    }
}

/// Runs ticks forever: one at once, for what was missed while no process ran, and then on time.
pub(crate) async fn tick_forever(service: Service, ticks: Ticks) {
    let mut scheduled_at = service.now();
    loop {
        let ticking = service.clone();
        // In a separate Tokio task: a panic here must not end the ticks.
        let tick = tokio::spawn(async move {
            let stop_at = ticking.now().plus(BUDGET);
            ticking.tick(scheduled_at, stop_at).await
        });
        match tick.await {
            Ok(Ok(report)) => tracing::debug!(?report, "tick"),
            Ok(Err(error)) => warn_unless_logged!(error; %error, "tick failed; the next one continues"),
            Err(error) => tracing::error!(%error, "tick panicked; the next one continues"),
        }
        let now = service.now();
        scheduled_at = ticks.next(scheduled_at, now);
        service.clock().sleep_until(scheduled_at.plus(ticks.late)).await;
        if service.now() < now {
            follow_the_clock(&service, now).await;
        }
    }
}

/// The clock was set back: what is planned by the old time is planned anew.
async fn follow_the_clock(service: &Service, before: Timestamp) {
    tracing::warn!(by = %before.since(service.now()), "the clock was set back: crons follow it");
    if let Err(error) = service.plan_crons_anew().await {
        warn_unless_logged!(error; %error, "not every cron follows the clock that was set back");
    }
}

/// Handles timers as they arrive, forever.
pub(crate) async fn fire_forever(service: Service, queue: Arc<MemoryQueue>) {
    let places = Arc::new(Semaphore::new(TIMERS_CONCURRENT));
    let timers = QueueName::timers();
    loop {
        let received = match queue.receive(&timers, BATCH, VISIBILITY, POLL).await {
            Ok(received) => received,
            // The queue exists for as long as the process.
            Err(error) => {
                return tracing::error!(%error, "no queue of timers: the tick alone enforces deadlines");
            }
        };
        for message in received {
            let (service, queue) = (service.clone(), Arc::clone(&queue));
            let place = Arc::clone(&places).acquire_owned().await;
            tokio::spawn(async move {
                fire(&service, &queue, message).await;
                drop(place);
            });
        }
    }
}

async fn fire(service: &Service, queue: &MemoryQueue, message: Received) {
    let stop_at = service.now().plus(BUDGET);
    match service.fire(&message, stop_at).await {
        Ok(fired) => tracing::trace!(?fired, "timer"),
        Err(error) if error.is_retryable() && message.receive_count < RECEIVES_MAX => {
            return warn_unless_logged!(error; %error, "timer not handled; it is delivered again");
        }
        Err(error) if error.is_logged() => tracing::debug!(%error, "timer dropped; the tick does its work"),
        Err(error) => tracing::error!(%error, "timer dropped"),
    }
    if let Err(error) = queue.delete(&QueueName::timers(), &message.receipt).await {
        tracing::warn!(%error, "timer not deleted; it is delivered again and has no effect");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_at_full_minutes_and_missed_ones_are_skipped() {
        let at = Timestamp::from_millis;
        let ticks = Ticks::default();
        assert_eq!(ticks.next(at(61_500), at(61_500)), at(120_000));
        assert_eq!(ticks.next(at(120_000), at(120_000)), at(180_000));
        assert_eq!(ticks.next(at(120_000), at(500_000)), at(540_000));
        // A tick that is 40 s late still counts for its own minute and isn't skipped.
        let late = Ticks { late: Millis::from_secs(40), ..ticks };
        assert_eq!(late.next(at(120_000), at(160_001)), at(180_000));
        assert_eq!(late.next(at(120_000), at(215_000)), at(180_000));
    }

    #[test]
    fn ticks_go_on_after_the_clock_was_set_back() {
        let at = Timestamp::from_millis;
        let ticks = Ticks::default();
        assert_eq!(ticks.next(at(7_200_000), at(3_600_001)), at(3_660_000));
        // By less than a tick: none is repeated.
        assert_eq!(ticks.next(at(7_200_000), at(7_199_000)), at(7_260_000));
    }
}
