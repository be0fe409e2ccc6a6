//! Impossible durations and instants, and fields that contradict each other.

use serde_json::json;

use crate::bad_input::{Case, nothing_was_scheduled, refused, with};
use crate::support::Api;

#[tokio::test]
async fn durations_are_refused_with_their_text() {
    let api = Api::start().await;
    let fields = [
        "timeout",
        "schedule_to_start_timeout",
        "start_to_close_timeout",
        "heartbeat_timeout",
        "maxInactivity",
        "maxRuntime",
        "deadline",
    ];
    for field in fields {
        let cases: Vec<Case> = [
            (json!("0s"), "`0s`"),
            (json!(0), "`0`"),
            (json!("-5s"), "`-5s`"),
            (json!(-5), "`-5`"),
            (json!("5 fortnights"), "fortnights"),
            (json!("99999999999999999999d"), "`99999999999999999999d`"),
            (json!("366d"), "`366d`"),
            (json!(31_536_000_001_u64), "`31536000001`"),
            (json!(1.5), "`1.5`"),
            (json!(""), "``"),
        ]
        .into_iter()
        .map(|(value, words)| (with(field, value), field, words))
        .collect();
        refused(&api, "/v1/tasks", &cases).await;
    }
    refused(
        &api,
        "/v1/tasks",
        &[
            (with("delay", json!("-1s")), "delay", "`-1s`"),
            (with("delay", json!("366d")), "delay", "`366d`"),
            (with("delay_ms", json!(-1)), "delay_ms", "`-1`"),
            (with("timeout_seconds", json!(0)), "timeout_seconds", "`0`"),
            (with("timeout_seconds", json!(31_536_001)), "timeout_seconds", "`31536001`"),
            (with("retry", json!({"delay": "366d"})), "retry.delay", "`366d`"),
        ],
    )
    .await;
    for field in fields.into_iter().chain(["delay", "delay_ms", "timeout_seconds"]) {
        for number in ["99999999999999999999", "1e300", "1e999"] {
            let body = format!(r#"{{"queue":"q","kind":"work","{field}":{number}}}"#);
            let problem = api.post_text("/v1/tasks", body).await.problem(400, "invalid_request");
            assert!(problem["detail"].as_str().unwrap().contains(&format!("`{number}`")), "{problem}");
        }
    }
    nothing_was_scheduled(&api).await;
    api.schedule("a-year", json!({"delay": 0, "timeout": "365d"})).await;
}

#[tokio::test]
async fn contradictions_are_refused() {
    let api = Api::start().await;
    let mut both = with("delay", json!("1s"));
    both["run_at"] = json!("2026-01-01T00:00:00Z");
    let two = |first: &str, second: &str| {
        let mut body = with(first, json!("1s"));
        body[second] = json!("1s");
        body
    };
    refused(
        &api,
        "/v1/tasks",
        &[
            (both, "run_at", "delay"),
            (two("timeout", "deadline"), "deadline", "timeout"),
            (two("start_to_close_timeout", "maxRuntime"), "maxRuntime", "start_to_close_timeout"),
            (two("heartbeat_timeout", "maxInactivity"), "maxInactivity", "heartbeat_timeout"),
            (json!({"queue": "q", "kind": "k", "retry": "none", "retries": "none"}), "retries", "retry"),
            (json!({"queue": "q", "kind": "k", "delay": 1, "delay_ms": 1}), "delay_ms", "delay"),
            (with("run_at", json!("tomorrow")), "run_at", "`tomorrow`"),
            (with("run_at", json!("2027-01-01T00:00:01Z")), "run_at", "a year"),
            (with("labels", json!({"": "x"})), "labels.", "1 to 64"),
        ],
    )
    .await;
    nothing_was_scheduled(&api).await;
}
