//! Which system the commands call, and the credentials for it.

use std::fmt;

use anyhow::Context as _;
use tickover::Client;
use tickover::client::{ClientError, Http};

#[cfg(feature = "aws")]
mod aws;
#[cfg(feature = "aws")]
mod cloudwatch;
#[cfg(not(feature = "aws"))]
#[path = "system/no_cloudwatch.rs"]
mod cloudwatch;
mod place;

pub(crate) use cloudwatch::Metrics;
pub(crate) use place::Place;

/// How to get the tool with its AWS parts.
#[cfg(any(test, not(feature = "aws")))]
const WITH_AWS: &str = "`cargo install --locked --features aws tickover-cli`, or in a checkout `cargo install --locked \
                        --features aws --path shared/cli`";

/// Options that choose the system.
#[derive(clap::Args, Debug)]
#[expect(clippy::doc_markdown, reason = "these are the texts of --help, where back-quotes would show")]
pub(crate) struct SystemArgs {
    /// The server to call: a local one (`tickover dev`) or a deployed one
    #[arg(
        long,
        global = true,
        env = "TICKOVER_ENDPOINT",
        default_value = "http://127.0.0.1:7070",
        value_name = "URL",
        value_parser = endpoint
    )]
    endpoint: Http,
    /// Call the deployment on AWS whose stack has this name, instead of a URL
    #[arg(
        long,
        global = true,
        env = "TICKOVER_STACK",
        value_name = "NAME",
        conflicts_with = "endpoint",
        value_parser = stack
    )]
    stack: Option<String>,
    /// The AWS region of the stack, instead of that of AWS_REGION or of the profile
    #[arg(long, global = true, value_name = "REGION")]
    region: Option<String>,
    /// The AWS profile whose credentials sign the calls, instead of that of AWS_PROFILE
    #[arg(long, global = true, value_name = "PROFILE")]
    profile: Option<String>,
    /// A token for a deployment that requires one, sent as "Authorization: Bearer"; the calls aren't signed then
    #[arg(long, global = true, env = "TICKOVER_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<Token>,
    /// Why the call is made, at most 128 bytes: what an operator's call or a cancellation changes says so, with the caller
    #[arg(long, global = true, value_name = "TEXT")]
    reason: Option<String>,
    /// Don't sign the calls, for a deployment that every caller may call; with --endpoint, no credentials are needed
    #[arg(long, global = true)]
    no_sign_request: bool,
}

/// A secret: it isn't in the form for logs.
#[derive(Clone)]
struct Token(String);

impl From<String> for Token {
    fn from(token: String) -> Self {
        Self(token)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token")
    }
}

/// What the system was given to know the caller by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Token,
    #[cfg(feature = "aws")]
    Signature,
    /// Nothing, on the caller's wish.
    Unsigned,
    Nothing,
}

/// The options that a command needs to call the same system. Secrets aren't among them.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) stack: Option<String>,
    others: Vec<(&'static str, String)>,
}

impl Options {
    /// The program with these options.
    pub(crate) fn command(self, http: &Http) -> Vec<String> {
        let place = match self.stack {
            Some(stack) => ["--stack".to_owned(), stack],
            None => ["--endpoint".to_owned(), http.url().to_owned()],
        };
        let others = self.others.into_iter().flat_map(|(name, value)| [format!("--{name}"), value]);
        std::iter::once("tickover".to_owned()).chain(place).chain(others).collect()
    }
}

impl SystemArgs {
    /// The options that chose the system.
    pub(crate) fn options(&self) -> Options {
        let others = [("region", &self.region), ("profile", &self.profile)].into_iter();
        let others = others.filter_map(|(name, value)| Some((name, value.clone()?))).collect();
        Options { stack: self.stack.clone(), others }
    }

    /// The system's endpoint, with what its calls need.
    pub(crate) async fn http(self) -> anyhow::Result<Http> {
        let token = self.token.clone();
        let (http, access) = match token {
            Some(Token(token)) => {
                let http = self.unsigned().await?.header("authorization", &format!("Bearer {token}"));
                (http.context("the token")?, Access::Token)
            }
            None if self.no_sign_request => (self.unsigned().await?, Access::Unsigned),
            None => self.signed().await?,
        };
        ACCESS.get_or_init(|| access);
        Ok(http.tries(1))
    }

    pub(crate) async fn client(self) -> anyhow::Result<Client> {
        let reason = self.reason.clone();
        let client = Client::from(self.http().await?);
        Ok(match reason {
            Some(reason) => client.because(&reason),
            None => client,
        })
    }

    /// The client of a worker: over HTTP, or of the stack's table and queues.
    pub(crate) async fn for_worker(self, is_direct: bool) -> anyhow::Result<(Client, Place)> {
        if is_direct {
            return self.direct().await;
        }
        let http = self.http().await?;
        let url = http.url().to_owned();
        Ok((http.into(), Place::Endpoint { url }))
    }
}

#[cfg(not(feature = "aws"))]
impl SystemArgs {
    #[expect(clippy::unused_async, reason = "with the feature it asks AWS")]
    async fn unsigned(self) -> anyhow::Result<Http> {
        let options = [("stack", self.stack), ("region", self.region), ("profile", self.profile)];
        match options.into_iter().find(|(_, value)| value.is_some()) {
            Some((option, _)) => Err(without_aws(option)),
            None => Ok(self.endpoint),
        }
    }

    async fn signed(self) -> anyhow::Result<(Http, Access)> {
        Ok((self.unsigned().await?, Access::Nothing))
    }

    async fn direct(self) -> anyhow::Result<(Client, Place)> {
        std::future::ready(Err(without_aws("direct"))).await
    }

    /// Where the system's metrics are, if not in itself.
    #[expect(clippy::unused_async, reason = "with the feature it asks AWS")]
    pub(crate) async fn metrics(&self) -> anyhow::Result<Option<Metrics>> {
        Ok(None)
    }
}

#[cfg(any(test, not(feature = "aws")))]
fn without_aws(option: &str) -> anyhow::Error {
    anyhow::anyhow!("--{option} needs the tool with its AWS parts, which this build doesn't have: {WITH_AWS}")
}

/// Refuses addresses that this build can't call.
#[cfg(any(test, not(feature = "aws")))]
fn without_tls(url: &str) -> Result<(), String> {
    if url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:")) {
        return Err(format!(
            "https needs the tool with its AWS parts, which this build doesn't have: {WITH_AWS}"
        ));
    }
    Ok(())
}

/// How the calls of this process say who calls: for [`advice`].
static ACCESS: std::sync::OnceLock<Access> = std::sync::OnceLock::new();

/// What to do about this error, if the system or a gateway in front of it refused the caller without a reason.
pub(crate) fn advice(error: &anyhow::Error) -> Option<String> {
    let problem = error.chain().find_map(|cause| cause.downcast_ref::<ClientError>())?.problem()?;
    if !matches!(&*problem.code, "http_401" | "http_403") {
        return None;
    }
    Some(match ACCESS.get()? {
        Access::Token => {
            "the token is refused: it may have expired, or be for another audience. Give another one with --token"
                .to_owned()
        }
        #[cfg(feature = "aws")]
        Access::Signature => aws::REFUSED.to_owned(),
        Access::Unsigned => {
            "the call was not signed: leave --no-sign-request out, or give a token with --token".to_owned()
        }
        Access::Nothing => {
            "the endpoint requires to know the caller: give a token with --token, or call a deployment on AWS by \
             the name of its stack with --stack"
                .to_owned()
        }
    })
}

/// Parses a server's address. The client sends each call once; `tickover work` does its own retries.
fn endpoint(url: &str) -> Result<Http, String> {
    #[cfg(not(feature = "aws"))]
    without_tls(url)?;
    Http::new(url).map_err(|error| error.to_string())
}

/// Parses the name of a stack, by `CloudFormation`'s rules.
fn stack(name: &str) -> Result<String, String> {
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.len() <= 128
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if is_name {
        Ok(name.to_owned())
    } else {
        Err("expected up to 128 letters, digits and hyphens, the first a letter".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_aws_says_how_to_get_one_with_it() {
        let error = without_aws("stack").to_string();
        assert!(error.contains("--stack") && error.contains("--features aws"), "{error}");
    }

    #[test]
    fn a_build_without_tls_says_how_to_get_one_with_it() {
        let error = without_tls("HTTPS://a1.execute-api.eu-west-1.amazonaws.com").unwrap_err();
        assert!(error.contains("--features aws"), "{error}");
        assert_eq!(without_tls("http://127.0.0.1:7070"), Ok(()));
    }

    #[test]
    fn names_that_no_stack_can_have_are_wrong_usage() {
        assert!(stack("tickover-2").is_ok());
        for wrong in ["", "2x", "a/b", "a b", &"x".repeat(129)] {
            assert!(stack(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_in_no_log() {
        assert_eq!(format!("{:?}", Token::from("sesame".to_owned())), "Token");
    }
}
