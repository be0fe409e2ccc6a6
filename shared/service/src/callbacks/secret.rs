//! Where the secrets of tokens come from: the configuration, or the data of the system itself.

use std::fmt;

use tickover_core::decision::Write;
use tickover_core::duration::Millis;
use tickover_core::id::{Fingerprint, TaskId};
use tickover_core::limits::SPAN_MAX;
use tickover_core::queue::KeyRecord;
use tokio::sync::OnceCell;

use super::token::Secret;
use crate::error::ServiceError;
use crate::ports::StoreError;
use crate::service::Service;
use crate::tasks::schedule::digest;

/// The least bytes of a secret in the configuration: as many as HMAC-SHA256 returns.
pub const SECRET_MIN: usize = 32;
/// How long the record of a system's own secret is kept: as good as for ever.
const SECRET_KEPT: Millis = SPAN_MAX.saturating_mul(100);

/// Where the secrets that sign and verify tokens come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Secrets {
    /// There are none: callbacks are off.
    Off,
    /// Those of the configuration. The first one signs, and all verify, so that a secret can be replaced without making
    /// the tokens invalid that it has signed.
    Given(Vec<Secret>),
    /// The system makes one when it first needs it, and keeps it with its data. This is for a system whose data nobody
    /// else reads.
    #[default]
    Own,
}

/// The callbacks of a deployment.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(super) secrets: Secrets,
    /// The address of the API that callers without credentials reach, without a slash at its end.
    pub(super) url: Option<String>,
    own: OnceCell<Vec<Secret>>,
}

impl Settings {
    pub(crate) fn new(secrets: Secrets, url: Option<&str>) -> Self {
        let url = url.map(|url| url.trim_end_matches('/').to_owned());
        Self { secrets, url, own: OnceCell::new() }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Service {
    /// The secrets, of which the first one signs.
    pub(super) async fn callback_secrets(&self) -> Result<&[Secret], ServiceError> {
        match &self.callbacks.secrets {
            Secrets::Off => Ok(&[]),
            Secrets::Given(secrets) => Ok(secrets),
            Secrets::Own => {
                let own = self.callbacks.own.get_or_try_init(|| self.own_secret()).await?;
                Ok(own)
            }
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
            let write = [Write::PutKey { record, replaces: None }];
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

/// The key of the record of a system's own secret. Users' keys have other digests, since theirs have a prefix.
fn secret_key() -> Fingerprint {
    digest(&["callback secret"])
}
