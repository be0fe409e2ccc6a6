//! Keeps credentials until shortly before they expire. The AWS SDK's own cache works only inside of its clients.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::ports::Clock;
use tokio::sync::Mutex;

use super::AwsError;
use crate::client::http::chain;

/// They are renewed this long before they expire.
const RENEW_BEFORE: Millis = Millis::from_secs(5 * 60);
/// All are read again after this long: a file's credentials have no end, but people change them.
const KEPT_MAX: Millis = Millis::from_secs(15 * 60);
/// The pause after a renewal that failed, while the old ones are still valid.
const PAUSE: Millis = Millis::from_secs(30);

/// The credentials of one provider.
pub(super) struct Cache {
    provider: Option<SharedCredentialsProvider>,
    clock: Arc<dyn Clock>,
    /// Locked while they are loaded, so that calls at the same time load them once.
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    credentials: Credentials,
    renew_at: Timestamp,
}

impl Cache {
    pub(super) fn new(provider: Option<SharedCredentialsProvider>, clock: Arc<dyn Clock>) -> Self {
        Self { provider, clock, kept: Mutex::new(None) }
    }

    /// Credentials that are valid now.
    pub(super) async fn current(&self) -> Result<Credentials, AwsError> {
        let mut kept = self.kept.lock().await;
        let now = self.clock.now();
        if let Some(kept) = kept.as_ref().filter(|kept| now < kept.renew_at) {
            return Ok(kept.credentials.clone());
        }
        let provider = self.provider.as_ref().ok_or(AwsError::NoCredentials)?;
        match provider.provide_credentials().await {
            Ok(credentials) => {
                let longest = now.plus(KEPT_MAX);
                let renew_at = expiry(&credentials).map_or(longest, |at| at.minus(RENEW_BEFORE).min(longest));
                *kept = Some(Kept { credentials: credentials.clone(), renew_at });
                Ok(credentials)
            }
            Err(error) => {
                match kept.as_mut().filter(|kept| expiry(&kept.credentials).is_none_or(|at| now < at)) {
                    Some(kept) => {
                        tracing::warn!(error = chain(&error), "the AWS credentials could not be renewed yet");
                        kept.renew_at = now.plus(PAUSE);
                        Ok(kept.credentials.clone())
                    }
                    None => Err(error.into()),
                }
            }
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cache").field("provider", &self.provider).finish_non_exhaustive()
    }
}

fn expiry(credentials: &Credentials) -> Option<Timestamp> {
    let since_epoch = credentials.expiry()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    let since_epoch: Duration = since_epoch;
    i64::try_from(since_epoch.as_millis()).ok().map(Timestamp::from_millis)
}
