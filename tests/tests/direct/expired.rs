//! Credentials that AWS refuses because they have expired: at the start of a direct worker, and while it works.

use std::net::Ipv4Addr;

use axum::Router;
use axum::http::{StatusCode, header};
use tickover_tests::emulator::endpoint;
use tickover_tests::process::Process;
use tokio::net::TcpListener;

use crate::scene::{Scene, tool};

/// The answer of all services alike.
const REFUSAL: &str = r#"{"__type":"com.amazon.coral.service#ExpiredTokenException",
    "message":"The security token included in the request is expired"}"#;

/// The address of an AWS that refuses every request in this way.
async fn refusing() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/x-amz-json-1.0")], REFUSAL);
    let router = Router::new().fallback(async || answer);
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// A worker for which this service of AWS refuses the credentials.
async fn worker(scene: &Scene, service: &str) -> Process {
    let mut tool = tool(&["--stack", &scene.system, "work", "emails", "--direct", "--", "cat"]);
    tool.env("AWS_ENDPOINT_URL_SSM", endpoint()).env("AWS_ENDPOINT_URL_DYNAMODB", endpoint());
    Process::from_command(tool.env(format!("AWS_ENDPOINT_URL_{service}"), refusing().await))
        .expect("a worker")
}

#[tokio::test]
async fn a_direct_worker_whose_credentials_have_expired_at_its_start_ends_and_says_how_to_renew_them() {
    let scene = Scene::start().await;
    for (service, wanted) in [
        (
            "SSM",
            vec!["ExpiredTokenException", "the AWS credentials have expired: log in again (`aws sso login`)"],
        ),
        (
            "DYNAMODB",
            vec!["ExpiredTokenException", "the credentials are wrong or no longer valid: renew them"],
        ),
    ] {
        let ended = worker(&scene, service).await.ended().await.expect("an end");
        assert_eq!(ended.status.code(), Some(1), "{service}: {ended:?}");
        for wanted in wanted {
            assert!(ended.stderr.contains(wanted), "{service}: {wanted}: {}", ended.stderr);
        }
    }
}

#[tokio::test]
async fn a_direct_worker_whose_credentials_expire_says_how_to_renew_them_and_tries_again() {
    let scene = Scene::start().await;
    let worker = worker(&scene, "SQS").await;
    worker.says("ExpiredTokenException").await;
    worker.says("the credentials are wrong or no longer valid: renew them").await;
    worker.says("trying again").await;
}
