//! The real clock and the real random numbers: the only file that reads either.

use std::time::Duration;

use async_trait::async_trait;
use rand::Rng as _;
use tickover_core::duration::Millis;
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
        sleep_until(instant, || self.now()).await;
    }
}

/// Sleeps until a clock shows this instant. If the clock is set back meanwhile, nobody waits for that time again: whoever
/// waited looks at the clock, and decides.
async fn sleep_until(instant: Timestamp, now: impl Fn() -> Timestamp) {
    let mut left = instant.since(now());
    while !left.is_zero() {
        tokio::time::sleep(Duration::from_millis(left.as_u64())).await;
        // A timer may fire a little early against this clock.
        let rest = instant.since(now());
        left = if rest < left { rest } else { Millis::ZERO };
    }
}

/// A cryptographic random generator, seeded by the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    fn fill(&self, bytes: &mut [u8]) {
        rand::rng().fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicI64, Ordering};

    use tickover_core::id::LeaseId;

    use super::*;

    /// It shows the same instant after each sleep, as if it were set back by as long.
    #[tokio::test]
    async fn a_clock_that_is_set_back_is_not_waited_for_again() {
        let sleep = sleep_until(Timestamp::from_millis(5), || Timestamp::EPOCH);
        tokio::time::timeout(Duration::from_secs(10), sleep).await.unwrap();
    }

    #[tokio::test]
    async fn a_timer_that_fires_early_is_waited_for_again() {
        let shown = AtomicI64::new(0);
        let now = || Timestamp::from_millis(shown.fetch_add(1, Ordering::Relaxed));
        sleep_until(Timestamp::from_millis(3), now).await;
        assert_eq!(shown.load(Ordering::Relaxed), 4, "the clock was read until it showed the instant");
    }

    #[test]
    fn leases_have_128_bits_none_of_which_is_ever_fixed_and_none_comes_twice() {
        let leases: Vec<[u8; LeaseId::LEN]> = (0..1_000)
            .map(|_| {
                let mut bytes = [0; LeaseId::LEN];
                SystemIds.fill(&mut bytes);
                bytes
            })
            .collect();
        assert_eq!(LeaseId::LEN * 8, 128);
        assert_eq!(leases.iter().collect::<BTreeSet<_>>().len(), leases.len());
        for bit in 0..128 {
            let set = leases.iter().filter(|lease| lease[bit / 8] >> (bit % 8) & 1 == 1).count();
            assert!((300..700).contains(&set), "bit {bit} was set {set} times of 1000");
        }
    }
}
