//! What makes time pass in a local system: a tick once a minute, as the schedule on AWS brings it, and the consumer of
//! the timers that come in between.

use std::sync::Arc;

use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::time::Timestamp;
use tickover_service::Service;
use tickover_service::memory::MemoryQueue;
use tickover_service::ports::{Queue as _, Received};
use tokio::sync::Semaphore;

/// How long a tick, or a part of a sweep, may go on; the next one goes on where it stopped.
const BUDGET: Millis = Millis::from_secs(50);
/// Longer than anything a timer leads to takes.
const VISIBILITY: Millis = Millis::from_secs(60);
const BATCH: usize = 10;
const POLL: Millis = Millis::from_secs(20);
/// Timers dealt with at once.
const AT_ONCE: usize = 128;
/// Times that a message is tried before it is dropped: there is no dead-letter queue here to look at.
const RECEIVES_MAX: u32 = 5;

/// When ticks come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// How far apart they are: once a minute, as on AWS, unless a test has reasons.
    pub every: Millis,
    /// How long after its time each one comes. A schedule of AWS may be up to a minute late.
    pub late: Millis,
}

impl Default for Ticks {
    fn default() -> Self {
        Self { every: Millis::from_secs(60), late: Millis::ZERO }
    }
}

impl Ticks {
    /// The first tick after this one, or after now if that is later.
    fn next(self, last: Timestamp, now: Timestamp) -> Timestamp {
        let every = i64::try_from(self.every.as_u64().max(1)).unwrap_or(i64::MAX);
        let after = last.max(now.minus(self.late)).as_millis();
        Timestamp::from_millis((after.div_euclid(every) + 1).saturating_mul(every))
    }
}

/// Ticks for ever: at once, for what was missed while nothing ran, and then on time.
pub(crate) async fn tick_forever(service: Service, ticks: Ticks) {
    let mut scheduled_at = service.now();
    loop {
        let ticking = service.clone();
        // In a task of its own: were it to panic, the server would otherwise go on without a clock.
        let tick = tokio::spawn(async move {
            let stop_at = ticking.now().plus(BUDGET);
            ticking.tick(scheduled_at, stop_at).await
        });
        match tick.await {
            Ok(Ok(report)) => tracing::debug!(?report, "tick"),
            Ok(Err(error)) => tracing::warn!(%error, "tick failed; the next one goes on"),
            Err(error) => tracing::error!(%error, "tick panicked; the next one goes on"),
        }
        scheduled_at = ticks.next(scheduled_at, service.now());
        service.clock().sleep_until(scheduled_at.plus(ticks.late)).await;
    }
}

/// Takes timers as they come, for ever.
pub(crate) async fn fire_forever(service: Service, queue: Arc<MemoryQueue>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let timers = QueueName::timers();
    loop {
        let received = match queue.receive(&timers, BATCH, VISIBILITY, POLL).await {
            Ok(received) => received,
            // It is there for as long as the process is.
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
    match service.fire(&message.body, stop_at).await {
        Ok(fired) => tracing::trace!(?fired, "timer"),
        Err(error) if error.is_retryable() && message.receive_count < RECEIVES_MAX => {
            return tracing::warn!(%error, "timer not dealt with; it comes again");
        }
        Err(error) => tracing::error!(%error, "timer dropped"),
    }
    if let Err(error) = queue.delete(&QueueName::timers(), &message.receipt).await {
        tracing::warn!(%error, "timer not deleted; it comes again and finds nothing to do");
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
        // One that comes 40 s late stands for its own minute, and isn't skipped for its lateness.
        let late = Ticks { late: Millis::from_secs(40), ..ticks };
        assert_eq!(late.next(at(120_000), at(160_001)), at(180_000));
        assert_eq!(late.next(at(120_000), at(215_000)), at(180_000));
    }
}
