//! How long whoever waits for a result goes on asking.

use tickover_core::duration::Millis;

use super::{Client, ClientError};

/// Times in a row that a call for the result may fail for reasons that pass.
const FAILURES_MAX: u32 = 8;
/// The pause after the first of those; then twice as long each time.
const FAILURE_PAUSE: Millis = Millis::new(250);

/// What is left of it.
#[derive(Default)]
pub(super) struct Retries {
    failures: u32,
}

impl Retries {
    /// Returns after a while if a failure may pass. Otherwise, or once there were too many, it is the answer.
    pub(super) async fn bear(&mut self, error: ClientError, client: &Client) -> Result<(), ClientError> {
        if !error.is_transient() || self.failures >= FAILURES_MAX {
            return Err(error);
        }
        client.api.sleep(FAILURE_PAUSE.saturating_mul(1 << self.failures)).await;
        self.failures += 1;
        Ok(())
    }
}
