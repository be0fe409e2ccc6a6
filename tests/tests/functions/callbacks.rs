//! Callbacks as on AWS: the secret that signs their tokens is in Secrets Manager, where the functions that need it read it
//! under their roles.

use serde_json::{Value, json};
use tempfile::TempDir;
use tickover_core::id::{ExecutionId, QueueName, WorkflowName};
use tickover_core::payload::Json;
use tickover_service::executions::StartRequest;
use tickover_tests::emulator::judge;
use tickover_tests::process::until;
use tickover_tests::runtime_api::Function;

use crate::deployment::{Deployment, event, running_task};
use crate::polling::worker;

const OLD: &str = "an-old-secret-of-thirty-two-bytes-or-more";
const NEW: &str = "a-new-secret-of-thirty-two-bytes-or-more";

/// Calls a route of the gateway; returns the status and the body.
async fn call(gateway: &Function, path: &str, body: &Value) -> (u64, Value) {
    let mut request = event("http_api_post_task");
    request["rawPath"] = json!(path);
    request["requestContext"]["http"]["path"] = json!(path);
    request["isBase64Encoded"] = json!(false);
    request["body"] = json!(body.to_string());
    let answer = gateway.invoke(request).await.unwrap();
    let body = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    (answer["statusCode"].as_u64().unwrap(), body)
}

/// A token for an attempt, from the gateway.
async fn token(deployment: &Deployment, gateway: &Function, id: &str) -> String {
    let (schedule, claim) = (deployment.start("schedule").await, deployment.start("claim").await);
    let lease = running_task(&schedule, &claim, id, json!({})).await;
    let (status, made) = call(gateway, &format!("/v1/tasks/{id}/callback"), &json!({"lease": lease})).await;
    assert_eq!(status, 200, "{made}; {}", gateway.logs());
    for other in [&schedule, &claim] {
        assert!(!other.logs().contains("GetSecretValue"), "a function reads what it doesn't need");
    }
    made["token"].as_str().unwrap().to_owned()
}

fn complete(token: &str) -> String {
    format!("/v1/callbacks/{token}/complete")
}

#[tokio::test]
async fn the_gateway_reads_the_secret_when_it_is_needed_and_logs_neither_it_nor_a_token() {
    let deployment = Deployment::new().await.with_callbacks(OLD).await;
    let gateway = deployment.start("gateway").await;
    let (status, _) = call(&gateway, "/v1/tasks", &json!({"queue": "emails", "kind": "k"})).await;
    assert_eq!(status, 201);
    assert!(!gateway.logs().contains("GetSecretValue"), "it was read before it was needed");

    let token = token(&deployment, &gateway, "order-1").await;
    let (forged, answer) = call(&gateway, &complete(&format!("A{token}")), &json!({"output": 1})).await;
    assert_eq!((forged, &answer["code"]), (404, &json!("unknown_callback")));
    // Another process of the deployment verifies it.
    let other = deployment.start("gateway").await;
    let (done, answer) = call(&other, &complete(&token), &json!({"output": 1})).await;
    assert_eq!(done, 200, "{answer}");
    let logs = [gateway.logs(), other.logs()].concat();
    assert!(!logs.contains(OLD) && !logs.contains(&token), "a secret is logged: {logs}");
}

#[tokio::test]
async fn a_token_outlives_the_rotation_of_the_secret_that_has_signed_it() {
    let deployment = Deployment::new().await.with_callbacks(OLD).await;
    let gateway = deployment.start("gateway").await;
    let by_old = token(&deployment, &gateway, "order-1").await;
    deployment.callbacks("PutSecretValue", &format!("{NEW},{OLD}")).await;
    let rotated = deployment.start("gateway").await;
    let by_new = token(&deployment, &rotated, "order-2").await;
    for token in [&by_old, &by_new] {
        let (status, answer) = call(&rotated, &complete(token), &json!({"output": 1})).await;
        assert_eq!(status, 200, "{answer}");
    }
    // It knows only the old secret.
    let (status, _) = call(&gateway, &complete(&by_new), &json!({"output": 1})).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_worker_whose_secret_comes_late_tries_again_and_signs_what_the_gateway_takes() {
    let deployment = Deployment::new().await.naming_callbacks();
    let folder = TempDir::new().unwrap();
    let letter = folder.path().join("letter");
    let worker = worker(&deployment.environment("worker", &judge()), &["1h", "40s"]);
    let service = deployment.service().await;
    let (workflow, queue) = (WorkflowName::parse("errand").unwrap(), QueueName::parse("emails").unwrap());
    let id = ExecutionId::parse("errand-1").unwrap();
    let mut request = StartRequest::new(workflow, queue);
    request.id = Some(id.clone());
    request.input = Json::parse(json!({"parcels": [], "letter": letter}).to_string());
    service.start(request).await.unwrap();
    until("a turn that failed", async || {
        let found = service.execution(&id).await.unwrap().unwrap().execution;
        (found.version > 2 && found.turn().is_none()).then_some(())
    })
    .await;
    deployment.callbacks("CreateSecret", OLD).await;
    let token = until("a letter with a token", async || {
        std::fs::read_to_string(&letter).ok().filter(|token| !token.is_empty())
    })
    .await;

    let gateway = deployment.start("gateway").await;
    let (status, answer) = call(&gateway, &complete(&token), &json!({"output": "Ada Bicycle"})).await;
    assert_eq!(status, 200, "{answer}; {}", gateway.logs());
    let output = until("its end", async || service.execution(&id).await.unwrap().unwrap().output).await;
    assert_eq!(output.as_str(), r#"["passed","signed by Ada Bicycle"]"#);
    worker.signal("TERM").await.unwrap();
    let ended = worker.ended().await.unwrap();
    assert!(!ended.stderr.contains(OLD) && !ended.stderr.contains(&token), "a secret is logged");
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_is_a_failure_that_passes() {
    let deployment = Deployment::new().await.naming_callbacks();
    let gateway = deployment.start("gateway").await;
    let (status, answer) = call(&gateway, &complete("AAAA"), &json!({"output": 1})).await;
    assert_eq!(status, 503, "{answer}");
    assert!(gateway.logs().contains("names no secret"), "{}", gateway.logs());
}
