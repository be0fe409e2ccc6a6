//! A queue's own time, which never goes back: a delay lasts as long as it was to last, whatever is done to the clock.

use std::sync::{Arc, Mutex, PoisonError};

use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;

use crate::ports::Clock;

/// The time of a clock, and on top of it whatever the clock was set back by.
pub(super) struct SteadyTime {
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
}

struct Seen {
    last: Timestamp,
    set_back_by: Millis,
}

impl SteadyTime {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let seen = Mutex::new(Seen { last: clock.now(), set_back_by: Millis::ZERO });
        Self { clock, seen }
    }

    /// The clock was set back before this process, which knows of this instant only from its store.
    pub(super) fn begin_after(&self, instant: Timestamp) {
        let now = self.now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.set_back_by = seen.set_back_by.saturating_add(instant.since(now));
    }

    pub(super) fn now(&self) -> Timestamp {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: a time that was read earlier would look as if the clock had been set back.
        let now = self.clock.now().plus(seen.set_back_by);
        if now < seen.last {
            seen.set_back_by = seen.set_back_by.saturating_add(seen.last.since(now));
        } else {
            seen.last = now;
        }
        seen.last
    }

    /// What the clock shows at an instant of this time.
    pub(super) fn on_the_clock(&self, instant: Timestamp) -> Timestamp {
        instant.minus(self.seen.lock().unwrap_or_else(PoisonError::into_inner).set_back_by)
    }

    pub(super) async fn sleep_until(&self, instant: Timestamp) {
        self.clock.sleep_until(self.on_the_clock(instant)).await;
    }
}
