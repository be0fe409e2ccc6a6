//! The HTTP client of the client, for the AWS SDK's requests for credentials: one HTTP stack is enough.

use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
    http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;

use super::AwsError;
use crate::client::http::chain;

/// How long an answer may take if the SDK doesn't say.
const ANSWER_BOUND: Duration = Duration::from_secs(10);

/// Sends the SDK's requests.
#[derive(Clone, Debug)]
struct Connector {
    outside: reqwest::Client,
    /// For requests without TLS. They go to a container's or an instance's source of credentials, or to an emulator, and a
    /// proxy must never see or answer them.
    inside: reqwest::Client,
    bound: Duration,
}

/// A client for the SDK. It uses the roots and the proxies of the machine.
pub(super) fn client() -> Result<SharedHttpClient, AwsError> {
    let built = |builder: reqwest::ClientBuilder| {
        let builder = builder.redirect(reqwest::redirect::Policy::none());
        builder.build().map_err(|error| AwsError::Unsignable { reason: chain(&error) })
    };
    let outside = built(reqwest::Client::builder())?;
    let inside = built(reqwest::Client::builder().no_proxy())?;
    let connector = Connector { outside, inside, bound: ANSWER_BOUND };
    Ok(http_client_fn(move |settings, _| {
        SharedHttpConnector::new(Connector { bound: bound(settings), ..connector.clone() })
    }))
}

/// How long connecting and answering may take together.
fn bound(settings: &HttpConnectorSettings) -> Duration {
    let read = settings.read_timeout().unwrap_or(ANSWER_BOUND);
    read + settings.connect_timeout().unwrap_or_default()
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let client = if request.uri().starts_with("http:") { &self.inside } else { &self.outside };
        let sent = translated(client, &request).map(|request| request.timeout(self.bound));
        HttpConnectorFuture::new(async move {
            let answer = sent?.send().await.map_err(failed)?;
            let status = answer.status().as_u16().try_into();
            let headers = answer.headers().clone();
            let body = SdkBody::from(answer.bytes().await.map_err(failed)?);
            let mut response =
                HttpResponse::new(status.map_err(|error| ConnectorError::user(Box::new(error)))?, body);
            for (name, value) in &headers {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                response.headers_mut().append(name.as_str().to_owned(), value);
            }
            Ok(response)
        })
    }
}

/// The same request for our own client.
fn translated(
    client: &reqwest::Client,
    request: &HttpRequest,
) -> Result<reqwest::RequestBuilder, ConnectorError> {
    let user = |error: Box<dyn std::error::Error + Send + Sync>| ConnectorError::user(error);
    let method = request.method().parse().map_err(|error| user(Box::new(error)))?;
    let mut builder = client.request(method, request.uri());
    for (name, value) in request.headers() {
        builder = builder.header(name, value);
    }
    // The SDK streams nothing when it asks for credentials.
    let body = request.body().bytes().ok_or_else(|| user("a body that is streamed".into()))?;
    Ok(builder.body(body.to_vec()))
}

fn failed(error: reqwest::Error) -> ConnectorError {
    let error = error.without_url();
    if error.is_timeout() {
        ConnectorError::timeout(error.into())
    } else if error.is_builder() {
        ConnectorError::user(error.into())
    } else {
        ConnectorError::io(error.into())
    }
}
