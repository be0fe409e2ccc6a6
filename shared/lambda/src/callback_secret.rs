//! The secrets of callbacks in AWS Secrets Manager.

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::{DisplayErrorContext, ProvideErrorMetadata as _};
use tickover_service::ServiceError;
use tickover_service::callbacks::SecretKeeper;

/// A secret of Secrets Manager. It has a copy of its value nowhere.
#[derive(Debug)]
pub(crate) struct CallbackSecret {
    client: Client,
    /// Its name or its ARN.
    id: String,
}

impl CallbackSecret {
    pub(crate) fn new(aws: &SdkConfig, id: &str) -> Self {
        Self { client: Client::new(aws), id: id.to_owned() }
    }
}

#[async_trait]
impl SecretKeeper for CallbackSecret {
    async fn read(&self) -> Result<String, ServiceError> {
        let found = self.client.get_secret_value().secret_id(&self.id).send().await;
        let found = found.map_err(|error| {
            let remedy = match error.code() {
                Some("ResourceNotFoundException") => "; TICKOVER_CALLBACK_SECRET_ID names no secret",
                Some("AccessDeniedException") => "; allow the role to read it, as infra/core.yaml does",
                Some(_) | None => "",
            };
            let reason = format!("the secret {}: {}{remedy}", self.id, DisplayErrorContext(&error));
            ServiceError::unavailable(reason)
        })?;
        let text = found.secret_string;
        text.ok_or_else(|| ServiceError::Corrupt { reason: format!("the secret {} isn't a text", self.id) })
    }
}
