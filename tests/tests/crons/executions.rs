//! Crons whose runs are executions.

use axum::http::Method;
use serde_json::json;
use tickover_tests::http::Caller;

use super::{cron, until};

#[tokio::test]
async fn a_cron_starts_executions_as_it_starts_tasks() {
    let caller = Caller::default();
    let execution = json!({"workflow": "report", "id": "report.{occurrence}", "input": {"a": 1}, "queue": "flows",
        "execution_timeout": "30m", "labels": {"team": "a"}, "priority": "low", "fairness_key": "reports"});
    caller.ok("/v1/crons", json!({"id": "s", "every": "1h", "execution": execution})).await;
    until(&caller, "2026-01-01T01:00:00Z").await;
    let (status, answer) = caller.send(Method::GET, "/v1/executions/report.20260101T010000Z", None).await;
    assert_eq!(status.as_u16(), 200, "{answer}");
    let started = &answer["execution"];
    assert_eq!((&started["workflow"], &started["input"]), (&json!("report"), &json!({"a": 1})));
    assert_eq!(started["priority"], "low");
    let shown = cron(&caller, "s").await;
    assert_eq!((&shown["execution"], &shown["runs"][0]["status"]), (&execution, &json!("pending")));
}

#[tokio::test]
async fn an_open_execution_is_terminated_for_the_next_one() {
    let caller = Caller::default();
    let asked =
        json!({"id": "s", "every": "1h", "overlap": "terminate_other", "execution": {"workflow": "w"}});
    caller.ok("/v1/crons", asked).await;
    until(&caller, "2026-01-01T02:00:30Z").await;
    let shown = cron(&caller, "s").await;
    assert_eq!(shown["started"], 2, "{shown}");
    let statuses: Vec<_> =
        shown["runs"].as_array().unwrap().iter().map(|run| run["status"].clone()).collect();
    assert_eq!(statuses, ["cancelled", "pending"]);
}
