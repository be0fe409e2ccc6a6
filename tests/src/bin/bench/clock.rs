//! The machine's clock, shifted into the future.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::ports::Clock;
use tickover_service::system::SystemClock;

/// Runs at the speed of real time, so that budgets and waits have their real lengths. The benchmark can skip long
/// spans.
#[derive(Debug, Default)]
pub(crate) struct ShiftedClock {
    ahead_ms: AtomicU64,
}

impl ShiftedClock {
    /// Skips a span. Waits that have already started don't become shorter.
    pub(crate) fn skip(&self, span: Millis) {
        self.ahead_ms.fetch_add(span.as_u64(), Ordering::SeqCst);
    }

    fn ahead(&self) -> Millis {
        Millis::new(self.ahead_ms.load(Ordering::SeqCst))
    }
}

#[async_trait]
impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(self.ahead())
    }

    async fn sleep_until(&self, instant: Timestamp) {
        SystemClock.sleep_until(instant.minus(self.ahead())).await;
    }
}
