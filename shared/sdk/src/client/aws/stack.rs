//! Finds a deployment by its stack's name. Each stack has its address and its version in SSM's Parameter Store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::json::Operation;
use super::{Aws, AwsError};
use crate::client::Http;

const GET_PARAMETERS: Operation = Operation {
    service: "ssm",
    version: "1.1",
    target: "AmazonSSM.GetParameters",
    refused: |code, message| AwsError::Refused { code, message },
};
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
        let path = format!("/tickover/{stack}/");
        let names: Vec<String> = names.iter().map(|name| format!("{path}{name}")).collect();
        let found = match self.ask(&GET_PARAMETERS, self.ssm.as_deref(), &Question { names: &names }).await {
            Ok(Answer { parameters }) => parameters,
            Err(AwsError::Refused { code, .. }) if code == NOT_FOUND => vec![],
            Err(error) => return Err(error),
        };
        let entry = |found: Parameter| Some((found.name.strip_prefix(&path)?.to_owned(), found.value));
        Ok(found.into_iter().filter_map(entry).collect())
    }
}
