//! The real clock and the real random numbers: the only file that reads either.

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
        // A timer may fire a little early against the wall clock, so the clock is read again.
        loop {
            let left = instant.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left.as_u64())).await;
        }
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

    use tickover_core::id::LeaseId;

    use super::*;

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
