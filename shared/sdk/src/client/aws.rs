//! Calls to a deployment on AWS, signed with AWS's credentials.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use tickover::client::aws::Aws;
//! use tickover::client::{Client, Http};
//!
//! // What AWS's own tools would use: variables, a profile (with SSO, too), a container's or an instance's role.
//! let aws = Aws::from_env().await?;
//! let client = Client::from(aws.deployment("tickover").await?.http(&aws)?);
//!
//! // A known address needs no look-up.
//! let http = Http::new("https://a1b2c3.execute-api.eu-central-1.amazonaws.com")?.signed(&aws)?;
//! let client = Client::from(http);
//! # Ok(())
//! # }
//! ```
//!
//! A deployment whose API accepts tokens (`Authorization=jwt`) needs no signature but
//! [`Http::header`](crate::client::Http::header). One that accepts every caller needs neither: `Http::new` of a known
//! address, or [`Deployment::http_unsigned`].

mod connector;
#[cfg(feature = "aws")]
mod core_stack;
mod credentials;
mod error;
mod history;
mod json;
mod signer;
mod stack;

use std::fmt;
use std::sync::Arc;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_types::service_config::ServiceConfigKey;
use tickover_service::config::AwsEnvironment;
use tickover_service::ports::Clock;
use tickover_service::system::SystemClock;

#[cfg(feature = "aws")]
pub use core_stack::Core;
pub use error::AwsError;
pub(super) use signer::Signer;
pub use stack::Deployment;

use credentials::Cache;

/// Credentials and a region for calls to AWS. Cheap to clone: the clones share the credentials, which are loaded at the
/// first call and renewed before they expire.
#[derive(Clone)]
pub struct Aws {
    credentials: Arc<Cache>,
    clock: Arc<dyn Clock>,
    region: Option<String>,
    /// Another address of SSM than AWS's own, such as an emulator's.
    ssm: Option<String>,
    /// The same of `CloudWatch`.
    cloudwatch: Option<String>,
    dual_stack: bool,
    /// For the clients of `DynamoDB` and SQS.
    #[cfg(feature = "aws")]
    config: SdkConfig,
}

impl Aws {
    /// The credentials and the region that AWS's own tools would use: from variables (`AWS_ACCESS_KEY_ID`,
    /// `AWS_PROFILE`, `AWS_REGION`), the profiles in `~/.aws` (with roles, SSO and `credential_process`), a web identity,
    /// the container or the instance.
    ///
    /// # Errors
    ///
    /// [`AwsError::Fips`]. Missing credentials and a missing region are errors of the calls that need them.
    pub async fn from_env() -> Result<Self, AwsError> {
        Self::load(None, None).await
    }

    /// The same, with this profile and this region instead of those that would be found.
    ///
    /// # Errors
    ///
    /// As [`Aws::from_env`]. A profile that doesn't exist is an error of the first call.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), tickover::client::aws::AwsError> {
    /// use tickover::client::aws::Aws;
    ///
    /// let aws = Aws::load(Some("production"), Some("eu-central-1")).await?;
    /// assert_eq!(aws.region(), Some("eu-central-1"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn load(profile: Option<&str>, region: Option<&str>) -> Result<Self, AwsError> {
        // The SDK takes only `true` for a demand.
        if AwsEnvironment::from_env().fips {
            return Err(AwsError::Fips);
        }
        let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(connector::client()?);
        if let Some(profile) = profile {
            loader = loader.profile_name(profile);
        }
        if let Some(region) = region {
            loader = loader.region(Region::new(region.to_owned()));
        }
        Self::of(&loader.load().await)
    }

    /// Those of a program's own configuration for the AWS SDK.
    ///
    /// # Errors
    ///
    /// [`AwsError::Fips`] and [`AwsError::NotARegion`].
    pub fn of(config: &SdkConfig) -> Result<Self, AwsError> {
        Self::with_clock(config, Arc::new(SystemClock))
    }

    fn with_clock(config: &SdkConfig, clock: Arc<dyn Clock>) -> Result<Self, AwsError> {
        if config.use_fips() == Some(true) {
            return Err(AwsError::Fips);
        }
        // A variable that is empty is a variable that isn't set.
        let region = config.region().map(ToString::to_string).filter(|region| !region.is_empty());
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if let Some(region) = region.as_ref().filter(|region| !region.chars().all(is_name)) {
            return Err(AwsError::NotARegion { region: region.clone() });
        }
        Ok(Self {
            credentials: Arc::new(Cache::new(config.credentials_provider(), Arc::clone(&clock))),
            clock,
            region,
            ssm: endpoint(config, "SSM"),
            cloudwatch: endpoint(config, "CloudWatch"),
            dual_stack: config.use_dual_stack() == Some(true),
            #[cfg(feature = "aws")]
            config: config.clone(),
        })
    }

    /// The region, if one is known.
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// Loads the credentials unless they are loaded, so that a program can report at its start that they are missing.
    ///
    /// # Errors
    ///
    /// [`AwsError::NoCredentials`] and [`AwsError::Credentials`].
    pub async fn check(&self) -> Result<(), AwsError> {
        self.credentials.current().await.map(drop)
    }

    pub(super) fn signer(&self, service: &str, region: &str) -> Signer {
        Signer::new(Arc::clone(&self.credentials), Arc::clone(&self.clock), service, region)
    }
}

impl fmt::Debug for Aws {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Aws").field("region", &self.region).finish_non_exhaustive()
    }
}

/// A service's address from its own variable (such as `AWS_ENDPOINT_URL_SSM`), `AWS_ENDPOINT_URL` or the profile, as the
/// SDK's own clients read it.
fn endpoint(config: &SdkConfig, service: &str) -> Option<String> {
    let key = ServiceConfigKey::builder().service_id(service).env("AWS_ENDPOINT_URL").profile("endpoint_url");
    let own = config.service_config().zip(key.build().ok()).and_then(|(found, key)| found.load_config(key));
    own.or_else(|| config.endpoint_url().map(str::to_owned))
}

#[cfg(test)]
mod tests;
