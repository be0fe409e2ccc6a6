//! The HTTPS client under every request to AWS: HTTP/1.1, which is all that `DynamoDB` and SQS speak.

mod crypto;
mod route;
mod trust;

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::connection::{CaptureSmithyConnection, ConnectionMetadata};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
    http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::DateTime;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::date_time::Format;
use http::header::DATE;
use http::uri::Scheme;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::capture_connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tickover_core::time::Timestamp;
use tickover_service::ports::Clock as _;
use tickover_service::skew::Skew;
use tickover_service::system::SystemClock;
use tokio::time::timeout;

use route::{Connect, Route};

/// A connection within a region takes milliseconds: a longer wait is for a packet that is lost.
const CONNECT: Duration = Duration::from_secs(2);
/// A connection that nobody used for so long is closed: `DynamoDB` would close it itself.
const IDLE: Duration = Duration::from_mins(1);

/// An HTTPS client for the AWS SDK, without what its own one costs at a start: it reads no certificates unless it has
/// to. Connections belong to a client and all its clones. What is encrypted goes through the proxies that `HTTPS_PROXY`,
/// `ALL_PROXY` and `NO_PROXY` name. Of the SDK's settings it keeps the read timeout; a connection has two seconds.
pub fn https_client() -> SharedHttpClient {
    measuring_client(&Arc::default())
}

/// The same, with the dates of the answers noted.
pub(crate) fn measuring_client(skew: &Arc<Skew>) -> SharedHttpClient {
    client(trust::config(), Route::from_env(), skew)
}

fn client(tls: ClientConfig, route: Route, skew: &Arc<Skew>) -> SharedHttpClient {
    let (client, skew) = (hyper_client(tls, route, CONNECT), Arc::clone(skew));
    http_client_fn(move |settings: &HttpConnectorSettings, _| {
        let (client, skew) = (client.clone(), Arc::clone(&skew));
        SharedHttpConnector::new(Connector { client, read_timeout: settings.read_timeout(), skew })
    })
}

fn hyper_client(tls: ClientConfig, route: Route, within: Duration) -> Client<Connect, SdkBody> {
    let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
    let mut hyper = Client::builder(TokioExecutor::new());
    hyper.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
    hyper.build(Connect { https: https.wrap_connector(route), within })
}

#[derive(Clone, Debug)]
struct Connector {
    client: Client<Connect, SdkBody>,
    read_timeout: Option<Duration>,
    skew: Arc<Skew>,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Self { client, read_timeout, skew } = self.clone();
        HttpConnectorFuture::new(async move {
            let mut request =
                request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
            lend_connection(&mut request);
            // Others than AWS itself, such as the machine's own source of credentials, may go by the machine's clock.
            let is_aws = request.uri().scheme() == Some(&Scheme::HTTPS);
            let sent_at = SystemClock.now();
            let answered = client.request(request);
            let answered = match read_timeout {
                Some(limit) => {
                    timeout(limit, answered).await.map_err(|late| ConnectorError::timeout(late.into()))?
                }
                None => answered.await,
            };
            let response = answered.map_err(|error| connector_error(error.into()))?;
            if let Some(date) = date(&response).filter(|_| is_aws) {
                skew.note(sent_at, SystemClock.now(), date);
            }
            HttpResponse::try_from(response.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// When an answer was given, in whole seconds.
fn date<B>(response: &http::Response<B>) -> Option<Timestamp> {
    let date = response.headers().get(DATE)?.to_str().ok()?;
    let date = DateTime::from_str(date, Format::HttpDate).ok()?;
    date.to_millis().ok().map(Timestamp::from_millis)
}

/// Lets the SDK put an end to the request's connection: it does where a server answers that it is in trouble, so that
/// the next attempt may reach another one.
fn lend_connection(request: &mut http::Request<SdkBody>) {
    let connection = capture_connection(request);
    let Some(lent) = request.extensions().get::<CaptureSmithyConnection>() else { return };
    lent.set_connection_retriever(move || {
        let is_proxied = connection.connection_metadata().as_ref()?.is_proxied();
        let connection = connection.clone();
        let end = move || {
            if let Some(connected) = connection.connection_metadata().as_ref() {
                connected.poison();
            }
        };
        Some(ConnectionMetadata::builder().proxied(is_proxied).poison_fn(end).build())
    });
}

/// What kind of failure it is, from which the SDK tells whether another attempt may help.
fn connector_error(error: Box<dyn Error + Send + Sync>) -> ConnectorError {
    let timed_out = |cause: &(dyn Error + 'static)| {
        let by_system =
            cause.downcast_ref::<io::Error>().map(io::Error::kind) == Some(io::ErrorKind::TimedOut);
        by_system || cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout)
    };
    let is_ours = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_user)
    };
    // No connection, or one that broke off: whatever else it was, the connection's end is what we see of it.
    let broken = |cause: &(dyn Error + 'static)| {
        let hyper = cause.downcast_ref::<hyper::Error>();
        let by_peer =
            |error: &hyper::Error| error.is_closed() || error.is_canceled() || error.is_incomplete_message();
        let unconnected = cause
            .downcast_ref::<hyper_util::client::legacy::Error>()
            .is_some_and(hyper_util::client::legacy::Error::is_connect);
        unconnected || cause.is::<io::Error>() || hyper.is_some_and(by_peer)
    };
    let causes = || causes(error.as_ref());
    if causes().any(timed_out) {
        ConnectorError::timeout(error)
    } else if causes().any(is_ours) {
        ConnectorError::user(error)
    } else if causes().any(broken) {
        ConnectorError::io(error)
    } else {
        ConnectorError::other(error, None)
    }
}

/// An error and what caused it. What an I/O error is about is within it: its `source` is that one's own cause.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| match error.downcast_ref::<io::Error>() {
        Some(error) => error.get_ref().map(|inner| inner as _),
        None => error.source(),
    })
}

#[cfg(test)]
mod tests;
