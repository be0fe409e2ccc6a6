//! One process's clock: off by up to a second from the world's, and liable to jump within that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::memory::ManualClock;
use tickover_service::ports::Clock;

/// What a process takes for the time.
#[derive(Debug)]
pub struct SimClock {
    world: Arc<ManualClock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Ahead of the world's clock; behind it when negative.
    ahead_ms: i64,
    /// The whole process stands still until then, by the world's clock.
    frozen_until: Timestamp,
}

impl SimClock {
    /// A clock that is ahead of the world's by so much.
    pub fn new(world: Arc<ManualClock>, ahead_ms: i64) -> Self {
        Self { world, state: Mutex::new(State { ahead_ms, frozen_until: Timestamp::EPOCH }) }
    }

    /// From now on it is ahead by so much.
    pub fn jump(&self, ahead_ms: i64) {
        self.state().ahead_ms = ahead_ms;
    }

    /// Stops the process for that long.
    pub fn freeze(&self, span: Millis) {
        self.state().frozen_until = self.world.now().plus(span);
    }

    /// Returns once the process may go on.
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
        shifted(self.world.now(), self.state().ahead_ms)
    }

    async fn sleep_until(&self, instant: Timestamp) {
        // It may have jumped back meanwhile.
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
