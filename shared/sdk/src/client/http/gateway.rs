//! Refusals by AWS itself, before a call reaches Tickover. Their type is in a header. Their text may change, so nothing
//! is decided by it.

use reqwest::header::HeaderMap;
use serde::Deserialize;
use tickover_wire::answer::Problem;
use tickover_wire::read;

/// The header with the type of an error.
const ERROR_TYPE: &str = "x-amzn-errortype";

/// What AWS refuses a caller for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Refusal {
    Expired,
    Unknown,
    Signature,
    NotSigned,
    Denied,
}

/// The body of a refusal. Its field is `message` or `Message`.
#[derive(Deserialize)]
struct Body {
    #[serde(alias = "Message")]
    message: String,
}

impl Refusal {
    /// The refusal with this type. Services of AWS have several names for the same.
    pub(in crate::client) fn of(error_type: &str) -> Option<Self> {
        Some(match error_type {
            "ExpiredToken" | "ExpiredTokenException" => Self::Expired,
            "UnrecognizedClientException" | "InvalidClientTokenId" | "InvalidAccessKeyId" => Self::Unknown,
            "InvalidSignatureException"
            | "SignatureDoesNotMatch"
            | "RequestExpired"
            | "RequestTimeTooSkewed" => Self::Signature,
            "MissingAuthenticationToken"
            | "MissingAuthenticationTokenException"
            | "IncompleteSignature"
            | "IncompleteSignatureException"
            | "UnauthorizedException" => Self::NotSigned,
            "AccessDenied" | "AccessDeniedException" | "ForbiddenException" => Self::Denied,
            _ => return None,
        })
    }

    /// Stable, for programs.
    pub(in crate::client) const fn code(self) -> &'static str {
        match self {
            Self::Expired => "expired_credentials",
            Self::Unknown => "unknown_credentials",
            Self::Signature => "invalid_signature",
            Self::NotSigned => "not_signed",
            Self::Denied => "access_denied",
        }
    }

    /// What to do. `permission` is the one that the call needs.
    pub(in crate::client) fn advice(self, permission: &str) -> String {
        let advice = match self {
            Self::Expired => {
                "the AWS credentials have expired: log in again (`aws sso login`), or renew AWS_SESSION_TOKEN"
            }
            Self::Unknown => {
                "AWS doesn't know these credentials: see which ones are used with `aws sts get-caller-identity`, and \
                 choose others with AWS_PROFILE"
            }
            Self::Signature => {
                "AWS doesn't accept the signature: see that this machine's clock is right, and that the secret key \
                 belongs to the access key"
            }
            Self::NotSigned => "the call must be signed with AWS credentials, or must have a valid token",
            Self::Denied => return format!("the caller isn't allowed this: its policy needs {permission}"),
        };
        advice.to_owned()
    }
}

/// The problem that a refusal by AWS means.
pub(super) fn problem(headers: &HeaderMap, text: &str) -> Option<Problem> {
    let error_type = error_type(headers)?;
    let refusal = Refusal::of(error_type)?;
    let advice = refusal.advice("execute-api:Invoke on the API, or lambda:InvokeFunctionUrl on the gateway");
    let said = read::answer::<Body>(text.as_bytes()).map_or_else(|_| text.to_owned(), |body| body.message);
    let detail = format!("{advice} (AWS says {error_type}: {said})");
    Some(Problem { code: refusal.code().into(), detail, ..Problem::default() })
}

/// The type of an error that a service of AWS answers with.
pub(in crate::client) fn error_type(headers: &HeaderMap) -> Option<&str> {
    Some(short(headers.get(ERROR_TYPE)?.to_str().ok()?))
}

/// A type without its namespace and without the address of its documentation.
pub(in crate::client) fn short(error_type: &str) -> &str {
    let name = error_type.split(':').next().unwrap_or_default();
    name.rsplit('#').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_aws_is_known_by_its_type_and_says_what_to_do() {
        for (error_type, code, advice) in [
            ("ExpiredTokenException", "expired_credentials", "aws sso login"),
            (
                "AccessDeniedException:http://internal.amazon.com/coral/",
                "access_denied",
                "execute-api:Invoke",
            ),
            ("com.amazonaws.x#InvalidSignatureException", "invalid_signature", "clock"),
            ("UnrecognizedClientException", "unknown_credentials", "AWS_PROFILE"),
            ("MissingAuthenticationTokenException", "not_signed", "signed"),
        ] {
            let headers = HeaderMap::from_iter([(ERROR_TYPE.parse().unwrap(), error_type.parse().unwrap())]);
            let problem = problem(&headers, r#"{"Message":"no"}"#).unwrap();
            assert_eq!(problem.code, code);
            assert!(
                problem.detail.contains(advice) && problem.detail.ends_with(": no)"),
                "{}",
                problem.detail
            );
        }
    }

    #[test]
    fn a_text_alone_decides_nothing() {
        let text = r#"{"message":"The security token included in the request is expired"}"#;
        assert!(problem(&HeaderMap::new(), text).is_none());
    }
}
