//! How often a wait for a result repeats a call that fails.

use tickover_core::duration::Millis;

use super::{Client, ClientError};

/// How often in a row the call may fail with a transient error.
const FAILURES_MAX: u32 = 8;
/// The pause after the first failure. It doubles each time.
const FAILURE_PAUSE: Millis = Millis::new(250);

/// The failures so far, in a row.
#[derive(Default)]
pub(super) struct Retries {
    failures: u32,
}

impl Retries {
    /// Waits after a transient failure. Any other failure, or one too many, is returned.
    pub(super) async fn wait_or_fail(
        &mut self,
        error: ClientError,
        client: &Client,
    ) -> Result<(), ClientError> {
        if !error.is_transient() || self.failures >= FAILURES_MAX {
            return Err(error);
        }
        client.api.sleep(FAILURE_PAUSE.saturating_mul(1 << self.failures)).await;
        self.failures += 1;
        Ok(())
    }
}
