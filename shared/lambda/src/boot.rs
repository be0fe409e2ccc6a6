//! The cold start: configuration, logs, one set of AWS clients, and the service that uses them.

use std::panic::Location;
use std::sync::Arc;

use aws_config::SdkConfig;
use tickover_core::id::QueueName;
use tickover_dynamodb::DynamoStore;
use tickover_service::callbacks::Secrets;
use tickover_service::config::{AwsEnvironment, Config, ConfigError};
use tickover_service::ports::{Store, StoreError};
use tickover_service::skew::{MeasuredClock, Skew};
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::telemetry::{self, LogFormat};
use tickover_service::{Ports, Service};
use tickover_sqs::SqsQueue;
use tracing_subscriber::filter::{LevelFilter, Targets};

use crate::aws;
use crate::callback_secret::CallbackSecret;
use crate::metrics::Metrics;

/// When logs below `info` are on, these crates still log only at these levels: they would log whole requests, and
/// payloads must never be logged. The runtime's span with the request id is at `info`.
const PAYLOAD_LOGGERS: [(&str, LevelFilter); 2] =
    [("aws_", LevelFilter::WARN), ("lambda_", LevelFilter::INFO)];
/// This crate would log each value for which a histogram has no space: thousands under load.
const VALUE_LOGGER: (&str, LevelFilter) = ("metrics_cloudwatch_embedded", LevelFilter::OFF);

/// Why FIPS endpoints are rejected, and what to do.
const NO_FIPS: &str = "AWS_USE_FIPS_ENDPOINT (in an AWS profile: use_fips_endpoint) asks for endpoints for FIPS 140, but \
                       this program's own cryptography isn't a validated module: unset it";

/// What a function works with, created once in a cold start. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// The service over `DynamoDB` and SQS.
    pub service: Service,
    pub config: Arc<Config>,
    pub metrics: Metrics,
}

/// Why a function can't start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootError {
    /// The environment is invalid. The error lists every problem.
    #[error(transparent)]
    Environment(#[from] ConfigError),
    /// The table can't be read.
    #[error("the table {table} can't be read: {reason}")]
    Table { table: String, reason: String },
}

impl BootError {
    /// Stable; the `errorType` of the failed start.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Environment(_) => "invalid_environment",
            Self::Table { .. } => "unreadable_table",
        }
    }
}

/// Reads the environment, sets up logs and metrics, and builds the service over AWS, outside of Lambda too. There the
/// machine's clock may be wrong, so it is compared with AWS's before this returns.
pub async fn app() -> Result<App, BootError> {
    let (app, store) = over(Config::from_env(), aws::outside_lambda).await?;
    measure(&*store).await;
    Ok(app)
}

/// The same as [`app`], for a deployment that the program has found itself, and with its own configuration of the AWS
/// SDK: region and credentials. Fails if the table can't be read.
pub async fn app_of(config: Config, aws: SdkConfig) -> Result<App, BootError> {
    let table = config.table.clone();
    let (app, store) = over(Ok(config), aws::adapted(aws)).await?;
    read(&*store, table).await?;
    Ok(app)
}

/// Builds only the service, for a program that is neither a worker nor a function: it has its own logs, metrics and
/// panic hook.
pub async fn service() -> Result<Service, BootError> {
    let config = Config::from_env()?;
    let (service, store) = connect(&config, AwsEnvironment::from_env(), aws::outside_lambda).await?;
    measure(&*store).await;
    Ok(service)
}

/// The same as [`service`], as [`app_of`] is the same as [`app`].
pub async fn service_of(config: Config, aws: SdkConfig) -> Result<Service, BootError> {
    let (service, store) = connect(&config, AwsEnvironment::from_env(), aws::adapted(aws)).await?;
    read(&*store, config.table).await?;
    Ok(service)
}

/// Reads one record, because the answer's date shows how wrong this machine's clock is. It is a queue's record: the
/// policy of workers allows no other that is known to all.
async fn first_read(store: &dyn Store) -> Result<(), StoreError> {
    store.queue(&QueueName::timers()).await.map(drop)
}

async fn measure(store: &dyn Store) {
    if let Err(error) = first_read(store).await {
        tracing::warn!(%error, "the clock could not be measured yet");
    }
}

async fn read(store: &dyn Store, table: String) -> Result<(), BootError> {
    first_read(store).await.map_err(|error| {
        let reason = match error {
            StoreError::Unavailable { reason, .. } | StoreError::Corrupt { reason } => reason,
            error @ (StoreError::Conflict { .. } | StoreError::Throttled | StoreError::BadCursor) => {
                error.to_string()
            }
        };
        BootError::Table { table, reason }
    })
}

/// The same as [`app`], but inside Lambda. It makes no network calls.
pub(crate) async fn app_in_lambda() -> Result<App, BootError> {
    let (app, _) = over(Config::from_env(), aws::in_lambda).await?;
    Ok(app)
}

async fn over<F: Future<Output = SdkConfig>>(
    config: Result<Config, ConfigError>,
    reach: impl FnOnce(AwsEnvironment, Arc<Skew>) -> F,
) -> Result<(App, Arc<dyn Store>), BootError> {
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            telemetry::init(telemetry::default_filter(), LogFormat::Json);
            return Err(error.into());
        }
    };
    telemetry::init(with_quiet_crates(&config.log), LogFormat::Json);
    std::panic::set_hook(Box::new(|panic| log_panic(panic.location())));
    let metrics = Metrics::install(config.function.as_deref(), config.all_metrics);
    let (service, store) = connect(&config, AwsEnvironment::from_env(), reach).await?;
    Ok((App { service, config: Arc::new(config), metrics }, store))
}

/// Creates one set of AWS clients and the service over them.
///
/// FIPS endpoints are rejected: they are useful only if both ends use a validated cryptographic module, and this
/// program has none.
async fn connect<F: Future<Output = SdkConfig>>(
    config: &Config,
    environment: AwsEnvironment,
    reach: impl FnOnce(AwsEnvironment, Arc<Skew>) -> F,
) -> Result<(Service, Arc<dyn Store>), ConfigError> {
    let skew = Arc::<Skew>::default();
    let is_fips_wanted = environment.fips;
    let aws = reach(environment, Arc::clone(&skew)).await;
    if is_fips_wanted || aws.use_fips() == Some(true) {
        return Err(ConfigError { problems: vec![NO_FIPS.to_owned()] });
    }
    let store = DynamoStore::new(aws_sdk_dynamodb::Client::new(&aws), &config.table).listing(config.listed);
    let store: Arc<dyn Store> = Arc::new(store);
    let queue =
        SqsQueue::new(aws_sdk_sqs::Client::new(&aws), config.queue_urls()).finding(config.any_queue.clone());
    let ports = Ports {
        store: Arc::clone(&store),
        queue: Arc::new(queue),
        clock: Arc::new(MeasuredClock::new(Arc::new(SystemClock), skew)),
        ids: Arc::new(SystemIds),
    };
    let secrets = config
        .callback_secret_id
        .as_ref()
        .map_or(Secrets::Off, |id| Secrets::Kept(Arc::new(CallbackSecret::new(&aws, id))));
    let service =
        Service::new(ports, config.limits.clone()).with_callbacks(secrets, config.callback_url.as_deref());
    Ok((service, store))
}

/// Logs where a panic happened, in the usual log format. The message isn't logged, because it may contain parts of a
/// payload. A step's panic message is in the failure of its attempt.
fn log_panic(location: Option<&Location<'_>>) {
    let location = location.map(ToString::to_string);
    tracing::error!(location, "panicked");
}

/// The requested directives, plus directives that silence the noisy crate and, if `debug` or `trace` is requested, the
/// crates that log payloads. A requested directive for such a crate still counts.
fn with_quiet_crates(asked: &Targets) -> Targets {
    let levels = asked.iter().map(|(_, level)| level).chain(asked.default_level());
    let is_verbose = levels.max().is_some_and(|level| level > LevelFilter::INFO);
    let mut filter = Targets::new().with_targets([VALUE_LOGGER]);
    if is_verbose {
        filter = filter.with_targets(PAYLOAD_LOGGERS);
    }
    let filter = filter.with_targets(asked);
    asked.default_level().map_or_else(|| filter.clone(), |level| filter.clone().with_default(level))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[tokio::test]
    async fn fips_endpoints_are_rejected_from_any_source() {
        let variables = [
            ("TICKOVER_TABLE", "tickover"),
            ("TICKOVER_QUEUES", "emails=http://q/1/emails"),
            ("TICKOVER_TIMERS", "http://q/1/timers"),
        ];
        let lookup = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let config = Config::read(lookup).unwrap();
        for (by_variable, by_profile) in [(true, false), (false, true)] {
            let environment = AwsEnvironment { fips: by_variable, ..Default::default() };
            let found = SdkConfig::builder().use_fips(by_profile).build();
            let refused = connect(&config, environment, async |_, _| found).await.err().unwrap();
            assert_eq!(refused.problems, [NO_FIPS]);
        }
    }

    fn filtered(directives: &str) -> BTreeSet<String> {
        let filter = with_quiet_crates(&telemetry::filter(directives).unwrap()).to_string();
        filter.split(',').map(str::to_owned).collect()
    }

    fn set<const N: usize>(directives: [&str; N]) -> BTreeSet<String> {
        directives.map(str::to_owned).into()
    }

    #[test]
    fn only_logs_below_info_are_kept_from_the_crates_that_log_payloads() {
        for quiet in ["info", "warn", "off", "tickover=info"] {
            assert_eq!(filtered(quiet), set(["metrics_cloudwatch_embedded=off", quiet]), "{quiet}");
        }
        let verbose = set(["aws_=warn", "lambda_=info", "metrics_cloudwatch_embedded=off", "trace"]);
        assert_eq!(filtered("trace"), verbose);
    }

    #[test]
    fn what_is_asked_for_by_name_is_logged() {
        let asked = set(["aws_=trace", "aws_sdk_sqs=debug", "debug", "lambda_=info"]);
        let mut filtered = filtered("debug, aws_=trace,aws_sdk_sqs=debug");
        assert!(filtered.remove("metrics_cloudwatch_embedded=off"));
        assert_eq!(filtered, asked);
    }
}
