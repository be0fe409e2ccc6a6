//! Signs a request with AWS's Signature Version 4, just before it is sent.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{PayloadChecksumKind, SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use aws_smithy_runtime_api::client::identity::Identity;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Body, Request, Url};
use tickover_service::ports::Clock;

use super::AwsError;
use super::credentials::Cache;
use crate::client::http::chain;

/// Signs requests to one service in one region.
#[derive(Clone)]
pub(in crate::client) struct Signer {
    credentials: Arc<Cache>,
    clock: Arc<dyn Clock>,
    service: String,
    region: String,
}

impl Signer {
    pub(super) fn new(credentials: Arc<Cache>, clock: Arc<dyn Clock>, service: &str, region: &str) -> Self {
        Self { credentials, clock, service: service.to_owned(), region: region.to_owned() }
    }

    /// Adds the signature's headers. The path and the query get the form in which they are signed.
    pub(in crate::client) async fn sign(&self, request: &mut Request) -> Result<(), AwsError> {
        let credentials = self.credentials.current().await?;
        encode_strictly(request.url_mut());
        let since_epoch = u64::try_from(self.clock.now().as_millis()).unwrap_or_default();
        let now = UNIX_EPOCH + Duration::from_millis(since_epoch);
        self.sign_at(request, credentials, now)
            .map_err(|error| AwsError::Unsignable { reason: chain(&*error) })
    }

    fn sign_at(
        &self,
        request: &mut Request,
        credentials: Credentials,
        now: SystemTime,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        // The standard of all services but S3: paths are normalised, and encoded once more.
        let mut settings = SigningSettings::default();
        // A function URL behind CloudFront requires the body's digest in a header; no service refuses it.
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let identity = Identity::from(credentials);
        let parameters = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(&self.service)
            .time(now)
            .settings(settings)
            .build()?
            .into();
        let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
        // Other headers aren't signed: a proxy may change them.
        let is_signed = |name: &HeaderName| name == CONTENT_TYPE || name.as_str().starts_with("x-amz-");
        let headers = request.headers().iter().filter(|(name, _)| is_signed(name));
        let headers = headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let signable = SignableRequest::new(
            request.method().as_str(),
            request.url().as_str(),
            headers,
            SignableBody::Bytes(body),
        )?;
        let (instructions, _) = sign(signable, &parameters)?.into_parts();
        let (headers, _) = instructions.into_parts();
        for header in headers {
            let mut value = HeaderValue::from_str(header.value())?;
            value.set_sensitive(header.sensitive());
            request.headers_mut().insert(HeaderName::from_bytes(header.name().as_bytes())?, value);
        }
        Ok(())
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, region, .. } = self;
        formatter
            .debug_struct("Signer")
            .field("service", service)
            .field("region", region)
            .finish_non_exhaustive()
    }
}

/// Percent-encodes all that may be encoded, such as `:` in ids, as AWS's own clients do. Then it doesn't matter whether
/// the service signs what it has received, or decodes and encodes it first.
fn encode_strictly(url: &mut Url) {
    let path: String = url.path().chars().map(encoded).collect();
    url.set_path(&path);
    // A form's encoding differs in these three only.
    let query = url.query().map(|query| query.replace('+', "%20").replace('*', "%2A").replace("%7E", "~"));
    url.set_query(query.as_deref());
}

/// An address is ASCII, and a `%` in it begins a character that is already encoded.
fn encoded(character: char) -> String {
    if character.is_ascii_alphanumeric() || "-_.~/%".contains(character) {
        character.to_string()
    } else {
        format!("%{:02X}", u32::from(character))
    }
}
