//! Callbacks over HTTP: every token that isn't valid gets the same answer.

use serde_json::{Value, json};

use crate::support::{Api, Reply};

async fn callback(api: &Api, id: &str, lease: &str) -> String {
    let made = api.post(&format!("/v1/tasks/{id}/callback"), json!({"lease": lease})).await.ok(200);
    let token = made["token"].as_str().unwrap().to_owned();
    assert_eq!(made["path"], format!("/v1/callbacks/{token}"));
    token
}

async fn report(api: &Api, token: &str, call: &str) -> Reply {
    let body = match call {
        "complete" => json!({"output": {"ok": true}}),
        "fail" => json!({"error": {"code": "declined", "message": "no"}}),
        _ => json!({}),
    };
    api.post(&format!("/v1/callbacks/{token}/{call}"), body).await
}

#[tokio::test]
async fn whoever_has_the_token_of_an_attempt_heartbeats_and_completes_it() {
    let api = Api::start().await;
    let lease = api.running("t", json!({})).await;
    let token = callback(&api, "t", &lease).await;
    report(&api, &token, "heartbeat").await.ok(200);
    assert_eq!(report(&api, &token, "complete").await.ok(200), json!({"received": true}));
    let task = api.task("t").await;
    assert_eq!((&task["status"], &task["output"]), (&json!("completed"), &json!({"ok": true})));
}

#[tokio::test]
async fn every_token_that_isnt_valid_gets_the_same_answer() {
    let api = Api::start().await;
    let token = callback(&api, "used", &api.running("used", json!({})).await).await;
    report(&api, &token, "complete").await.ok(200);
    let lost = callback(&api, "lost", &api.running("lost", json!({})).await).await;
    let other = Api::start().await;
    let foreign = callback(&other, "used", &other.running("used", json!({})).await).await;
    let open = callback(&api, "open", &api.running("open", json!({})).await).await;
    let forged = format!("{}{}", if open.starts_with('B') { 'C' } else { 'B' }, &open[1..]);
    let truncated = open[..open.len() - 4].to_owned();
    // The lease of the second task has ended, and another worker has it.
    api.advance(10 * 60_000);
    api.claim().await;
    api.claim().await;
    let mut expected: Option<(Value, String)> = None;
    for bad in [token, lost, foreign, forged, truncated, "x".to_owned(), "A".repeat(500)] {
        for call in ["complete", "fail", "heartbeat"] {
            let reply = report(&api, &bad, call).await;
            let text = reply.text.clone();
            let problem = reply.problem(404, "unknown_callback");
            let (_, first) = expected.get_or_insert_with(|| (problem.clone(), text.clone()));
            assert_eq!(&text, first, "{call} {bad}");
            assert!(!text.contains(&bad) || bad == "x", "{text}");
        }
    }
}

#[tokio::test]
async fn heartbeats_of_an_attempt_by_token_are_written_once_in_a_tenth_of_its_lease() {
    let api = Api::start().await;
    let lease = api.running("t", json!({})).await;
    let token = callback(&api, "t", &lease).await;
    let until = async || api.task("t").await["lease_expires_at"].clone();
    let first = until().await;
    report(&api, &token, "heartbeat").await.ok(200);
    assert_eq!(until().await, first);
    api.advance(60_000 / 10);
    report(&api, &token, "heartbeat").await.ok(200);
    let second = until().await;
    assert_ne!(second, first);
    api.advance(1_000);
    report(&api, &token, "heartbeat").await.ok(200);
    assert_eq!(until().await, second);
}
