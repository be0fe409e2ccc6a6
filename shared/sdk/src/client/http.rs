//! The transport over HTTP.
//!
//! If the answer to an idempotent call is lost, the call is repeated a few times.

mod gateway;
mod host;
mod relay;

use std::time::Duration;

use async_trait::async_trait;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{StatusCode, Url};
use tickover_core::duration::Millis;
use tickover_core::id::ExecutionId;
use tickover_service::transact::Prepared;
use tickover_wire::answer::Problem;
use tickover_wire::read;

use super::api::Api;
#[cfg(feature = "client-aws")]
use super::aws::{Aws, Signer};
use super::call::{Call, Transport};
use super::{Client, ClientError};

#[cfg(feature = "client-aws")]
pub(super) use gateway::{Refusal, error_type, short};

/// How long an answer may take, in addition to a long poll's wait. It is more than the 30 s that an HTTP API on AWS
/// allows.
const ANSWER_BOUND: Duration = Duration::from_secs(35);
const CONNECT_BOUND: Duration = Duration::from_secs(5);
/// How often a call is sent at most.
const TRIES: u32 = 4;
/// The pause after the first try.
const TRY_PAUSE: Millis = Millis::new(200);
/// Characters that an error quotes from an answer that isn't Tickover's.
const EXCERPT_CHARS: usize = 200;

/// An endpoint of the HTTP API.
#[derive(Clone, Debug)]
pub struct Http {
    sender: reqwest::Client,
    endpoint: Url,
    /// Sent with each call.
    headers: HeaderMap,
    /// Signs each call for AWS.
    #[cfg(feature = "client-aws")]
    signer: Option<Signer>,
    tries: u32,
    /// The pause after the first try. It doubles each time.
    pause: Millis,
}

impl Http {
    /// An endpoint, such as `http://127.0.0.1:7070`, that needs no credentials, or those of a header. An endpoint with
    /// `https` needs the feature `client-http`.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        let http = reqwest::Client::builder().timeout(ANSWER_BOUND).connect_timeout(CONNECT_BOUND);
        let endpoint = endpoint(url)?;
        if cfg!(not(feature = "client-http")) && endpoint.scheme() == "https" {
            return Err(ClientError::invalid(
                "url",
                "this build has no TLS: the feature `client-http` has it",
            ));
        }
        // A proxy from the environment would look for the server on the proxy's own machine.
        let http = if is_loopback(&endpoint) { http.no_proxy() } else { http };
        let sender = http.build().map_err(|error| ClientError::invalid("url", chain(&error)))?;
        Ok(Self::of(endpoint, sender))
    }

    /// Sends this header with each call, such as the token that a gateway in front of the API requires.
    ///
    /// ```
    /// # fn example(token: &str) -> Result<(), tickover::client::ClientError> {
    /// use tickover::client::{Client, Http};
    ///
    /// let http = Http::new("https://tasks.example.com")?.header("authorization", &format!("Bearer {token}"))?;
    /// let client = Client::from(http);
    /// # Ok(())
    /// # }
    /// # example("t").unwrap();
    /// ```
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, ClientError> {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|problem| ClientError::invalid("header", format_args!("{name:?}: {problem}")))?;
        let mut value = HeaderValue::from_str(value)
            // The value may be a secret, so the error doesn't have it.
            .map_err(|problem| ClientError::invalid("header", format_args!("{name}: {problem}")))?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Sets how often an idempotent call is sent at most if its answer is lost: 4 by default. With 1, each call is sent
    /// once, and the caller decides what to repeat.
    #[must_use]
    pub const fn tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// An endpoint that is called with the caller's own HTTP client, for example one that adds the headers for a
    /// gateway. Its timeouts must allow long polls of 20 seconds.
    pub fn with(url: &str, sender: reqwest::Client) -> Result<Self, ClientError> {
        Ok(Self::of(endpoint(url)?, sender))
    }

    /// Signs each call with these credentials, for an endpoint at one of AWS's own hosts. The host says which service and
    /// which region the signature is for. The signature replaces a header `authorization`.
    ///
    /// # Errors
    ///
    /// [`ClientError::Invalid`] if the host isn't AWS's own, such as that of your own domain: see [`Http::signed_for`].
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use tickover::client::aws::Aws;
    /// use tickover::client::{Client, Http};
    ///
    /// let http = Http::new("https://a1b2c3.execute-api.eu-central-1.amazonaws.com")?;
    /// let client = Client::from(http.signed(&Aws::from_env().await?)?);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "client-aws")]
    pub fn signed(self, aws: &Aws) -> Result<Self, ClientError> {
        let Some((service, region)) = host::service_and_region(&self.endpoint) else {
            let problem =
                format!("`{}` isn't a host of AWS's own: say for which service to sign", self.endpoint);
            return Err(ClientError::invalid("url", problem));
        };
        let region = region.to_owned();
        Ok(self.signed_for(aws, service, &region))
    }

    /// Signs each call with these credentials for this service and region, whatever the host is: `execute-api` for an API
    /// of API Gateway under a domain of your own.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use tickover::client::aws::Aws;
    /// use tickover::client::{Client, Http};
    ///
    /// let http = Http::new("https://tasks.example.com")?;
    /// let client = Client::from(http.signed_for(&Aws::from_env().await?, "execute-api", "eu-central-1"));
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "client-aws")]
    #[must_use]
    pub fn signed_for(mut self, aws: &Aws, service: &str, region: &str) -> Self {
        self.signer = Some(aws.signer(service, region));
        self
    }

    /// Whether the host is one of AWS's own: of API Gateway or of a function URL. They usually require signed calls.
    pub fn is_on_aws(&self) -> bool {
        host::service_and_region(&self.endpoint).is_some()
    }

    /// The endpoint's address, to which a path can be appended.
    pub fn url(&self) -> &str {
        self.endpoint.as_str().trim_end_matches('/')
    }

    #[cfg(all(test, feature = "client-aws"))]
    pub(super) fn without_pause(self) -> Self {
        Self { pause: Millis::ZERO, ..self }
    }

    fn of(endpoint: Url, sender: reqwest::Client) -> Self {
        Self {
            sender,
            endpoint,
            headers: HeaderMap::new(),
            #[cfg(feature = "client-aws")]
            signer: None,
            tries: TRIES,
            pause: TRY_PAUSE,
        }
    }

    /// The endpoint's address with these path segments added.
    fn address(&self, path: &[&str]) -> Url {
        let mut url = self.endpoint.clone();
        // Only an address without a host has no path, and `endpoint` refuses those.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// Adds the signature, if calls are signed.
    #[cfg(feature = "client-aws")]
    async fn sign(&self, request: &mut reqwest::Request) -> Result<(), ClientError> {
        match &self.signer {
            Some(signer) => Ok(signer.sign(request).await?),
            None => Ok(()),
        }
    }

    #[cfg(not(feature = "client-aws"))]
    #[expect(clippy::unused_async, reason = "with the feature it signs")]
    async fn sign(&self, _: &mut reqwest::Request) -> Result<(), ClientError> {
        Ok(())
    }

    async fn send_once(&self, call: &Call) -> Result<Vec<u8>, ClientError> {
        let method = Method::try_from(call.route.method())
            .map_err(|problem| ClientError::invalid("method", problem))?;
        let mut url = self.address(&call.route.segments(&call.names));
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        // If the answer to a claim came just after the timeout, its tasks would have no worker.
        let bound = ANSWER_BOUND + Duration::from(call.wait);
        let mut request = self.sender.request(method, url).headers(self.headers.clone()).timeout(bound);
        if !call.body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json").body(call.body.clone());
        }
        let unavailable = |error: reqwest::Error| ClientError::Unavailable {
            place: self.endpoint.to_string(),
            reason: chain(&error.without_url()),
        };
        let mut request = request.build().map_err(unavailable)?;
        self.sign(&mut request).await?;
        let response = self.sender.execute(request).await.map_err(unavailable)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(unavailable)?;
        if status.is_success() { Ok(body.into()) } else { Err(refused(status, &headers, &body)) }
    }
}

impl From<Http> for Client {
    fn from(http: Http) -> Self {
        Self { api: Api::new(http) }
    }
}

#[async_trait]
impl Transport for Http {
    fn place(&self) -> String {
        self.endpoint.to_string()
    }

    async fn send(&self, call: Call) -> Result<Vec<u8>, ClientError> {
        let mut tries = 1;
        loop {
            match self.send_once(&call).await {
                Err(error) if error.is_transient() && call.is_repeatable && tries < self.tries => {
                    self.sleep(self.pause.saturating_mul(1 << (tries - 1))).await;
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    async fn prepare(&self, _: &str) -> Result<Prepared<ExecutionId>, ClientError> {
        Err(ClientError::NotOverHttp { what: "starting in a transaction" })
    }

    async fn announce(&self, _: Prepared<ExecutionId>) -> Result<(), ClientError> {
        Err(ClientError::NotOverHttp { what: "announcing" })
    }

    async fn sleep(&self, span: Millis) {
        tokio::time::sleep(span.into()).await;
    }
}

fn endpoint(url: &str) -> Result<Url, ClientError> {
    let endpoint: Url = url.parse().map_err(|problem| ClientError::invalid("url", problem))?;
    if !matches!(endpoint.scheme(), "http" | "https") || endpoint.cannot_be_a_base() {
        let problem = format!("expected an http or https address, found `{endpoint}`");
        return Err(ClientError::invalid("url", problem));
    }
    Ok(endpoint)
}

pub(super) fn is_loopback(endpoint: &Url) -> bool {
    let host = endpoint.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The error that an answer with this status, headers and body means.
fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ClientError {
    let mut problem = read::answer::<Problem>(body).unwrap_or_else(|_| {
        // The page of a gateway or a proxy.
        let text: String = String::from_utf8_lossy(body).trim().chars().take(EXCERPT_CHARS).collect();
        gateway::problem(headers, &text).unwrap_or_else(|| Problem {
            code: format!("http_{}", status.as_u16()).into(),
            detail: text,
            ..Problem::default()
        })
    });
    problem.status = status.as_u16();
    problem.retry_after = problem.retry_after.or(retry_after(headers));
    if problem.detail.is_empty() {
        problem.detail = match &*problem.title {
            "" => status.to_string(),
            title => title.to_owned(),
        };
    }
    ClientError::Refused(Box::new(problem))
}

/// The header's form in seconds. Its other form, a date, needs synchronised clocks.
fn retry_after(headers: &HeaderMap) -> Option<u16> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

/// An error with its causes, down to "connection refused".
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
