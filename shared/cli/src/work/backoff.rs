//! How long to wait before a call is retried.

use std::time::Duration;

use tickover::client::ClientError;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);
/// The longest `Retry-After` that is respected: the leases of running tasks would expire in a longer wait.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(15);

/// The wait after failure number `tries` (from 0). It doubles each time. It is random within its upper half, so that
/// workers that failed together don't retry together. It is never shorter than the server asks for.
pub(super) fn delay(tries: u32, error: &ClientError) -> Duration {
    let doubled = FIRST.saturating_mul(1_u32.checked_shl(tries).unwrap_or(u32::MAX)).min(LONGEST);
    let spread = doubled.mul_f64(rand::random_range(0.5..=1.0));
    spread.max(error.retry_after().map(Duration::from).unwrap_or_default().min(RETRY_AFTER_MAX))
}
