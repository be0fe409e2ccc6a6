use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::memory::ManualClock;

use super::*;
use crate::client::{Client, ClientError, Http};

/// 2026-01-31T12:00:00Z.
const NOON_SECS: u64 = 1_769_860_800;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_millis(i64::try_from(NOON_SECS).unwrap() * 1000)))
}

fn keys(token: Option<&str>) -> Credentials {
    let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    Credentials::new("AKIDEXAMPLE", secret, token.map(str::to_owned), None, "test")
}

fn aws(provider: impl ProvideCredentials + 'static, clock: Arc<ManualClock>) -> Aws {
    let provider = SharedCredentialsProvider::new(provider);
    Aws::with_clock(&SdkConfig::builder().credentials_provider(provider).build(), clock).unwrap()
}

/// Signs one request at noon, and returns the address that is called and the header `authorization`.
async fn signed(
    method: Method,
    url: &str,
    body: &'static str,
    token: Option<&str>,
    service: &str,
    region: &str,
) -> (String, String) {
    let mut request = reqwest::Client::new().request(method, url);
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json").body(body);
    }
    let mut request = request.header("x-not-signed", "1").build().unwrap();
    aws(keys(token), clock()).signer(service, region).sign(&mut request).await.unwrap();
    let headers = request.headers();
    assert_eq!(headers["x-amz-date"], "20260131T120000Z");
    assert_eq!(headers.get("x-amz-security-token").map(|it| it.to_str().unwrap()), token);
    (request.url().to_string(), headers["authorization"].to_str().unwrap().to_owned())
}

fn authorization(scope: &str, signed_headers: &str, signature: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260131/{scope}/aws4_request, SignedHeaders={signed_headers}, \
         Signature={signature}"
    )
}

/// The signatures are those of botocore 1.43.106 for the same requests at the same instant: `SigV4Auth(Credentials(…),
/// service, region).add_auth(AWSRequest(method, url, …))` with `botocore.auth.get_current_datetime` replaced, and with
/// `x-amz-content-sha256` set before.
#[tokio::test]
async fn the_signatures_are_those_of_aws_own_tools() {
    // A path with a character that is encoded, and no body.
    let url = "https://a1.execute-api.eu-central-1.amazonaws.com/prod/v1/tasks/mail:7";
    let (sent, found) = signed(Method::GET, url, "", None, "execute-api", "eu-central-1").await;
    assert_eq!(sent, url.replace(":7", "%3A7"));
    let signature = "15578007a530837706f7cec1042b3fe9b8fbff584a7f170369c1414e9da932fb";
    let scope = "eu-central-1/execute-api";
    assert_eq!(found, authorization(scope, "host;x-amz-content-sha256;x-amz-date", signature));
    // The same path, encoded by the caller.
    assert_eq!(signed(Method::GET, &sent, "", None, "execute-api", "eu-central-1").await, (sent, found));

    // A body, and the token of a session.
    let (url, token) = ("https://a1.lambda-url.us-east-1.on.aws/v1/tasks", Some("a/session+token="));
    let (_, found) = signed(Method::POST, url, r#"{"queue":"a"}"#, token, "lambda", "us-east-1").await;
    let signed_headers = "content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token";
    let signature = "d9e05aa423f76fdb67697d985ecd4c735c932557c4af1333cc0adfca7361e213";
    assert_eq!(found, authorization("us-east-1/lambda", signed_headers, signature));

    // A query with repeated names, in the form in which a client's `query_pairs_mut` writes it.
    let url = "https://a1.execute-api.eu-central-1.amazonaws.com/v1/tasks?label=a+b*%7E&cursor=x%2By%3D&label=%C3%A9";
    let (sent, found) = signed(Method::GET, url, "", None, "execute-api", "eu-central-1").await;
    assert!(sent.ends_with("?label=a%20b%2A~&cursor=x%2By%3D&label=%C3%A9"), "{sent}");
    let signature = "7def551f2082ebf4c643cb283759242bda1224170e65bb228aa2acf6a8c34ec6";
    assert_eq!(found, authorization(scope, "host;x-amz-content-sha256;x-amz-date", signature));
}

#[tokio::test]
async fn the_host_decides_the_service_and_other_hosts_need_it_said() {
    let aws = aws(keys(None), clock());
    let error = Http::new("https://tasks.example.com").unwrap().signed(&aws).unwrap_err();
    assert!(matches!(error, ClientError::Invalid { .. }), "{error}");
    let http = Http::new("https://a1.lambda-url.us-east-1.on.aws").unwrap().signed(&aws).unwrap();
    let shown = format!("{http:?} {aws:?}");
    assert!(shown.contains(r#"service: "lambda", region: "us-east-1""#), "{shown}");
    assert!(!shown.contains("wJalrX"), "{shown}");
}

/// Answers 503 until the last of these calls, and returns the headers of each.
async fn calls(count: usize, clock: Arc<ManualClock>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let received = tokio::spawn(async move {
        let mut received = vec![];
        while received.len() < count {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 8192];
            let length = stream.read(&mut request).await.unwrap();
            received.push(String::from_utf8_lossy(&request[..length]).into_owned());
            // The next try is a second later.
            clock.advance(Millis::from_secs(1));
            let answer = if received.len() < count {
                "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            } else {
                "HTTP/1.1 200 OK\r\ncontent-length: 25\r\nconnection: close\r\n\r\n{\"events\":[],\"counts\":{}}"
            };
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        received
    });
    (address, received)
}

#[tokio::test]
async fn each_retry_is_signed_anew() {
    let clock = clock();
    let (address, received) = calls(3, Arc::clone(&clock)).await;
    let http = Http::new(&address).unwrap().signed_for(&aws(keys(None), clock), "execute-api", "eu-west-1");
    let client = Client::from(http.without_pause());
    assert!(client.handle::<()>("a:7").unwrap().events().await.unwrap().is_empty());
    let received = received.await.unwrap();
    for (call, second) in received.iter().zip(["00", "01", "02"]) {
        assert!(call.starts_with("GET /v1/executions/a%3A7/events"), "{call}");
        assert!(call.contains(&format!("x-amz-date: 20260131T1200{second}Z\r\n")), "{call}");
    }
    let signature = |call: &String| call.split("Signature=").nth(1).unwrap()[..64].to_owned();
    let signatures: std::collections::BTreeSet<_> = received.iter().map(signature).collect();
    assert_eq!(signatures.len(), 3);
}

/// Gives credentials for ten minutes each time, until it fails.
#[derive(Debug)]
struct Sessions {
    loads: Arc<AtomicUsize>,
    last: usize,
}

impl ProvideCredentials for Sessions {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let load = self.loads.fetch_add(1, Ordering::SeqCst);
        future::ProvideCredentials::ready(if load < self.last {
            let ends_at = UNIX_EPOCH + Duration::from_secs(NOON_SECS + 600 * (load as u64 + 1));
            Ok(Credentials::new(format!("AKID{load}"), "secret", None, Some(ends_at), "test"))
        } else {
            Err(CredentialsError::provider_error("the session has expired"))
        })
    }
}

#[tokio::test]
async fn credentials_are_kept_renewed_before_they_expire_and_used_to_their_end() {
    let (loads, clock) = (Arc::new(AtomicUsize::new(0)), clock());
    let aws = aws(Sessions { loads: Arc::clone(&loads), last: 2 }, Arc::clone(&clock));
    let current = async || aws.credentials.current().await.map(|found| found.access_key_id().to_owned());
    for (after_secs, id, load) in [
        (0, "AKID0", 1),
        (299, "AKID0", 1),
        // Five minutes before their end.
        (1, "AKID1", 2),
        (599, "AKID1", 2),
        // They can't be renewed now, and are valid for five minutes.
        (1, "AKID1", 3),
        (29, "AKID1", 3),
        (1, "AKID1", 4),
    ] {
        clock.advance(Millis::from_secs(after_secs));
        assert_eq!(
            (current().await.as_deref(), loads.load(Ordering::SeqCst)),
            (Ok(id), load),
            "{after_secs}"
        );
    }
    clock.advance(Millis::from_secs(270));
    let error = current().await.unwrap_err();
    assert!(error.to_string().contains("aws sso login"), "{error}");
    assert!(ClientError::from(error).is_transient(), "a worker waits for the login");
}

#[tokio::test]
async fn without_credentials_nothing_is_sent_and_the_error_says_what_to_do() {
    let error = Aws::of(&SdkConfig::builder().build()).unwrap().check().await.unwrap_err();
    assert_eq!(error, AwsError::NoCredentials);
    assert!(error.to_string().contains("aws configure sso"));
    let none: ClientError = error.into();
    assert!(!none.is_transient() && none.code().is_none());

    let fips = SdkConfig::builder().use_fips(true).build();
    assert_eq!(Aws::of(&fips).unwrap_err(), AwsError::Fips);
}

#[test]
fn an_address_that_was_made_of_a_region_and_gives_no_answer_names_the_region() {
    let place = "https://ssm.eu-nowhere-1.amazonaws.com".to_owned();
    let silent = AwsError::Unavailable { place, reason: "dns error".to_owned() };
    let said = json::of_region(silent, "eu-nowhere-1").to_string();
    assert!(said.ends_with(
        "dns error. Look whether `eu-nowhere-1` is an AWS region, and whether there is a network"
    ));
    assert_eq!(json::of_region(AwsError::NoRegion, "eu-nowhere-1"), AwsError::NoRegion);
}
