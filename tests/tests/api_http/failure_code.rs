//! The timeout of the code for failures, given at the start by a caller who knows about that code.

use serde_json::json;

use crate::support::Api;

#[tokio::test]
async fn on_failure_code_announced_at_the_start_gets_its_timeout_although_no_turn_ran() {
    let api = Api::start().await;
    let start = json!({"workflow": "w", "id": "e", "execution_timeout": "1h", "on_failure_timeout": "5m"});
    let started = api.post("/v1/executions", start).await.ok(201);
    assert_eq!(started["execution"]["on_failure_timeout"], "5m");
    let execution = async || api.get("/v1/executions/e").await.ok(200)["execution"].clone();

    api.advance(3_600_000);
    api.scene.tick().await.unwrap();
    let failing = execution().await;
    assert_eq!(failing["status"], "pending", "{failing}");
    assert_eq!(failing["failing"]["cause"]["category"], "timeout", "{failing}");
    assert_eq!(failing["next"]["what"], "on_failure_timeout", "{failing}");

    api.advance(300_000);
    api.scene.tick().await.unwrap();
    let ended = execution().await;
    assert_eq!((&ended["status"], &ended["timeout_kind"]), (&json!("timed_out"), &json!("execution")));
}

#[tokio::test]
async fn an_execution_without_announced_on_failure_code_ends_at_its_deadline() {
    let api = Api::start().await;
    let start = json!({"workflow": "w", "id": "e", "execution_timeout": "1h"});
    let started = api.post("/v1/executions", start).await.ok(201);
    assert!(started["execution"]["on_failure_timeout"].is_null(), "{started}");
    api.advance(3_600_000);
    api.scene.tick().await.unwrap();
    assert_eq!(api.get("/v1/executions/e").await.ok(200)["execution"]["status"], "timed_out");
}

#[tokio::test]
async fn an_invalid_on_failure_timeout_is_refused_by_its_field_name() {
    let api = Api::start().await;
    for (field, value) in [
        ("on_failure_timeout", json!("999ms")),
        ("on_failure_timeout", json!(0)),
        ("on_failure_timeout", json!("a while")),
        ("on_failure_timeout", json!("2 years")),
        ("on_failure_timeout_ms", json!(10)),
        ("on_failure_timeout_seconds", json!(-1)),
    ] {
        let start = json!({"workflow": "w", "id": "e", field: value});
        let problem = api.post("/v1/executions", start).await.problem(400, "invalid_request");
        assert_eq!(problem["field"], field, "{problem}");
    }
    api.get("/v1/executions/e").await.problem(404, "not_found");
}

#[tokio::test]
async fn a_cron_passes_the_on_failure_timeout_to_each_of_its_executions() {
    let api = Api::start().await;
    let execution = json!({"workflow": "w", "execution_timeout": "1h", "on_failure_timeout": "90s"});
    let schedule = json!({"id": "s", "every": "1h", "execution": execution});
    api.post("/v1/crons", schedule).await.ok(201);
    let run = api.post("/v1/crons/s/trigger", json!({})).await.ok(200);
    let id = run["run"].as_str().unwrap();
    let started = api.get(&format!("/v1/executions/{id}")).await.ok(200);
    assert_eq!(started["execution"]["on_failure_timeout"], "1m 30s");
}
