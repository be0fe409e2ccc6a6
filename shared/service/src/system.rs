//! The real clock and the real randomness: the only place that reads either.

use std::time::Duration;

use async_trait::async_trait;
use rand::Rng as _;
use tickover_core::time::Timestamp;

use crate::ports::{Clock, Ids};

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp::from_millis(since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
    }

    async fn sleep_until(&self, instant: Timestamp) {
        // A timer may fire a little early against the wall clock; looking again costs nothing.
        loop {
            let left = instant.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left.as_u64())).await;
        }
    }
}

/// A cryptographic generator, seeded by the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    fn fill(&self, bytes: &mut [u8]) {
        rand::rng().fill_bytes(bytes);
    }
}
