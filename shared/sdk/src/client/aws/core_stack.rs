//! The table and the queues of a deployment, found by its stack's name: for programs that use them without its HTTP API.
//!
//! The deployment is one of `infra/core.yaml`, whose table has the stack's name. A program needs the permissions of a
//! worker: the managed policy of the core, and those to receive from its own queue.

use std::collections::BTreeMap;
use std::fmt;

use aws_config::SdkConfig;
use tickover_service::config::Config;

use super::{Aws, AwsError};
use crate::client::{Client, direct};

const TABLE: &str = "TICKOVER_TABLE";
const QUEUES: &str = "TICKOVER_QUEUES";
/// Every queue of the pattern in `queue-urls`.
const ANY: &str = "*";
const VERSION: &str = "version";
/// The parameters of a stack, and the variables that the functions get from them. All are needed.
const SETTINGS: &[(&str, &str)] = &[
    ("queue-urls", "TICKOVER_QUEUE_URLS"),
    ("timers", "TICKOVER_TIMERS"),
    ("events", "TICKOVER_EVENTS"),
    ("due-shards", "TICKOVER_DUE_SHARDS"),
    ("retention", "TICKOVER_RETENTION"),
    ("trace", "TICKOVER_TRACE"),
    ("lists", "TICKOVER_LISTS"),
    ("callback-secret", "TICKOVER_CALLBACK_SECRET_ID"),
    ("callback-url", "TICKOVER_CALLBACK_URL"),
];

/// The table and the queues of a deployment, and the settings of its functions.
#[derive(Clone)]
pub struct Core {
    version: Option<String>,
    stack: String,
    /// Variables of the functions.
    settings: BTreeMap<&'static str, String>,
    aws: SdkConfig,
}

impl Aws {
    /// Finds the table and the queues of the deployment whose stack has this name, in this region. The caller's policy
    /// needs `ssm:GetParameters` for `arn:aws:ssm:REGION:ACCOUNT:parameter/tickover/STACK/*`.
    ///
    /// # Errors
    ///
    /// As [`Aws::deployment`], but with [`AwsError::NoCore`] if the stack isn't one of `infra/core.yaml`. It needs no
    /// HTTP API.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), tickover::client::aws::AwsError> {
    /// let aws = tickover::client::aws::Aws::load(None, Some("eu-central-1")).await?;
    /// let client = aws.core("tickover").await?.client().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn core(&self, stack: &str) -> Result<Core, AwsError> {
        let region = self.region().ok_or(AwsError::NoRegion)?;
        let names: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).chain([VERSION]).collect();
        let mut found = self.parameters(stack, &names).await?;
        if found.is_empty() {
            return Err(AwsError::NoStack { stack: stack.to_owned(), region: region.to_owned() });
        }
        let mut settings = BTreeMap::from([(TABLE, stack.to_owned()), (QUEUES, ANY.to_owned())]);
        for (name, variable) in SETTINGS {
            let value = found.remove(*name).ok_or_else(|| AwsError::NoCore { stack: stack.to_owned() })?;
            settings.insert(variable, value);
        }
        let version = found.remove(VERSION);
        Ok(Core { version, stack: stack.to_owned(), settings, aws: self.config.clone() })
    }
}

impl Core {
    /// The version of its functions, if the stack says so.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// A client that uses the table and the queues directly. It reads one record of the table first.
    ///
    /// # Errors
    ///
    /// [`AwsError::Core`] if a setting can't be read, or the table.
    pub async fn client(&self) -> Result<Client, AwsError> {
        let service = tickover_lambda::boot::service_of(self.config()?, self.aws.clone()).await;
        Ok(direct::of_process(service.map_err(|error| self.unusable(error))?))
    }

    /// What a worker of this program starts with.
    pub(crate) async fn app(&self) -> Result<tickover_lambda::App, AwsError> {
        let app = tickover_lambda::boot::app_of(self.config()?, self.aws.clone()).await;
        app.map_err(|error| self.unusable(error))
    }

    fn config(&self) -> Result<Config, AwsError> {
        Config::from_env_and(&self.settings).map_err(|error| self.unusable(error))
    }

    fn unusable(&self, error: impl fmt::Display) -> AwsError {
        AwsError::Core { stack: self.stack.clone(), reason: error.to_string() }
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, stack, .. } = self;
        formatter.debug_struct("Core").field("stack", stack).field("version", version).finish_non_exhaustive()
    }
}
