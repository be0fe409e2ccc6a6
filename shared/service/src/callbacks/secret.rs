//! Where the secrets of tokens come from: a place of the deployment's own, or the data of the system itself.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tickover_core::decision::{Condition, Write};
use tickover_core::duration::Millis;
use tickover_core::id::{Fingerprint, TaskId};
use tickover_core::limits::SPAN_MAX;
use tickover_core::queue::KeyRecord;
use tickover_core::time::Timestamp;
use tokio::sync::{Mutex, MutexGuard};

use super::sealed::SealedWaits;
use super::token::Secret;
use crate::error::ServiceError;
use crate::ports::StoreError;
use crate::service::Service;
use crate::tasks::schedule::digest;
use crate::warn_unless_logged;

/// The least bytes of a secret that isn't the system's own: as many as HMAC-SHA256 returns.
pub const SECRET_MIN: usize = 32;
/// How long secrets are used before they are read again.
const FRESH: Millis = Millis::from_secs(300);
/// How long the record of a system's own secret is kept: as good as for ever.
const SECRET_KEPT: Millis = SPAN_MAX.saturating_mul(100);

/// Reads secrets from where a deployment keeps them.
#[async_trait]
pub trait SecretKeeper: fmt::Debug + Send + Sync {
    /// One secret of at least [`SECRET_MIN`] bytes, or several, separated by commas. The first one signs, and all verify, so
    /// that a secret can be replaced without making the tokens invalid that it has signed.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Unavailable`] if it can't be read now, and [`ServiceError::Corrupt`] if it isn't a text.
    async fn read(&self) -> Result<String, ServiceError>;
}

/// Where the secrets that sign and verify tokens come from.
#[derive(Clone, Debug, Default)]
pub enum Secrets {
    /// There are none: callbacks are off.
    Off,
    /// They are read when they are first needed, and again once they are five minutes old.
    Kept(Arc<dyn SecretKeeper>),
    /// The system makes one when it first needs it, and keeps it with its data. This is for a system whose data nobody
    /// else reads.
    #[default]
    Own,
}

/// The callbacks of a deployment.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    secrets: Secrets,
    /// The address of the API that callers without credentials reach, without a slash at its end.
    pub(super) url: Option<String>,
    known: Mutex<Option<Known>>,
    pub(super) sealed: SealedWaits,
}

/// Secrets that were read.
#[derive(Clone, Debug)]
struct Known {
    secrets: Arc<[Secret]>,
    read_at: Timestamp,
}

impl Settings {
    pub(crate) fn new(secrets: Secrets, url: Option<&str>) -> Self {
        let url = url.map(|url| url.trim_end_matches('/').to_owned());
        Self { secrets, url, known: Mutex::default(), sealed: SealedWaits::default() }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Service {
    /// Reads the secrets again, if some are known that are five minutes old. Tokens of waits are made with those that are
    /// known, so that only a process's first one waits for a call.
    pub async fn renew_callback_secrets(&self) {
        if let Secrets::Kept(_) = self.callbacks.secrets {
            let mut known = self.callbacks.known.lock().await;
            if let Some(known) = &mut *known {
                self.read_if_old(known).await;
            }
        }
    }

    /// The secrets, of which the first one signs, as they were at most five minutes ago. If they can't be read again, those that
    /// are known.
    pub(super) async fn fresh_secrets(&self) -> Result<Arc<[Secret]>, ServiceError> {
        let mut known = self.callbacks.known.lock().await;
        match &mut *known {
            Some(known) => Ok(self.read_if_old(known).await),
            None => self.first_secrets(known).await,
        }
    }

    /// The secrets that are known, read again if they are old.
    async fn read_if_old(&self, known: &mut Known) -> Arc<[Secret]> {
        if self.now().since(known.read_at) >= FRESH {
            match self.read_secrets().await {
                Ok(secrets) => known.secrets = secrets,
                Err(error) => warn_unless_logged!(error; %error, "secrets can't be read again"),
            }
            known.read_at = self.now();
        }
        Arc::clone(&known.secrets)
    }

    /// The secrets that are known, however old. They are read only if none are.
    pub(super) async fn known_secrets(&self) -> Result<Arc<[Secret]>, ServiceError> {
        let known = self.callbacks.known.lock().await;
        match &*known {
            Some(known) => Ok(Arc::clone(&known.secrets)),
            None => self.first_secrets(known).await,
        }
    }

    async fn first_secrets(
        &self,
        mut known: MutexGuard<'_, Option<Known>>,
    ) -> Result<Arc<[Secret]>, ServiceError> {
        let secrets = self.read_secrets().await?;
        *known = Some(Known { secrets: Arc::clone(&secrets), read_at: self.now() });
        Ok(secrets)
    }

    async fn read_secrets(&self) -> Result<Arc<[Secret]>, ServiceError> {
        match &self.callbacks.secrets {
            Secrets::Off => Ok([].into()),
            Secrets::Kept(keeper) => parsed(&keeper.read().await?),
            Secrets::Own => Ok(self.own_secret().await?.into()),
        }
    }

    /// The secret among the data. The first process that needs it makes it.
    ///
    /// It is kept as the record of a key, because those are written under the condition that there is none yet: the name
    /// of its task has the secret's bits.
    async fn own_secret(&self) -> Result<Vec<Secret>, ServiceError> {
        let key = secret_key();
        loop {
            let stored = self.with_retries(|| self.ports.store.key(&key)).await?;
            if let Some(record) = stored {
                return Ok(vec![Secret::of(record.owner.id())]);
            }
            let now = self.now();
            let record = KeyRecord {
                key,
                owner: self.new_secret_text().into(),
                incarnation: self.new_incarnation(),
                created_at: now,
                nonce: self.new_nonce(),
                expires_at: now.plus(SECRET_KEPT),
            };
            let write = [Write::put(record, Condition::SameOrAbsent)];
            match self.with_retries(|| self.ports.store.commit(&write)).await {
                Ok(()) | Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// 256 random bits in hexadecimal.
    fn new_secret_text(&self) -> TaskId {
        let [one, other] = [self.new_task_id(), self.new_task_id()];
        TaskId::parse(format!("{one}{other}")).unwrap_or(one)
    }
}

/// The secrets in a text. An error doesn't show them.
fn parsed(text: &str) -> Result<Arc<[Secret]>, ServiceError> {
    let given: Vec<&str> = text.split(',').map(str::trim).collect();
    match given.iter().map(|secret| secret.len()).find(|length| *length < SECRET_MIN) {
        None => Ok(given.into_iter().map(Secret::of).collect()),
        Some(short) => Err(ServiceError::Corrupt {
            reason: format!(
                "each secret of callbacks needs at least {SECRET_MIN} bytes, and one has {short}"
            ),
        }),
    }
}

/// The key of the record of a system's own secret. Users' keys have other digests, since theirs have a prefix.
fn secret_key() -> Fingerprint {
    digest(&["callback secret"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_callbacks_are_separated_by_commas_and_none_is_short() {
        let (old, new) = ("o".repeat(SECRET_MIN), "n".repeat(SECRET_MIN));
        assert_eq!(*parsed(&format!("{new}, {old}\n")).unwrap(), [Secret::of(&new), Secret::of(&old)]);
        let short = "s".repeat(SECRET_MIN - 1);
        for text in [String::new(), short.clone(), format!("{new},{short}"), format!("{new},")] {
            let Err(ServiceError::Corrupt { reason }) = parsed(&text) else { panic!("{text}") };
            assert!(!reason.contains("sss") && reason.contains("32 bytes"), "{reason}");
        }
    }
}
