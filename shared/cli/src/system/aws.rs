//! Calls to a deployment on AWS.

use tickover::Client;
use tickover::client::Http;
use tickover::client::aws::{Aws, AwsError, Deployment};

use crate::show::say;

use super::{Access, Metrics, Place, SystemArgs};

/// What to do after a refusal of a signed call that has no reason.
pub(super) const REFUSED: &str = "the call was signed. The caller's policy needs execute-api:Invoke on the API, or \
                                  lambda:InvokeFunctionUrl on the gateway; see who calls with `aws sts \
                                  get-caller-identity`. If the API accepts tokens instead, give one with --token";

impl SystemArgs {
    /// The endpoint, whose calls have a token.
    pub(super) async fn unsigned(self) -> anyhow::Result<Http> {
        match &self.stack {
            None => {
                self.refuse_unused("that is called without a signature")?;
                Ok(self.endpoint)
            }
            Some(stack) => Ok(self.find(&self.aws().await?, stack).await?.http_unsigned()?),
        }
    }

    /// The endpoint; with signed calls, if it is on AWS.
    pub(super) async fn signed(self) -> anyhow::Result<(Http, Access)> {
        if self.stack.is_none() && !self.endpoint.is_on_aws() {
            self.refuse_unused("that isn't an address of AWS")?;
            return Ok((self.endpoint, Access::Nothing));
        }
        let aws = self.aws().await?;
        let http = if let Some(stack) = &self.stack {
            self.find(&aws, stack).await?.http(&aws)?
        } else {
            // A worker should end at its start, not wait for credentials that never come.
            aws.check().await.map_err(|error| self.explained(error))?;
            self.endpoint.signed(&aws)?
        };
        Ok((http, Access::Signature))
    }

    /// The table and the queues of the stack.
    pub(super) async fn direct(self) -> anyhow::Result<(Client, Place)> {
        let Some(stack) = &self.stack else {
            anyhow::bail!("--direct needs the name of a stack on AWS: give --stack, or set TICKOVER_STACK");
        };
        if self.token.is_some() || self.no_sign_request {
            anyhow::bail!(
                "--direct calls DynamoDB and SQS, which need signed calls: leave --token (TICKOVER_TOKEN) and \
                 --no-sign-request out"
            );
        }
        let core = self.aws().await?.core(stack).await.map_err(|error| self.explained(error))?;
        warn_of_version(stack, core.version());
        let client = core.client().await.map_err(|error| self.explained(error))?;
        let Self { region, profile, .. } = &self;
        let (stack, region, profile) = (stack.clone(), region.clone(), profile.clone());
        Ok((client, Place::Stack { stack, region, profile }))
    }

    /// Where the system's metrics are, if not in itself: in `CloudWatch`, by the stack's name.
    pub(crate) async fn metrics(&self) -> anyhow::Result<Option<Metrics>> {
        let Some(stack) = &self.stack else { return Ok(None) };
        Ok(Some(Metrics::new(self.aws().await?, stack.clone())))
    }

    /// Refuses options that would have no effect, for an endpoint of this kind.
    fn refuse_unused(&self, kind: &str) -> anyhow::Result<()> {
        let options = [("region", &self.region), ("profile", &self.profile)];
        match options.into_iter().find(|(_, value)| value.is_some()) {
            Some((option, _)) => anyhow::bail!(
                "--{option} has no effect with the endpoint {}, {kind}: for a deployment on AWS give --stack, else \
                 leave --{option} out",
                self.endpoint.url()
            ),
            None => Ok(()),
        }
    }

    async fn aws(&self) -> Result<Aws, AwsError> {
        Aws::load(self.profile.as_deref(), self.region.as_deref()).await
    }

    async fn find(&self, aws: &Aws, stack: &str) -> anyhow::Result<Deployment> {
        let found = aws.deployment(stack).await.map_err(|error| self.explained(error))?;
        warn_of_version(stack, found.version.as_deref());
        Ok(found)
    }

    /// The error with the option that it is about.
    fn explained(&self, error: AwsError) -> anyhow::Error {
        match (&error, &self.profile) {
            (AwsError::NoRegion, _) => anyhow::anyhow!("{error}, or give --region"),
            (AwsError::NoCredentials | AwsError::Credentials { .. }, Some(profile)) => {
                anyhow::Error::from(error).context(format!("with the AWS profile `{profile}`"))
            }
            _ => error.into(),
        }
    }
}

fn warn_of_version(stack: &str, version: Option<&str>) {
    if let Some(version) = version.filter(|version| !is_alike(version)) {
        let own = env!("CARGO_PKG_VERSION");
        say(&format!(
            "warning: the stack `{stack}` runs Tickover {version}, and this tool is {own}: some calls may fail. Use a \
             tool of the stack's version, or upgrade the stack"
        ));
    }
}

/// Whether a version differs from the tool's only in its last part.
fn is_alike(version: &str) -> bool {
    let own = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")];
    version.splitn(3, '.').take(2).eq(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_minor_or_major_version_is_another_version() {
        let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
        assert!(is_alike(&format!("{major}.{minor}.99")) && is_alike(&format!("{major}.{minor}")));
        assert!(!is_alike(&format!("{major}.{minor}9.0")) && !is_alike("9.0.0") && !is_alike("?"));
    }
}
