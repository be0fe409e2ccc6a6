//! The clock of a test, and Tokio's with it.
//!
//! While a test lets time pass, Tokio's clock is paused: it moves only when nothing can run, and then to its earliest
//! timer. So to move both clocks, the test sleeps by Tokio's until the system's next instant. If a step has an earlier
//! timer, Tokio stops there, and the test's clock follows.

use std::cell::Cell;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake as _;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::{Either, select};
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::memory::ManualClock;
use tickover_service::ports::Clock;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::system::Progress;

/// Tokio's timers count whole milliseconds since its own start.
const TICK_NS: u64 = 1_000_000;

thread_local! {
    /// How many [`Standstill`]s there are. Those of one runtime are on one thread.
    static STANDSTILLS: Cell<usize> = const { Cell::new(0) };
    /// Whether the first of them has paused the clock.
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

/// The clock of a test. It doesn't move by itself.
pub(super) struct TestClock {
    manual: ManualClock,
    passing: Mutex<Option<Passing>>,
}

/// Time that passes by Tokio's clock.
struct Passing {
    from: Timestamp,
    begun: Instant,
    runtime: Handle,
    progress: Arc<Progress>,
}

impl TestClock {
    pub(super) fn new(beginning: Timestamp) -> Self {
        Self { manual: ManualClock::new(beginning), passing: Mutex::default() }
    }

    /// The next instant for which something waits by this clock.
    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        self.manual.next_wake()
    }

    /// Lets time pass until this instant, or until something is woken earlier by Tokio's clock. Returns whether the
    /// instant has come.
    pub(super) async fn pass(&self, until: Timestamp, progress: &Arc<Progress>) -> bool {
        let span = until.since(self.manual.now());
        let Some(runtime) = Handle::try_current().ok().filter(|_| !span.is_zero()) else {
            self.manual.set(until);
            return true;
        };
        // A wake that was seen is no news.
        let _ = progress.woken.notified().now_or_never();
        if progress.is_made() {
            return false;
        }
        let passing = Passing {
            from: self.manual.now(),
            begun: Instant::now(),
            runtime,
            progress: Arc::clone(progress),
        };
        *self.passing() = Some(passing);
        let _over = Over(self);
        let has_come = {
            let slept = pin!(tokio::time::sleep(Duration::from_millis(span.as_u64())));
            let woken = pin!(progress.woken.notified());
            matches!(select(slept, woken).await, Either::Left(_))
        };
        if has_come {
            *self.passing() = None;
            self.manual.set(until);
        }
        has_come
    }

    /// Moves this clock to where Tokio's is, if time passes.
    fn follow(&self) {
        let now = {
            let passing = self.passing();
            let Some(Passing { from, begun, runtime, progress }) = passing.as_ref() else { return };
            // Whoever asks for the time may have work for the system.
            progress.wake_by_ref();
            // In a thread of its own, there would be no runtime.
            let _entered = runtime.enter();
            let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            from.plus(Millis::new(ms))
        };
        if now > self.manual.now() {
            self.manual.set(now);
        }
    }

    fn passing(&self) -> MutexGuard<'_, Option<Passing>> {
        self.passing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.follow();
        self.manual.now()
    }

    async fn sleep_until(&self, instant: Timestamp) {
        self.manual.sleep_until(instant).await;
    }
}

/// Ends the passing of time, also if the test no longer waits.
struct Over<'a>(&'a TestClock);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.follow();
        *self.0.passing() = None;
    }
}

/// Tokio's clock stands still as long as one of these exists.
pub(super) struct Standstill(());

impl Standstill {
    /// Pauses Tokio's clock, unless the test has paused it. `None` outside of Tokio, where no step can use its timers.
    pub(super) async fn begin() -> Option<Self> {
        Handle::try_current().ok()?;
        STANDSTILLS.set(STANDSTILLS.get() + 1);
        let standstill = Self(());
        if !is_standing() {
            tokio::time::pause();
            IS_OURS.set(true);
            align().await;
        }
        Some(standstill)
    }
}

impl Drop for Standstill {
    fn drop(&mut self) {
        let left = STANDSTILLS.get().saturating_sub(1);
        STANDSTILLS.set(left);
        if left == 0 && IS_OURS.replace(false) && Handle::try_current().is_ok() && is_standing() {
            tokio::time::resume();
        }
    }
}

/// Whether Tokio's clock is paused.
fn is_standing() -> bool {
    let (by_tokio, real) = (Instant::now(), std::time::Instant::now());
    while real.elapsed().is_zero() {
        std::hint::spin_loop();
    }
    Instant::now() == by_tokio
}

/// Moves Tokio's clock, by less than 25 ms, to a whole tick. Between two ticks, each sleep of a step would last 1 ms longer
/// than it says. Tokio doesn't tell how far the last tick is away, so the distance is found by halving.
async fn align() {
    let (mut least, mut end) = (0, TICK_NS);
    while end - least > 1 {
        let middle = least.midpoint(end);
        // Its time comes with the next tick.
        let mut timer = pin!(tokio::time::sleep(Duration::from_nanos(1)));
        let _ = futures::poll!(timer.as_mut());
        tokio::time::advance(Duration::from_nanos(TICK_NS - middle)).await;
        (least, end) =
            if timer.is_elapsed() { (0, end - middle) } else { (TICK_NS - (middle - least), TICK_NS) };
    }
    if least > 0 {
        tokio::time::advance(Duration::from_nanos(TICK_NS - least)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleeps_by_an_aligned_clock_last_exactly_as_long_as_they_say() {
        for _ in 0..20 {
            let standstill = Standstill::begin().await;
            for ms in [1, 7, 1_000] {
                let begun = Instant::now();
                tokio::time::sleep(Duration::from_millis(ms)).await;
                assert_eq!(begun.elapsed(), Duration::from_millis(ms));
            }
            drop(standstill);
        }
    }

    #[tokio::test]
    async fn tokios_clock_runs_again_when_the_last_standstill_is_over() {
        let first = Standstill::begin().await;
        let second = Standstill::begin().await;
        drop(first);
        assert!(is_standing());
        drop(second);
        assert!(!is_standing());
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_the_test_has_paused_stays_paused() {
        drop(Standstill::begin().await);
        assert!(is_standing());
    }

    #[test]
    fn outside_of_tokio_the_clock_moves_alone() {
        let (clock, progress) = (TestClock::new(Timestamp::from_millis(0)), Arc::default());
        assert!(Standstill::begin().now_or_never().unwrap().is_none());
        assert_eq!(clock.pass(Timestamp::from_millis(5), &progress).now_or_never(), Some(true));
        assert_eq!(clock.now(), Timestamp::from_millis(5));
    }
}
