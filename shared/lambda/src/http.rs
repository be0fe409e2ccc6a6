//! The HTTPS client for all requests to AWS: the AWS SDK's own, with rustls over AWS-LC.
//!
//! A server's certificate must lead to a trusted root. Which roots are trusted is chosen once, at the start:
//!
//! - **Fixed**: Amazon's five, which are part of the program. This is for functions in Lambda that talk to AWS itself
//!   in the commercial partition. Reading the system's roots would take longer than the rest of their start.
//! - **System**: those that the machine trusts, and Amazon's five. This is for all other cases: other partitions, the
//!   user's own endpoints, proxies (they may decrypt connections), and every program outside of Lambda.
//! - **Named**: only those in `SSL_CERT_FILE` or `SSL_CERT_DIR`, if one of these is set.
//!
//! Requests use the proxies that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name.

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

/// Connecting within a region takes milliseconds. A longer wait means that a packet was lost.
const CONNECT: Duration = Duration::from_secs(2);
/// A connection that was unused for this long is closed: `DynamoDB` would close it itself.
const IDLE: Duration = Duration::from_mins(1);

/// All five roots that Amazon Trust Services recommends: <https://www.amazontrust.com/repository/>.
const AMAZON_ROOTS: &str = include_str!("http/amazon_roots.pem");

/// The trusted roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// Amazon's five.
    Fixed,
    /// The system's, and Amazon's five.
    System,
    /// The user's. The SDK then takes these, and no others, for the system's.
    Named,
}

impl Roots {
    /// For a function in Lambda.
    pub(crate) fn in_lambda(environment: &AwsEnvironment) -> Self {
        let AwsEnvironment { region, endpoint_url, proxy, .. } = environment;
        let is_commercial = region.as_deref().is_some_and(is_commercial);
        // Without TLS no certificate is checked.
        let is_own = endpoint_url.as_deref().is_some_and(|url| !url.starts_with("http:"));
        match Self::outside_lambda(environment) {
            Self::System if is_commercial && !is_own && !proxy => Self::Fixed,
            other => other,
        }
    }

    /// For any other program.
    pub(crate) fn outside_lambda(environment: &AwsEnvironment) -> Self {
        if environment.own_certificates { Self::Named } else { Self::System }
    }

    fn store(self) -> TrustStore {
        let store = TrustStore::empty().with_native_roots(self != Self::Fixed);
        if self == Self::Named { store } else { store.with_pem_certificate(AMAZON_ROOTS) }
    }
}

/// Whether a region belongs to the partition `aws`. Its regions have names of three parts, such as `eu-central-1`.
/// Names in other partitions have four parts, such as `us-gov-west-1`, except in China.
fn is_commercial(region: &str) -> bool {
    region.split('-').count() == 3 && !region.starts_with("cn-")
}

/// An HTTPS client for the AWS SDK in any program. A client and its clones share their connections. Connecting has a
/// timeout of two seconds. The SDK's timeouts of attempts and operations limit how long an answer may take: this client
/// doesn't obey the SDK's read timeout.
pub fn https_client() -> SharedHttpClient {
    measuring_client(Roots::outside_lambda(&AwsEnvironment::from_env()), Arc::default())
}

/// A client that also records the dates of answers.
pub(crate) fn measuring_client(roots: Roots, skew: Arc<Skew>) -> SharedHttpClient {
    client(roots.store(), ProxyConfig::from_env(), skew)
}

fn client(roots: TrustStore, proxies: ProxyConfig, skew: Arc<Skew>) -> SharedHttpClient {
    #[expect(clippy::expect_used, reason = "the roots are parsed later, when the client is used")]
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

/// Records the dates of answers.
#[derive(Debug)]
struct Measured {
    connector: Connector,
    skew: Arc<Skew>,
}

impl HttpConnector for Measured {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        // Only AWS's answers count: other servers, such as the machine's own source of credentials, may use the
        // machine's clock.
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

/// The date of an answer, in whole seconds.
fn date(response: &HttpResponse) -> Option<Timestamp> {
    let date = DateTime::from_str(response.headers().get("date")?, Format::HttpDate).ok()?;
    date.to_millis().ok().map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests;
