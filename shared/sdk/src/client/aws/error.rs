//! Why a call to AWS isn't possible, and what to do.

use aws_credential_types::provider::error::CredentialsError;
use tickover_wire::answer::Problem;

use crate::client::ClientError;
use crate::client::http::{Refusal, chain};

/// Why a call can't be signed, or why a stack isn't found. Each message says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AwsError {
    /// There are no credentials in any of the usual places.
    #[error(
        "no AWS credentials are found: set AWS_PROFILE to a profile that has some, or create one with `aws configure \
         sso` and log in with `aws sso login`"
    )]
    NoCredentials,
    /// There are credentials, but they can't be loaded, such as those of an SSO session that has expired.
    #[error(
        "the AWS credentials can't be loaded: {}. With SSO, log in again: `aws sso login`. Else set AWS_PROFILE, or both \
         AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        .reason.trim_end_matches('.')
    )]
    Credentials {
        /// Why, for people.
        reason: String,
        /// Whether a later call may succeed.
        is_transient: bool,
    },
    /// No region is set.
    #[error("no AWS region is set: set AWS_REGION, or `region` in the AWS profile")]
    NoRegion,
    /// The environment or the profile asks for endpoints for FIPS.
    #[error(
        "AWS_USE_FIPS_ENDPOINT (in an AWS profile: use_fips_endpoint) asks for endpoints for FIPS 140, but this \
         program's own cryptography isn't a validated module: unset it"
    )]
    Fips,
    /// What is set as the region is no name of one.
    #[error("`{region}` is no AWS region: set AWS_REGION to one, such as eu-central-1")]
    NotARegion {
        /// What is set.
        region: String,
    },
    /// The region has no such stack.
    #[error(
        "no system `{stack}` in region {region}: give the core's parameter System, which `aws ssm get-parameters-by-path \
         --path /tickover --recursive --query Parameters[].Name` lists, and set AWS_REGION to the region in which it is \
         deployed"
    )]
    NoStack {
        /// The stack that was asked for.
        stack: String,
        /// The region that was asked.
        region: String,
    },
    /// The stack has no HTTP API.
    #[error("the stack `{stack}` has no HTTP API: deploy it with `ApiKind=HttpApi` or `ApiKind=FunctionUrl`")]
    NoApi {
        /// The stack.
        stack: String,
    },
    /// The stack doesn't say where its table and its queues are: it isn't one of `infra/core.yaml`, or an older one.
    #[error(
        "the stack `{stack}` doesn't say where its table and its queues are: deploy `infra/core.yaml` of this version as \
         the system `{stack}`"
    )]
    NoCore {
        /// The stack.
        stack: String,
    },
    /// The stack's table or its queues can't be used.
    #[error(
        "the table and the queues of the stack `{stack}` can't be used: {reason}. The caller's role needs the managed \
         policy that the stack exports as `tickover-{stack}-worker-policy`"
    )]
    Core {
        /// The stack.
        stack: String,
        /// Why, for people.
        reason: String,
    },
    /// AWS refuses to say where the stack's API is.
    #[error("the stack's address can't be read: {}", advice(ADDRESS, .code, .message))]
    Refused {
        /// AWS's type of the error, such as `AccessDeniedException`.
        code: String,
        /// AWS's text.
        message: String,
    },
    /// `CloudWatch` doesn't give the metrics.
    #[error("CloudWatch doesn't give the metrics: {}", advice("cloudwatch:GetMetricData", .code, .message))]
    Metrics {
        /// AWS's type of the error, such as `AccessDenied`.
        code: String,
        /// AWS's text.
        message: String,
    },
    /// No answer from AWS.
    #[error("no answer from {place}: {reason}")]
    Unavailable {
        /// The address.
        place: String,
        /// Why, for people.
        reason: String,
    },
    /// The request can't be signed: it has a region or a header that no request can have.
    #[error("the request can't be signed: {reason}")]
    Unsignable {
        /// Why, for people.
        reason: String,
    },
    /// The stack's address is no address of an HTTP endpoint.
    #[error(transparent)]
    Address(ClientError),
}

/// What finding an address needs.
const ADDRESS: &str = "ssm:GetParameters for parameter/tickover/*, or give the URL";

/// What to do after a refusal of a call that needs a permission.
fn advice(permission: &str, code: &str, message: &str) -> String {
    let said = format!("AWS says {code}: {message}");
    match Refusal::of(code) {
        Some(refusal) => format!("{} ({said})", refusal.advice(permission)),
        None => said,
    }
}

/// A refusal by `CloudWatch` as the answer of a call.
fn refused(code: &str, detail: String) -> Problem {
    let (code, status) = Refusal::of(code).map_or(("no_metrics", 502), |refusal| (refusal.code(), 403));
    let uri = format!("urn:problem-type:tickover:{code}");
    Problem { uri, title: "No metrics".into(), status, detail, code: code.into(), ..Problem::default() }
}

impl From<CredentialsError> for AwsError {
    fn from(error: CredentialsError) -> Self {
        let is_transient = match error {
            CredentialsError::CredentialsNotLoaded(_) => return Self::NoCredentials,
            // A service couldn't be reached, or a person must log in again: both may happen while a worker runs.
            CredentialsError::ProviderTimedOut(_) | CredentialsError::ProviderError(_) => true,
            _ => false,
        };
        Self::Credentials { reason: chain(&error), is_transient }
    }
}

impl From<AwsError> for ClientError {
    fn from(error: AwsError) -> Self {
        match error {
            AwsError::Address(error) => error,
            AwsError::Unavailable { place, reason } => Self::Unavailable { place, reason },
            AwsError::Metrics { ref code, .. } => Self::Refused(Box::new(refused(code, error.to_string()))),
            other => {
                let is_transient = matches!(other, AwsError::Credentials { is_transient: true, .. });
                Self::Unsigned { reason: other.to_string(), is_transient }
            }
        }
    }
}
