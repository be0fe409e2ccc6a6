//! Lists of executions.

use std::sync::Arc;

use serde_json::{Value, json};
use tickover_service::executions::COUNTED_MAX;
use tickover_service::memory::MemoryStore;
use tickover_service::ports::Listed;
use tickover_tests::http::Caller;

use crate::worker::Worker;

fn ids(answer: &Value) -> Vec<String> {
    let executions = answer["executions"].as_array().expect("a list");
    executions.iter().map(|execution| execution["id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn a_list_is_of_one_workflow_latest_first_page_by_page() {
    let worker = Worker::default();
    for number in 0..5 {
        worker.start(&format!("e-{number}"), json!({"labels": {"n": number.to_string()}})).await;
        worker.caller.pass(1).await;
    }
    worker.caller.ok("/v1/executions", json!({"workflow": "others", "id": "other"})).await;
    let mut found = Vec::new();
    let mut path = "/v1/executions?workflow=orders&limit=2".to_owned();
    for _ in 0..10 {
        let page = worker.get(&path).await;
        assert!(ids(&page).len() <= 2);
        found.extend(ids(&page));
        let Some(cursor) = page["cursor"].as_str() else { break };
        path = format!("/v1/executions?workflow=orders&limit=2&cursor={cursor}");
    }
    assert_eq!(found, ["e-4", "e-3", "e-2", "e-1", "e-0"]);
    let first = worker.get("/v1/executions?workflow=orders&limit=1").await;
    assert_eq!(first["executions"][0]["labels"], json!({"n": "4"}));
    let foreign = format!("/v1/executions?workflow=others&cursor={}", first["cursor"].as_str().unwrap());
    let (status, _) = worker.caller.send(axum::http::Method::GET, &foreign, None).await;
    assert_eq!(status.as_u16(), 400);
}

#[tokio::test]
async fn statuses_filter_a_list_and_failed_may_include_timed_out() {
    let worker = Worker::default();
    worker.ended("good", &json!(1)).await;
    worker.parked("late", json!({"execution_timeout": "10s"})).await;
    worker.parked("parked", json!({})).await;
    worker.caller.pass(10).await;
    for (query, expected) in [
        ("status=completed", vec!["good"]),
        ("status=failed", vec![]),
        ("status=failed&include_timed_out=true", vec!["late"]),
        ("status=waiting,timed_out", vec!["late", "parked"]),
    ] {
        let mut found = ids(&worker.get(&format!("/v1/executions?workflow=orders&{query}")).await);
        found.sort();
        assert_eq!(found, expected, "{query}");
    }
}

/// Also in a store without an index of all executions.
#[tokio::test]
async fn failed_executions_of_all_workflows_are_one_list() {
    let worker = Worker::default();
    worker.parked("late", json!({"execution_timeout": "10s"})).await;
    for (id, timeout) in [("other-late", "5s"), ("other", "1h")] {
        let start = json!({"workflow": "others", "id": id, "execution_timeout": timeout});
        worker.caller.ok("/v1/executions", start).await;
    }
    worker.caller.pass(10).await;
    for (query, expected) in [
        ("status=failed,timed_out", vec!["late", "other-late"]),
        ("status=timed_out&workflow=others", vec!["other-late"]),
        ("status=failed", vec![]),
    ] {
        let mut found = ids(&worker.get(&format!("/v1/executions?{query}")).await);
        found.sort();
        assert_eq!(found, expected, "{query}");
    }
    for query in ["", "status=timed_out,running", "label=n%3D1"] {
        let path = format!("/v1/executions?{query}");
        let (status, problem) = worker.caller.send(axum::http::Method::GET, &path, None).await;
        assert_eq!((status.as_u16(), &problem["field"]), (400, &json!("workflow")), "{query}");
        assert!(problem["detail"].as_str().unwrap().contains("TICKOVER_LISTS=all"), "{problem}");
    }
}

#[tokio::test]
async fn where_all_executions_are_listed_those_of_all_workflows_are_filtered() {
    let store = MemoryStore::new().listing(Listed::All);
    let worker = Worker { caller: Caller::over(Arc::new(store)) };
    for (id, workflow, team) in [("open", "orders", "a"), ("late", "orders", "b"), ("other", "others", "a")] {
        let timeout = if id == "late" { "1s" } else { "1h" };
        let labels = json!({ "team": team });
        let start = json!({"id": id, "workflow": workflow, "execution_timeout": timeout, "labels": labels});
        worker.caller.ok("/v1/executions", start).await;
        worker.caller.pass(1).await;
    }
    worker.caller.ok("/v1/executions/other/terminate", json!({})).await;
    for (query, expected) in [
        ("limit=9", vec!["other", "late", "open"]),
        ("status=pending,timed_out", vec!["late", "open"]),
        ("status=cancelled", vec!["other"]),
        ("status=timed_out", vec!["late"]),
        ("label=team%3Da", vec!["other", "open"]),
        ("error=none", vec![]),
        ("workflow=orders", vec!["late", "open"]),
    ] {
        assert_eq!(ids(&worker.get(&format!("/v1/executions?{query}")).await), expected, "{query}");
    }
    let first = worker.get("/v1/executions?limit=2").await;
    let cursor = first["cursor"].as_str().unwrap();
    assert_eq!(ids(&worker.get(&format!("/v1/executions?limit=2&cursor={cursor}")).await), ["open"]);
    let counted = worker.get("/v1/workflows").await;
    let expected = json!([
        {"workflow": "orders", "executions": {"pending": 1, "timed_out": 1}},
        {"workflow": "others", "executions": {"cancelled": 1}},
    ]);
    assert_eq!(counted["workflows"], expected);
    assert_eq!((&counted["complete"], &counted["read"]), (&json!(true), &json!(3)));
    let latest = worker.get("/v1/executions/other").await["execution"]["created_at"].take();
    assert!(counted["as_of"].as_str() >= latest.as_str(), "{counted}");
}

#[tokio::test]
async fn of_a_list_of_all_executions_only_the_latest_thousand_are_counted_and_the_answer_says_so() {
    let store = MemoryStore::new().listing(Listed::All);
    let worker = Worker { caller: Caller::over(Arc::new(store)) };
    worker.caller.ok("/v1/executions", json!({"id": "first", "workflow": "others"})).await;
    worker.caller.pass(1).await;
    for number in 0..COUNTED_MAX {
        if number == COUNTED_MAX - 1 {
            assert_eq!(worker.get("/v1/workflows").await["complete"], true);
        }
        worker.start(&format!("e-{number}"), json!({})).await;
    }
    let counted = worker.get("/v1/workflows").await;
    assert_eq!(counted["workflows"], json!([{"workflow": "orders", "executions": {"pending": COUNTED_MAX}}]));
    assert_eq!((&counted["complete"], &counted["read"]), (&json!(false), &json!(COUNTED_MAX)));
}

#[tokio::test]
async fn labels_errors_and_starts_filter_a_list() {
    let worker = Worker::default();
    let large = "m".repeat(4_000);
    worker.parked("a", json!({"labels": {"customer": "7", "tier": "gold"}, "memo": large})).await;
    worker.caller.pass(1).await;
    worker.parked("b", json!({"labels": {"customer": "7=8"}})).await;
    let second = worker.get("/v1/executions/b").await["execution"]["created_at"].as_str().unwrap().to_owned();
    for (query, expected) in [
        ("label=customer%3D7", vec!["a"]),
        ("label=customer%3D7%3D8", vec!["b"]),
        ("label=tier%3Dgold", vec!["a"]),
        ("label=tier%3D", vec![]),
        (&format!("started_from={second}"), vec!["b"]),
        (&format!("started_before={second}"), vec!["a"]),
        ("error=none", vec![]),
    ] {
        let found = ids(&worker.get(&format!("/v1/executions?workflow=orders&{query}")).await);
        assert_eq!(found, expected, "{query}");
    }
    for (query, field) in [
        ("limit=1", "workflow"),
        ("workflow=orders&label=customer", "label"),
        ("workflow=orders&label=%3D7", "label"),
        ("workflow=orders&error=", "error"),
        ("workflow=orders&started_from=yesterday", "started_from"),
        ("workflow=orders&started_before=1", "started_before"),
    ] {
        let path = format!("/v1/executions?{query}");
        let (status, answer) = worker.caller.send(axum::http::Method::GET, &path, None).await;
        assert_eq!((status.as_u16(), answer["field"].as_str()), (400, Some(field)), "{query}: {answer}");
    }
    let (status, answer) = worker.caller.send(axum::http::Method::GET, "/v1/workflows", None).await;
    assert_eq!((status.as_u16(), answer["code"].as_str()), (501, Some("not_kept")));
}
