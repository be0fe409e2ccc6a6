//! An API as it is on AWS: it checks each request's signature as IAM does, or its token, and passes the request on to a server.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use aws_sdk_dynamodb::config::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_types::date_time::{DateTime, Format};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use tokio::net::TcpListener;

/// The credentials of the only caller that it accepts.
pub(crate) const CREDENTIALS: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", "a-secret"),
    ("AWS_SESSION_TOKEN", "a-token"),
];

/// A running gateway.
pub(crate) struct Gateway {
    pub(crate) port: u16,
    paths: Arc<Mutex<Vec<String>>>,
}

/// What requests need.
#[derive(Clone)]
enum Needs {
    /// A signature for this region and service, such as `us-east-1/execute-api`.
    Signature(&'static str),
    /// The token in this file. An API of API Gateway answers any other one with 401.
    Token(PathBuf),
}

#[derive(Clone)]
struct Rules {
    needs: Needs,
    upstream: String,
    http: reqwest::Client,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Gateway {
    /// A gateway in front of this server, for requests that are signed for this region and service.
    pub(crate) async fn start(upstream: &str, scope: &'static str) -> Self {
        Self::open(upstream, Needs::Signature(scope)).await
    }

    /// The same for requests with the token that is in this file at that moment.
    pub(crate) async fn with_token(upstream: &str, file: PathBuf) -> Self {
        Self::open(upstream, Needs::Token(file)).await
    }

    async fn open(upstream: &str, needs: Needs) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let paths = Arc::default();
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let rules = Rules { needs, upstream: upstream.to_owned(), http, paths: Arc::clone(&paths) };
        let router = Router::new().fallback(pass).with_state(rules);
        tokio::spawn(async { axum::serve(listener, router).await });
        Self { port, paths }
    }

    /// The paths of the requests that it has accepted.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn pass(
    State(rules): State<Rules>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, Vec<u8>) {
    let refusal = match &rules.needs {
        Needs::Signature(scope) => {
            check(scope, &method, &uri, &headers, &body).err().map(|why| (StatusCode::FORBIDDEN, why))
        }
        Needs::Token(file) => {
            let wanted = format!("Bearer {}", std::fs::read_to_string(file).expect("a token").trim());
            let is_wanted = headers.get(header::AUTHORIZATION).is_some_and(|given| given == wanted.as_str());
            (!is_wanted).then(|| (StatusCode::UNAUTHORIZED, "Unauthorized".to_owned()))
        }
    };
    if let Some((status, why)) = refusal {
        return (status, format!("{{\"message\": {why:?}}}").into_bytes());
    }
    rules.paths.lock().unwrap_or_else(PoisonError::into_inner).push(uri.path().to_owned());
    let request = rules.http.request(method, format!("{}{uri}", rules.upstream));
    let request = request.header(header::CONTENT_TYPE, "application/json").body(body);
    let answer = request.send().await.expect("an answer");
    (answer.status(), answer.bytes().await.expect("a body").to_vec())
}

/// Signs the request as it arrived with the SDK for Rust, and compares that with the caller's signature.
fn check(scope: &str, method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Result<(), String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let given = text("authorization");
    let signed = between(given, "SignedHeaders=", ",").ok_or("unsigned")?;
    for needed in ["host", "x-amz-date", "x-amz-security-token"] {
        if !signed.split(';').any(|name| name == needed) {
            return Err(format!("{needed} is not signed"));
        }
    }
    let date = text("x-amz-date");
    let [key, secret, token] = CREDENTIALS.map(|(_, value)| value);
    if !given.starts_with(&format!("AWS4-HMAC-SHA256 Credential={key}/{}/{scope}/aws4_request,", &date[..8]))
    {
        return Err(format!("not for {scope}: {given}"));
    }
    let (region, service) = scope.split_once('/').ok_or("no scope")?;
    let identity = Credentials::new(key, secret, Some(token.to_owned()), None, "tests").into();
    let params = v4::SigningParams::builder().identity(&identity).region(region).name(service);
    let params = params.time(instant(date)?).settings(SigningSettings::default()).build();
    let params = params.map_err(|error| error.to_string())?.into();
    // These two are added by the signing itself.
    let others = signed.split(';').filter(|name| !["x-amz-date", "x-amz-security-token"].contains(name));
    let others = others.map(|name| (name, text(name)));
    let address = format!("https://{}{uri}", text("host"));
    let request = SignableRequest::new(method.as_str(), address, others, SignableBody::Bytes(body));
    let expected = sign(request.map_err(|error| error.to_string())?, &params);
    let expected = expected.map_err(|error| error.to_string())?;
    if given.ends_with(&format!("Signature={}", expected.signature())) {
        Ok(())
    } else {
        Err(format!("the signature is not {}: {given}", expected.signature()))
    }
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.split_once(start)?.1.split(end).next()
}

/// `20060102T150405Z` as an instant. It must be recent.
fn instant(date: &str) -> Result<SystemTime, String> {
    let [year, month, day, hour, minute, second] =
        [0..4, 4..6, 6..8, 9..11, 11..13, 13..15].map(|place| date.get(place).unwrap_or_default());
    let text = format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z");
    let instant = DateTime::from_str(&text, Format::DateTime).map_err(|error| error.to_string())?;
    let instant = SystemTime::try_from(instant).map_err(|error| error.to_string())?;
    match instant.elapsed() {
        Ok(age) if age.as_secs() < 300 => Ok(instant),
        _ => Err(format!("signed at {date}")),
    }
}
