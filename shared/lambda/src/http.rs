//! The HTTPS client under every request to AWS: the AWS SDK's own, with rustls over AWS-LC.
//!
//! A server's certificate must lead to a root that counts. Which roots count is chosen once, at the start:
//!
//! - **Fixed**: Amazon's five, which are part of the program. This is for functions in Lambda that talk to AWS itself in
//!   the commercial partition. Reading the system's roots would take longer than the rest of their start.
//! - **System**: those that the machine trusts, and Amazon's five. This is for everything else: other partitions,
//!   endpoints of the user's own, proxies (they may decrypt connections), and every program outside of Lambda.
//! - **Named**: those in `SSL_CERT_FILE` or `SSL_CERT_DIR`, and no others, where one of these is set.
//!
//! Requests go through the proxies that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name.

use std::sync::Arc;
use std::time::Duration;

use aws_smithy_http_client::Connector;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
    http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use tickover_core::time::Timestamp;
use tickover_service::config::AwsEnvironment;
use tickover_service::ports::Clock as _;
use tickover_service::skew::Skew;
use tickover_service::system::SystemClock;

/// A connection within a region takes milliseconds: a longer wait is for a packet that is lost.
const CONNECT: Duration = Duration::from_secs(2);
/// A connection that nobody used for so long is closed: `DynamoDB` would close it itself.
const IDLE: Duration = Duration::from_mins(1);

/// The roots of Amazon Trust Services, all five as they recommend:
/// <https://www.amazontrust.com/repository/>.
const AMAZON_ROOTS: &str = include_str!("http/amazon_roots.pem");

/// Whose certificates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// Amazon's five.
    Fixed,
    /// The system's, and Amazon's five.
    System,
    /// The user's. What the SDK takes for the system's are these alone then.
    Named,
}

impl Roots {
    /// For a function in Lambda.
    pub(crate) fn in_lambda(environment: &AwsEnvironment) -> Self {
        let AwsEnvironment { region, endpoint_url, proxy, .. } = environment;
        let is_commercial = region.as_deref().is_some_and(is_commercial);
        // Without TLS no certificate is looked at.
        let is_own = endpoint_url.as_deref().is_some_and(|url| !url.starts_with("http:"));
        match Self::anywhere(environment) {
            Self::System if is_commercial && !is_own && !proxy => Self::Fixed,
            other => other,
        }
    }

    /// For any other program.
    pub(crate) fn anywhere(environment: &AwsEnvironment) -> Self {
        if environment.own_certificates { Self::Named } else { Self::System }
    }

    fn store(self) -> TrustStore {
        let store = TrustStore::empty().with_native_roots(self != Self::Fixed);
        if self == Self::Named { store } else { store.with_pem_certificate(AMAZON_ROOTS) }
    }
}

/// Whether a region is of the partition `aws`. Its regions have names of three parts, such as `eu-central-1`. Those of
/// other partitions have four, such as `us-gov-west-1`, but for China's.
fn is_commercial(region: &str) -> bool {
    region.split('-').count() == 3 && !region.starts_with("cn-")
}

/// An HTTPS client for the AWS SDK in any program. Connections belong to a client and all its clones. A connection has
/// two seconds. How long an answer may take is left to the SDK's timeouts of attempts and operations: its read timeout
/// isn't obeyed.
pub fn https_client() -> SharedHttpClient {
    measuring_client(Roots::anywhere(&AwsEnvironment::from_env()), Arc::default())
}

/// The same, with the dates of the answers noted.
pub(crate) fn measuring_client(roots: Roots, skew: Arc<Skew>) -> SharedHttpClient {
    client(roots.store(), ProxyConfig::from_env(), skew)
}

fn client(roots: TrustStore, proxies: ProxyConfig, skew: Arc<Skew>) -> SharedHttpClient {
    #[expect(clippy::expect_used, reason = "what it is given is looked at later")]
    let tls = TlsContext::builder().with_trust_store(roots).build().expect("a context has no requirements");
    let connector = Connector::builder()
        .connector_settings(HttpConnectorSettings::builder().connect_timeout(CONNECT).build())
        .pool_idle_timeout(IDLE)
        .proxy_config(proxies)
        .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
        .tls_context(tls)
        .build();
    let connector = SharedHttpConnector::new(Measured { connector, skew });
    http_client_fn(move |_, _| connector.clone())
}

/// Notes the dates of answers.
#[derive(Debug)]
struct Measured {
    connector: Connector,
    skew: Arc<Skew>,
}

impl HttpConnector for Measured {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        // Others than AWS itself, such as the machine's own source of credentials, may go by the machine's clock.
        let is_aws = request.uri().starts_with("https:");
        let (sent_at, skew) = (SystemClock.now(), Arc::clone(&self.skew));
        let answered = self.connector.call(request);
        HttpConnectorFuture::new(async move {
            let response = answered.await?;
            if let Some(date) = date(&response).filter(|_| is_aws) {
                skew.note(sent_at, SystemClock.now(), date);
            }
            Ok(response)
        })
    }
}

/// When an answer was given, in whole seconds.
fn date(response: &HttpResponse) -> Option<Timestamp> {
    let date = DateTime::from_str(response.headers().get("date")?, Format::HttpDate).ok()?;
    date.to_millis().ok().map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests;
