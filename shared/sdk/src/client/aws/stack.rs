//! Finds a deployment by its stack's name. Each stack has its address and its version in SSM's Parameter Store.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use tickover_wire::read;

use super::{Aws, AwsError, Signer};
use crate::client::http::{Refusal, chain, error_type, is_loopback, short};
use crate::client::{ClientError, Http};

const ANSWER_BOUND: Duration = Duration::from_secs(10);
const CONNECT_BOUND: Duration = Duration::from_secs(5);
/// How often the question is asked at most, if AWS has no time.
const TRIES: u32 = 3;
/// The pause after the first try. It doubles each time.
const TRY_PAUSE: Duration = Duration::from_millis(200);
/// The error of a parameter that doesn't exist, where it isn't just left out.
const NOT_FOUND: &str = "ParameterNotFound";

/// A deployment on AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deployment {
    /// The address of its HTTP API.
    pub url: String,
    /// The version of its functions, if the stack says so.
    pub version: Option<String>,
    region: String,
}

impl Deployment {
    /// Its endpoint, with signed calls. An API of API Gateway may be under a domain of your own.
    ///
    /// # Errors
    ///
    /// [`AwsError::Address`] if its address can't be read.
    pub fn http(&self, aws: &Aws) -> Result<Http, AwsError> {
        let http = self.http_unsigned()?;
        let is_own = http.is_on_aws();
        if is_own {
            http.signed(aws).map_err(AwsError::Address)
        } else {
            Ok(http.signed_for(aws, "execute-api", &self.region))
        }
    }

    /// Its endpoint, without signatures: for an API that accepts tokens or every caller.
    ///
    /// # Errors
    ///
    /// As [`Deployment::http`].
    pub fn http_unsigned(&self) -> Result<Http, AwsError> {
        Http::new(&self.url).map_err(AwsError::Address)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Question<'a> {
    names: &'a [String],
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    parameters: Vec<Parameter>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Parameter {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct Refused {
    #[serde(rename = "__type", default)]
    error_type: String,
    #[serde(alias = "Message", default)]
    message: String,
}

impl Aws {
    /// Finds the deployment whose stack has this name, in this region. The caller's policy needs `ssm:GetParameters` for
    /// `arn:aws:ssm:REGION:ACCOUNT:parameter/tickover/*`.
    ///
    /// # Errors
    ///
    /// [`AwsError::NoRegion`], [`AwsError::NoCredentials`], [`AwsError::Credentials`]; [`AwsError::NoStack`] if the region
    /// has no such stack; [`AwsError::NoApi`] if it has no HTTP API; [`AwsError::Refused`] and [`AwsError::Unavailable`].
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), tickover::client::aws::AwsError> {
    /// let aws = tickover::client::aws::Aws::from_env().await?;
    /// println!("it is at {}", aws.deployment("tickover").await?.url);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn deployment(&self, stack: &str) -> Result<Deployment, AwsError> {
        let region = self.region().ok_or(AwsError::NoRegion)?;
        let mut found = self.parameters(stack, &["api-url", "version"]).await?;
        match (found.remove("api-url"), found.remove("version")) {
            (Some(url), version) => Ok(Deployment { url, version, region: region.to_owned() }),
            (None, Some(_)) => Err(AwsError::NoApi { stack: stack.to_owned() }),
            (None, None) => Err(AwsError::NoStack { stack: stack.to_owned(), region: region.to_owned() }),
        }
    }

    /// Those of a stack's parameters that exist, by their names below `/tickover/<stack>/`. At most ten, by SSM's limit.
    pub(super) async fn parameters(
        &self,
        stack: &str,
        names: &[&str],
    ) -> Result<BTreeMap<String, String>, AwsError> {
        let region = self.region().ok_or(AwsError::NoRegion)?;
        let path = format!("/tickover/{stack}/");
        let names: Vec<String> = names.iter().map(|name| format!("{path}{name}")).collect();
        let place = self.ssm.clone().unwrap_or_else(|| address(region, self.dual_stack));
        let body = serde_json::to_string(&Question { names: &names });
        let body = body.map_err(|error| AwsError::Unsignable { reason: error.to_string() })?;
        let caller = Caller { signer: self.signer("ssm", region), sender: sender(&place)?, place };
        let (mut pause, mut tries) = (TRY_PAUSE, 1);
        let found = loop {
            match caller.ask(&body).await {
                Err(Failure::Transient(_)) if tries < TRIES => {
                    tokio::time::sleep(pause).await;
                    (pause, tries) = (pause * 2, tries + 1);
                }
                Err(Failure::Transient(error) | Failure::Final(error)) => {
                    return Err(if self.ssm.is_none() { of_region(error, region) } else { error });
                }
                Ok(found) => break found,
            }
        };
        let entry = |found: Parameter| Some((found.name.strip_prefix(&path)?.to_owned(), found.value));
        Ok(found.into_iter().filter_map(entry).collect())
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

/// SSM's address in a region.
fn address(region: &str, dual_stack: bool) -> String {
    match (region.starts_with("cn-"), dual_stack) {
        (false, false) => format!("https://ssm.{region}.amazonaws.com"),
        (false, true) => format!("https://ssm.{region}.api.aws"),
        (true, false) => format!("https://ssm.{region}.amazonaws.com.cn"),
        (true, true) => format!("https://ssm.{region}.api.amazonwebservices.com.cn"),
    }
}

fn sender(place: &str) -> Result<reqwest::Client, AwsError> {
    let invalid = |reason: String| AwsError::Address(ClientError::invalid("AWS_ENDPOINT_URL", reason));
    let url = place.parse().map_err(|problem| invalid(format!("`{place}`: {problem}")))?;
    let http = reqwest::Client::builder().timeout(ANSWER_BOUND).connect_timeout(CONNECT_BOUND);
    let http = if is_loopback(&url) { http.no_proxy() } else { http };
    http.build().map_err(|error| invalid(chain(&error)))
}

/// Asks SSM by its JSON protocol.
struct Caller {
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

impl Caller {
    async fn ask(&self, body: &str) -> Result<Vec<Parameter>, Failure> {
        let unavailable = |error: reqwest::Error| {
            let reason = chain(&error.without_url());
            Failure::Transient(AwsError::Unavailable { place: self.place.clone(), reason })
        };
        let request = self.sender.post(&self.place).header(CONTENT_TYPE, "application/x-amz-json-1.1");
        let request = request.header("x-amz-target", "AmazonSSM.GetParameters").body(body.to_owned());
        let mut request = request.build().map_err(unavailable)?;
        self.signer.sign(&mut request).await?;
        let answer = self.sender.execute(request).await.map_err(unavailable)?;
        let (status, by_header) = (answer.status(), error_type(answer.headers()).map(str::to_owned));
        let body = answer.bytes().await.map_err(unavailable)?;
        if status.is_success() {
            let answer = read::answer::<Answer>(&body).map_err(|problem| AwsError::Unavailable {
                place: self.place.clone(),
                reason: format!("an answer that can't be read: {problem}"),
            })?;
            return Ok(answer.parameters);
        }
        let refused = read::answer::<Refused>(&body).ok();
        let (by_body, message) = refused.map(|it| (it.error_type, it.message)).unwrap_or_default();
        let code = match by_header.as_deref().unwrap_or_else(|| short(&by_body)) {
            NOT_FOUND => return Ok(vec![]),
            "" => format!("HTTP status {}", status.as_u16()),
            code => code.to_owned(),
        };
        let is_busy =
            Refusal::of(&code).is_none() && (status.is_server_error() || code == "ThrottlingException");
        let error = AwsError::Refused { code, message };
        Err(if is_busy { Failure::Transient(error) } else { Failure::Final(error) })
    }
}
