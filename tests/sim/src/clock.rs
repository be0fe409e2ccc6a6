//! One process's clock: it differs by up to a second from the world's, and may jump within that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::memory::ManualClock;
use tickover_service::ports::Clock;

/// How often a process may read the time at one instant. A process that reads it more often is in an endless loop in
/// which the time can't advance: such a run would never end.
const ASKED_AT_MOST: u32 = 2_000_000;

/// The time as a process sees it.
#[derive(Debug)]
pub struct SimClock {
    world: Arc<ManualClock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Ahead of the world's clock; behind it when negative.
    ahead_ms: i64,
    /// The whole process is frozen until then, by the world's clock.
    frozen_until: Timestamp,
    /// The instant at which it last read the time, and how often.
    asked: (Timestamp, u32),
}

impl SimClock {
    /// A clock that is ahead of the world's by this much.
    pub fn new(world: Arc<ManualClock>, ahead_ms: i64) -> Self {
        let (frozen_until, asked) = (Timestamp::EPOCH, (Timestamp::EPOCH, 0));
        Self { world, state: Mutex::new(State { ahead_ms, frozen_until, asked }) }
    }

    /// From now on it is ahead by this much.
    pub fn jump(&self, ahead_ms: i64) {
        self.state().ahead_ms = ahead_ms;
    }

    /// Freezes the process for that long.
    pub fn freeze(&self, span: Millis) {
        self.state().frozen_until = self.world.now().plus(span);
    }

    /// Returns once the process isn't frozen.
    pub async fn thaw(&self) {
        let until = self.state().frozen_until;
        self.world.sleep_until(until).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let now = self.world.now();
        let mut state = self.state();
        state.asked = if state.asked.0 == now { (now, state.asked.1 + 1) } else { (now, 0) };
        assert!(state.asked.1 < ASKED_AT_MOST, "a process is in an endless loop at {now:?}");
        shifted(now, state.ahead_ms)
    }

    async fn sleep_until(&self, instant: Timestamp) {
        // The clock may have jumped back meanwhile.
        while self.now() < instant {
            let by_world = shifted(instant, -self.state().ahead_ms);
            self.world.sleep_until(by_world).await;
            self.thaw().await;
        }
    }
}

fn shifted(instant: Timestamp, by_ms: i64) -> Timestamp {
    Timestamp::from_millis(instant.as_millis().saturating_add(by_ms))
}
