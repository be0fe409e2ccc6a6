//! Errors in workers' and operators' calls are named, and change nothing.

use serde_json::json;

use crate::bad_input::refused;
use crate::support::Api;

#[tokio::test]
async fn values_from_workers_must_be_in_their_ranges() {
    let api = Api::start().await;
    let lease = api.running("t", json!({})).await;
    let long = "x".repeat(65);
    refused(
        &api,
        "/v1/queues/q/claim",
        &[
            (json!({"lease": "999ms"}), "lease", "`999ms`"),
            (json!({"lease": "12h 1ms"}), "lease", "`12h 1ms`"),
            (json!({"lease": 0}), "lease", "`0`"),
            (json!({"max": 0}), "max", "1 to 10, found the number `0`"),
            (json!({"max": 11}), "max", "1 to 10"),
            (json!({"max": "3"}), "max", "found the string `3`"),
            (json!({"wait": "21s"}), "wait", "`21s`"),
            (json!({"worker": ""}), "worker", "empty"),
            (json!({"worker": "a b"}), "worker", "' '"),
            (json!({"worker": long}), "worker", "at most 64"),
            (json!({"queue": "q"}), "queue", "unknown field"),
        ],
    )
    .await;
    refused(
        &api,
        "/v1/tasks/t/complete",
        &[(json!({"output": 1}), "lease", "required"), (json!({"lease": ""}), "lease", "token")],
    )
    .await;
    refused(
        &api,
        "/v1/tasks/t/fail",
        &[
            (json!({"lease": lease}), "error", "required"),
            (json!({"lease": lease, "error": "x"}), "error", "expected a JSON object, found the string `x`"),
            (json!({"lease": lease, "error": {}}), "error.code", "required"),
            (json!({"lease": lease, "error": {"code": ""}}), "error.code", "empty"),
            (json!({"lease": lease, "error": {"code": "x", "message": 1}}), "error.message", "a string"),
            (
                json!({"lease": lease, "error": {"code": "x", "retryable": "no"}}),
                "error.retryable",
                "true or false",
            ),
            (json!({"lease": lease, "error": {"code": "x", "stack": ""}}), "error.stack", "unknown field"),
        ],
    )
    .await;
    let progress = json!({"lease": lease, "progress": 1.01});
    refused(
        &api,
        "/v1/tasks/t/heartbeat",
        &[(progress, "progress", "0 to 1"), (json!({"lease": lease, "progress": "1"}), "progress", "0 to 1")],
    )
    .await;
    refused(&api, "/v1/tasks/t/cancel", &[(json!({"force": "yes"}), "force", "true or false")]).await;
    refused(&api, "/v1/tasks/t/retry", &[(json!({"force": true}), "force", "unknown field")]).await;
    assert_eq!(api.task("t").await["status"], "running");
}

#[tokio::test]
async fn a_message_that_is_too_long_is_cut_and_says_so_and_the_failure_counts() {
    let api = Api::start().await;
    for (id, message, whole) in [
        ("plain", "ü".repeat(200_000), false),
        ("escaped", "\u{1}".repeat(100_000), false),
        ("long", "x".repeat(300_000), true),
    ] {
        let lease = api.running(id, json!({})).await;
        let error = json!({"code": "broken", "message": message});
        let failed = api.post(&format!("/v1/tasks/{id}/fail"), json!({"lease": lease, "error": error})).await;
        assert_eq!(failed.ok(200)["task"]["status"], "failed");
        let told = api.task(id).await["error"]["message"].as_str().unwrap().to_owned();
        if whole {
            assert_eq!(told, message);
        } else {
            let kept = told.strip_suffix(&format!(" [cut: it had {} bytes]", message.len())).unwrap();
            assert!(message.starts_with(kept) && kept.len() > 50_000, "{}", kept.len());
        }
    }
}

#[tokio::test]
async fn a_failure_is_recorded_whatever_its_code_and_message_contain() {
    let api = Api::start().await;
    let long = format!(r#"{{"code": "{}"}}"#, "c".repeat(65));
    for (id, error, code, message) in [
        ("long", long.as_bytes(), "c".repeat(64), ""),
        (
            "half",
            br#"{"code": "\ud83d", "message": "a\udc00b"}"#,
            "\u{fffd}".repeat(3),
            "a\u{fffd}\u{fffd}\u{fffd}b",
        ),
        ("bytes", b"{\"code\": \"exit_1\", \"message\": \"caf\xe9\"}", "exit_1".to_owned(), "caf\u{fffd}"),
    ] {
        let lease = api.running(id, json!({})).await;
        let mut body = format!(r#"{{"lease": "{lease}", "error": "#).into_bytes();
        body.extend(error);
        body.push(b'}');
        api.post_text(&format!("/v1/tasks/{id}/fail"), body).await.ok(200);
        let task = api.task(id).await;
        assert_eq!(task["status"], "failed");
        assert_eq!(task["error"], json!({"code": code, "message": message}), "{id}");
    }
    // A list finds it by the code that was sent.
    let found = api.get(&format!("/v1/tasks?queue=q&status=failed&error={}", "c".repeat(65))).await.ok(200);
    assert_eq!((&found["tasks"][0]["id"], found["tasks"].as_array().unwrap().len()), (&json!("long"), 1));
}
