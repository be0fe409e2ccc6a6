//! Questions to AWS's services by their JSON protocol, signed with the caller's credentials.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tickover_wire::read;

use super::{Aws, AwsError, Signer};
use crate::client::ClientError;
use crate::client::http::{Refusal, chain, error_type, is_loopback, short};

const ANSWER_BOUND: Duration = Duration::from_secs(10);
const CONNECT_BOUND: Duration = Duration::from_secs(5);
/// How often a question is asked at most, if AWS has no time.
const TRIES: u32 = 3;
/// The pause after the first try. It doubles each time.
const TRY_PAUSE: Duration = Duration::from_millis(200);
/// What AWS refuses because it has too much to do.
const BUSY: [&str; 2] = ["Throttling", "ThrottlingException"];

/// An operation of a service.
pub(super) struct Operation {
    /// The service's name in its host and in signatures.
    pub(super) service: &'static str,
    /// The version of the protocol.
    pub(super) version: &'static str,
    /// What is sent as `x-amz-target`.
    pub(super) target: &'static str,
    /// The error of a refusal, of its code and AWS's text.
    pub(super) refused: fn(String, String) -> AwsError,
}

#[derive(Deserialize)]
struct Refused {
    #[serde(rename = "__type", default)]
    error_type: String,
    #[serde(alias = "Message", default)]
    message: String,
}

impl Aws {
    /// Asks at this address, or at AWS's own in this region.
    pub(super) async fn ask<A: DeserializeOwned>(
        &self,
        operation: &Operation,
        place: Option<&str>,
        question: &impl Serialize,
    ) -> Result<A, AwsError> {
        let region = self.region().ok_or(AwsError::NoRegion)?;
        let own = || address(operation.service, region, self.dual_stack);
        let address = place.map_or_else(own, str::to_owned);
        let body = serde_json::to_string(question);
        let body = body.map_err(|error| AwsError::Unsignable { reason: error.to_string() })?;
        let signer = self.signer(operation.service, region);
        let caller = Caller { operation, signer, sender: sender(&address)?, place: address };
        let (mut pause, mut tries) = (TRY_PAUSE, 1);
        loop {
            match caller.ask(&body).await {
                Err(Failure::Transient(_)) if tries < TRIES => {
                    tokio::time::sleep(pause).await;
                    (pause, tries) = (pause * 2, tries + 1);
                }
                Err(Failure::Transient(error) | Failure::Final(error)) => {
                    return Err(if place.is_none() { of_region(error, region) } else { error });
                }
                Ok(found) => return Ok(found),
            }
        }
    }
}

/// The error with what to look at, as the address was made of the region's name.
pub(super) fn of_region(error: AwsError, region: &str) -> AwsError {
    match error {
        AwsError::Unavailable { place, reason } => {
            let reason =
                format!("{reason}. Look whether `{region}` is an AWS region, and whether there is a network");
            AwsError::Unavailable { place, reason }
        }
        other => other,
    }
}

/// A service's address in a region.
fn address(service: &str, region: &str, dual_stack: bool) -> String {
    match (region.starts_with("cn-"), dual_stack) {
        (false, false) => format!("https://{service}.{region}.amazonaws.com"),
        (false, true) => format!("https://{service}.{region}.api.aws"),
        (true, false) => format!("https://{service}.{region}.amazonaws.com.cn"),
        (true, true) => format!("https://{service}.{region}.api.amazonwebservices.com.cn"),
    }
}

fn sender(place: &str) -> Result<reqwest::Client, AwsError> {
    let invalid = |reason: String| AwsError::Address(ClientError::invalid("AWS_ENDPOINT_URL", reason));
    let url = place.parse().map_err(|problem| invalid(format!("`{place}`: {problem}")))?;
    let http = reqwest::Client::builder().timeout(ANSWER_BOUND).connect_timeout(CONNECT_BOUND);
    let http = if is_loopback(&url) { http.no_proxy() } else { http };
    http.build().map_err(|error| invalid(chain(&error)))
}

struct Caller<'a> {
    operation: &'a Operation,
    signer: Signer,
    sender: reqwest::Client,
    place: String,
}

enum Failure {
    Transient(AwsError),
    Final(AwsError),
}

impl From<AwsError> for Failure {
    fn from(error: AwsError) -> Self {
        Self::Final(error)
    }
}

impl Caller<'_> {
    async fn ask<A: DeserializeOwned>(&self, body: &str) -> Result<A, Failure> {
        let unavailable = |error: reqwest::Error| {
            let reason = chain(&error.without_url());
            Failure::Transient(AwsError::Unavailable { place: self.place.clone(), reason })
        };
        let media_type = format!("application/x-amz-json-{}", self.operation.version);
        let request = self.sender.post(&self.place).header(CONTENT_TYPE, media_type);
        let request = request.header("x-amz-target", self.operation.target).body(body.to_owned());
        let mut request = request.build().map_err(unavailable)?;
        self.signer.sign(&mut request).await?;
        let answer = self.sender.execute(request).await.map_err(unavailable)?;
        let (status, by_header) = (answer.status(), error_type(answer.headers()).map(str::to_owned));
        let body = answer.bytes().await.map_err(unavailable)?;
        if status.is_success() {
            return read::answer(&body).map_err(|problem| {
                let reason = format!("an answer that can't be read: {problem}");
                AwsError::Unavailable { place: self.place.clone(), reason }.into()
            });
        }
        let refused = read::answer::<Refused>(&body).ok();
        let (by_body, message) = refused.map(|it| (it.error_type, it.message)).unwrap_or_default();
        let code = match by_header.as_deref().unwrap_or_else(|| short(&by_body)) {
            "" => format!("HTTP status {}", status.as_u16()),
            code => code.to_owned(),
        };
        let is_busy =
            Refusal::of(&code).is_none() && (status.is_server_error() || BUSY.contains(&code.as_str()));
        let error = (self.operation.refused)(code, message);
        Err(if is_busy { Failure::Transient(error) } else { Failure::Final(error) })
    }
}
