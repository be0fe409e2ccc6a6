//! How AWS is reached: where from, with which credentials, and with how much patience.

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::SharedCredentialsProvider;
use std::sync::Arc;
use std::time::Duration;
use tickover_service::config::AwsEnvironment;
use tickover_service::skew::Skew;

use crate::http::{Roots, measuring_client};

/// Times the SDK sends a request, the first one included. The service repeats what is worth more patience.
const ATTEMPTS: u32 = 3;
/// The wait between two of them, on average twice as long each time.
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// One try of a request that answers at once.
const ATTEMPT: Duration = Duration::from_secs(4);
/// All tries of it.
const OPERATION: Duration = Duration::from_secs(10);
/// A long poll for messages takes up to 20 s, which is no fault.
const LONG_POLL_ATTEMPT: Duration = Duration::from_secs(25);
const LONG_POLL_OPERATION: Duration = Duration::from_secs(30);

/// From inside Lambda, which puts all there is to know into the environment. The SDK's own search would also ask
/// files, containers and other services, and would bring the code for it into every function's archive.
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

/// From any other place: whatever the SDK finds there.
pub(crate) async fn anywhere(environment: AwsEnvironment, skew: Arc<Skew>) -> SdkConfig {
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(measuring_client(Roots::anywhere(&environment), skew))
        .retry_config(retries())
        .timeout_config(timeouts(ATTEMPT, OPERATION))
        .load()
        .await
}

/// A client for queues, whose polls may take their time.
pub(crate) fn queues(aws: &SdkConfig) -> aws_sdk_sqs::Client {
    let timeouts = timeouts(LONG_POLL_ATTEMPT, LONG_POLL_OPERATION);
    let config = aws_sdk_sqs::config::Builder::from(aws).timeout_config(timeouts).build();
    aws_sdk_sqs::Client::from_conf(config)
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
