//! The connection to AWS: region, credentials, retries and timeouts.

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::SharedCredentialsProvider;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;
use tickover_service::config::AwsEnvironment;
use tickover_service::skew::Skew;

use crate::http::{Roots, measuring_client};

/// How often the SDK sends a request, including the first time. The service itself retries calls that need longer.
const ATTEMPTS: u32 = 3;
/// The wait between two tries. On average it doubles each time.
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// Timeout of one try of a request that is answered at once.
const ATTEMPT: Duration = Duration::from_secs(4);
/// Timeout of all its tries together.
const OPERATION: Duration = Duration::from_secs(10);

/// The configuration inside Lambda, where the environment has all that is needed. The SDK's own search would also read
/// files and ask containers and other services, and its code would be in every function's archive.
pub(crate) async fn in_lambda(environment: AwsEnvironment, skew: Arc<Skew>) -> SdkConfig {
    let roots = Roots::in_lambda(&environment);
    let credentials = SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new());
    let mut aws = SdkConfig::builder();
    aws.set_region(environment.region.map(Region::new)).set_endpoint_url(environment.endpoint_url);
    aws.behavior_version(BehaviorVersion::latest())
        .use_dual_stack(environment.dual_stack)
        .http_client(measuring_client(roots, skew))
        .credentials_provider(credentials)
        .retry_config(retries())
        .timeout_config(timeouts(ATTEMPT, OPERATION))
        .build()
}

/// The configuration outside of Lambda: all that the SDK finds.
pub(crate) async fn outside_lambda(environment: AwsEnvironment, skew: Arc<Skew>) -> SdkConfig {
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(measuring_client(Roots::outside_lambda(&environment), skew))
        .retry_config(retries())
        .timeout_config(timeouts(ATTEMPT, OPERATION))
        .load()
        .await
}

/// The program's own configuration, with our HTTPS client, retries and timeouts: also outside of Lambda.
pub(crate) fn adapted(aws: SdkConfig) -> impl FnOnce(AwsEnvironment, Arc<Skew>) -> Ready<SdkConfig> {
    move |environment, skew| {
        let http = measuring_client(Roots::outside_lambda(&environment), skew);
        let aws = aws.into_builder().http_client(http).retry_config(retries());
        ready(aws.timeout_config(timeouts(ATTEMPT, OPERATION)).build())
    }
}

fn retries() -> RetryConfig {
    RetryConfig::standard()
        .with_max_attempts(ATTEMPTS)
        .with_initial_backoff(BACKOFF)
        .with_max_backoff(BACKOFF_MAX)
}

fn timeouts(attempt: Duration, operation: Duration) -> TimeoutConfig {
    TimeoutConfig::builder().operation_attempt_timeout(attempt).operation_timeout(operation).build()
}
