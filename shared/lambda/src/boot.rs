//! The cold start: configuration, logs, one set of AWS clients, and the service over them.

use std::sync::Arc;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use tickover_dynamodb::DynamoStore;
use tickover_service::config::{Config, ConfigError};
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::telemetry::{self, LogFormat};
use tickover_service::{Ports, Service};
use tickover_sqs::SqsQueue;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::metrics::Metrics;

/// Times the SDK sends a request, the first one included. The service repeats what is worth more patience.
const ATTEMPTS: u32 = 3;
/// The wait between two of them, on average twice as long each time.
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// A connection within a region takes milliseconds: a longer wait is for a packet that is lost.
const CONNECT: Duration = Duration::from_secs(2);
/// One try of a request that answers at once.
const ATTEMPT: Duration = Duration::from_secs(4);
/// All tries of it.
const OPERATION: Duration = Duration::from_secs(10);
/// A long poll for messages takes up to 20 s, which is no fault.
const LONG_POLL_ATTEMPT: Duration = Duration::from_secs(25);
const LONG_POLL_OPERATION: Duration = Duration::from_secs(30);

/// Where logs go below `info`, the crates that log whole requests are kept from it: payloads are never logged.
/// The runtime's span with the request id is at `info`.
const PAYLOAD_LOGGERS: &str = "aws_=warn,lambda_=info";
/// The crate that would log each value which a histogram has no room for: thousands, on a bad day.
const VALUE_LOGGER: &str = "metrics_cloudwatch_embedded=off";

/// What a function works with, made once a cold start. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// The service over `DynamoDB` and SQS.
    pub service: Service,
    /// How it is configured.
    pub config: Arc<Config>,
    /// What it measures.
    pub metrics: Metrics,
}

/// Why a function can't start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootError {
    /// The environment is not set up. Every problem is named.
    #[error(transparent)]
    Environment(#[from] ConfigError),
}

impl BootError {
    /// Stable, the `errorType` of the failed start.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Environment(_) => "invalid_environment",
        }
    }
}

/// Reads the environment, sets up logs and metrics, and builds the service over AWS. Reaches no network yet.
pub async fn app() -> Result<App, BootError> {
    let config = match Config::from_env() {
        Ok(config) => config,
        Err(error) => {
            telemetry::init("info", LogFormat::Json);
            return Err(error.into());
        }
    };
    telemetry::init(&without_noise(&config.log), LogFormat::Json);
    let metrics = Metrics::install(config.function.as_deref());
    let aws = aws().await;
    let store = DynamoStore::new(aws_sdk_dynamodb::Client::new(&aws), &config.table);
    let queue = SqsQueue::new(long_polling(&aws), config.queue_urls());
    let ports = Ports {
        store: Arc::new(store),
        queue: Arc::new(queue),
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
    };
    let service = Service::new(ports, config.limits.clone());
    Ok(App { service, config: Arc::new(config), metrics })
}

async fn aws() -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(ATTEMPT)
        .operation_timeout(OPERATION)
        .build();
    let retries = RetryConfig::standard()
        .with_max_attempts(ATTEMPTS)
        .with_initial_backoff(BACKOFF)
        .with_max_backoff(BACKOFF_MAX);
    aws_config::defaults(BehaviorVersion::latest())
        .retry_config(retries)
        .timeout_config(timeouts)
        .load()
        .await
}

fn long_polling(aws: &SdkConfig) -> aws_sdk_sqs::Client {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(LONG_POLL_ATTEMPT)
        .operation_timeout(LONG_POLL_OPERATION)
        .build();
    let config = aws_sdk_sqs::config::Builder::from(aws).timeout_config(timeouts).build();
    aws_sdk_sqs::Client::from_conf(config)
}

/// The directives, with a flood kept out of the logs, and where they ask for more than `info` payloads as well.
/// Whoever names one of those crates still gets what he asks for: the longer name counts, and of the same one the
/// later.
fn without_noise(directives: &str) -> String {
    let level = EnvFilter::builder().parse_lossy(directives).max_level_hint();
    let directives = format!("{VALUE_LOGGER},{directives}");
    if level.is_some_and(|level| level <= LevelFilter::INFO) {
        return directives;
    }
    format!("{directives},{PAYLOAD_LOGGERS}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_logs_below_info_are_kept_from_the_crates_that_log_payloads() {
        for quiet in ["info", "warn", "off", "tickover=info"] {
            assert_eq!(without_noise(quiet), format!("metrics_cloudwatch_embedded=off,{quiet}"));
        }
        assert_eq!(without_noise("trace"), "metrics_cloudwatch_embedded=off,trace,aws_=warn,lambda_=info");
    }
}
