//! Crons whose runs are executions.

use axum::http::Method;
use serde_json::json;
use tickover_core::id::{QueueName, WorkflowName};
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
async fn a_cron_that_names_no_queue_starts_its_executions_where_the_workers_are() {
    let caller = Caller::default();
    let execution = json!({"workflow": "report", "id": "report.{occurrence}"});
    caller
        .ok("/v1/crons", json!({"id": "s", "every": "1h", "overlap": "allow_all", "execution": execution}))
        .await;
    let queue_of = async |id: &str| {
        let (_, answer) = caller.send(Method::GET, &format!("/v1/executions/{id}"), None).await;
        answer["execution"]["queue"].clone()
    };
    until(&caller, "2026-01-01T01:00:00Z").await;
    assert_eq!(queue_of("report.20260101T010000Z").await, "workflows");
    let queue = QueueName::parse("reports").unwrap();
    let service = &caller.scene.service;
    service.open_queue(&queue).await.unwrap();
    service.announce_routes(&[(WorkflowName::parse("report").unwrap(), queue)].into()).await.unwrap();
    until(&caller, "2026-01-01T02:00:00Z").await;
    assert_eq!(queue_of("report.20260101T020000Z").await, "reports");
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

#[tokio::test]
async fn the_executions_of_crons_keep_to_the_limits_of_their_keys() {
    let caller = Caller::default();
    for id in ["a", "b"] {
        let execution = json!({"workflow": "report", "id": format!("{id}.{{occurrence}}"), "queue": "flows",
            "rate": {"key": "api", "limit": 6, "per": "1m"}, "concurrency": [{"key": "reports", "limit": 1}]});
        caller.ok("/v1/crons", json!({"id": id, "every": "1h", "execution": execution})).await;
    }
    let unique = json!({"workflow": "sync", "queue": "flows", "unique": {"key": "sync"}});
    caller
        .ok("/v1/crons", json!({"id": "c", "every": "1h", "overlap": "allow_all", "execution": unique}))
        .await;
    until(&caller, "2026-01-01T02:00:00Z").await;
    let seen = async |id: &str| {
        let (_, mut answer) = caller.send(Method::GET, &format!("/v1/executions/{id}"), None).await;
        answer["execution"].take()
    };
    let mut starts = vec![];
    for id in ["a.20260101T010000Z", "b.20260101T010000Z"] {
        starts.push(seen(id).await["available_at"].as_str().unwrap()[11..19].to_owned());
    }
    starts.sort_unstable();
    assert_eq!(starts, ["01:00:00", "01:00:10"]);
    // The second run of the unique one met the first.
    let (_, listed) = caller.send(Method::GET, "/v1/executions?workflow=sync", None).await;
    assert_eq!(listed["executions"].as_array().unwrap().len(), 1, "{listed}");
    // Of the runs that are received together, one takes the only place.
    let request = tickover_tests::scene::claim_request(10);
    let queue = tickover_tests::scene::queue_name("flows");
    caller.scene.service.next_work(&queue, &request).await.unwrap();
    let (_, limit) = caller.send(Method::GET, "/v1/limits/reports", None).await;
    assert_eq!((&limit["limit"]["taken"], &limit["limit"]["limit"]), (&json!(1), &json!(1)), "{limit}");
    assert!(limit["limit"]["waiting"].as_u64().unwrap() > 0, "{limit}");
}
