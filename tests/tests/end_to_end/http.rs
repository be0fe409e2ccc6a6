//! Requests that are signed as callers of a deployment sign them.

use std::time::{Duration, UNIX_EPOCH};

use aws_config::SdkConfig;
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use aws_smithy_runtime_api::client::identity::Identity;
use reqwest::{Body, Request};
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemClock;

/// Adds the headers of a signature for this service. An emulator requires them, and doesn't check the signature.
pub(crate) async fn sign_for(service: &str, config: &SdkConfig, request: &mut Request) {
    let credentials = config.credentials_provider().expect("a source of credentials");
    let identity = Identity::from(credentials.provide_credentials().await.expect("credentials"));
    let now = u64::try_from(SystemClock.now().as_millis()).unwrap();
    let parameters = SigningParams::builder()
        .identity(&identity)
        .region(config.region().expect("a region").as_ref())
        .name(service)
        .time(UNIX_EPOCH + Duration::from_millis(now))
        .settings(SigningSettings::default())
        .build()
        .unwrap()
        .into();
    let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
    let signable = SignableRequest::new(
        request.method().as_str(),
        request.url().as_str(),
        std::iter::empty(),
        SignableBody::Bytes(body),
    );
    let (instructions, _) = sign(signable.unwrap(), &parameters).unwrap().into_parts();
    let (headers, _) = instructions.into_parts();
    for header in headers {
        request.headers_mut().insert(header.name(), header.value().parse().unwrap());
    }
}
