//! Which of AWS's services a host belongs to, and in which region.

use reqwest::Url;

/// The second label of a host, what may follow its region, and the service that requests are signed for.
const HOSTS: &[(&str, &[&str], &str)] = &[
    ("execute-api", &["amazonaws.com", "amazonaws.com.cn", "api.aws"], "execute-api"),
    ("lambda-url", &["on.aws"], "lambda"),
];

/// Reads `ID.execute-api.REGION.amazonaws.com` and `ID.lambda-url.REGION.on.aws`.
pub(super) fn service_and_region(endpoint: &Url) -> Option<(&'static str, &str)> {
    let mut labels = endpoint.host_str()?.splitn(4, '.');
    let (_, kind, region, rest) = (labels.next()?, labels.next()?, labels.next()?, labels.next()?);
    let (_, _, service) = HOSTS.iter().find(|(label, ends, _)| *label == kind && ends.contains(&rest))?;
    Some((service, region))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_aws_says_its_service_and_its_region() {
        let found = |url: &str| {
            let url: Url = url.parse().unwrap();
            service_and_region(&url).map(|(service, region)| format!("{service} {region}"))
        };
        for (host, wanted) in [
            ("a1.execute-api.eu-central-1.amazonaws.com", "execute-api eu-central-1"),
            ("A1-vpce-2.Execute-API.us-gov-west-1.amazonaws.com", "execute-api us-gov-west-1"),
            ("a1.execute-api.cn-north-1.amazonaws.com.cn", "execute-api cn-north-1"),
            ("a1.execute-api.eu-west-1.api.aws", "execute-api eu-west-1"),
            ("a1.lambda-url.us-east-1.on.aws", "lambda us-east-1"),
        ] {
            assert_eq!(found(&format!("https://{host}/prod")).as_deref(), Some(wanted), "{host}");
        }
        for other in [
            "http://127.0.0.1:7070",
            "https://tasks.example.com",
            "https://a1.execute-api.eu-west-1.amazonaws.com.evil.example",
            "https://a1.execute-api.eu-west-1.on.aws",
            "https://execute-api.eu-west-1.amazonaws.com",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
