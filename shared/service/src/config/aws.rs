//! How to reach AWS, as the environment sets it.

use super::Reader;

/// The settings for AWS. The AWS SDK reads more by itself, such as credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is its own variable")]
pub struct AwsEnvironment {
    /// `AWS_REGION`, or else `AWS_DEFAULT_REGION`.
    pub region: Option<String>,
    /// `AWS_ENDPOINT_URL`: another address for all services, such as an emulator's.
    pub endpoint_url: Option<String>,
    /// Whether `AWS_USE_DUALSTACK_ENDPOINT` is `true`.
    pub dual_stack: bool,
    /// Whether `AWS_USE_FIPS_ENDPOINT` is set to anything but `false`: a demand for FIPS must never be ignored.
    pub fips: bool,
    /// Whether `SSL_CERT_FILE` or `SSL_CERT_DIR` sets the trusted certificates.
    pub own_certificates: bool,
    /// Whether `HTTPS_PROXY` or `ALL_PROXY` is set, in capitals or not.
    pub proxy: bool,
}

impl AwsEnvironment {
    /// Reads the process's environment.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn from_env() -> Self {
        Self::read(|name| std::env::var(name).ok())
    }

    /// Reads any environment. An empty value counts as not set.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let reader = Reader { lookup, problems: vec![] };
        let is_set = |name: &str| reader.optional(name).is_some();
        let is = |name: &str, value: &str| reader.optional(name).map(|it| it.eq_ignore_ascii_case(value));
        Self {
            region: reader.optional("AWS_REGION").or_else(|| reader.optional("AWS_DEFAULT_REGION")),
            endpoint_url: reader.optional("AWS_ENDPOINT_URL"),
            dual_stack: is("AWS_USE_DUALSTACK_ENDPOINT", "true") == Some(true),
            fips: is("AWS_USE_FIPS_ENDPOINT", "false") == Some(false),
            own_certificates: ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().any(is_set),
            proxy: ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"].into_iter().any(is_set),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fips_is_wanted_unless_its_variable_is_missing_or_false() {
        let fips = |value: &'static str| {
            AwsEnvironment::read(|name| (name == "AWS_USE_FIPS_ENDPOINT").then(|| value.to_owned())).fips
        };
        assert!(fips("true") && fips("1") && !fips("False") && !fips(""));
    }
}
