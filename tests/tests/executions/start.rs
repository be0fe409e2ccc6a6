//! Starts, and repeated starts.

use axum::http::{Method, StatusCode};
use serde_json::json;
use tickover_core::duration::Millis;

use crate::worker::{Worker, completed};

#[tokio::test]
async fn a_started_execution_shows_all_it_was_given_and_both_its_deadlines() {
    let worker = Worker::default();
    let fields = json!({
        "input": {"boxes": 3}, "labels": {"team": "a"}, "memo": [1, null],
        "execution_timeout": "30m", "run_timeout_seconds": 60,
    });
    let started = worker.start("order-7", fields).await;
    assert_eq!(started["status"], "pending");
    assert_eq!((&started["execution_timeout"], &started["run_timeout"]), (&json!("30m"), &json!("1m")));
    assert_eq!(started["deadline_at"], worker.caller.after(1_800));
    assert_eq!(started["run_deadline_at"], worker.caller.after(60));
    let seen = worker.seen("order-7").await;
    for field in ["input", "labels", "memo", "deadline_at", "run_deadline_at", "run", "queue"] {
        assert_eq!(seen[field], started[field], "{field}");
    }
    assert_eq!((&seen["input"], &seen["labels"]), (&json!({"boxes": 3}), &json!({"team": "a"})));
    assert_eq!((&seen["memo"], &seen["queue"]), (&json!([1, null]), &json!("workflows")));
    assert_eq!(seen["next"], json!({"what": "run_timeout", "at": worker.caller.after(60)}));
}

#[tokio::test]
async fn starting_with_an_id_that_exists_answers_with_what_exists_or_refuses_by_policy() {
    let worker = Worker::default();
    let start = |policy: &str, input: i32| json!({"workflow": "orders", "id": "one", "input": input, "policy": policy});
    let (status, first) = worker.caller.post("/v1/executions", start("reject_duplicate", 1)).await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    let (status, again) = worker.caller.post("/v1/executions", start("use_existing", 2)).await;
    assert_eq!((status, &again["execution"]["input"]), (StatusCode::OK, &json!(1)));
    worker.caller.scene.clock.advance(Millis::from_secs(60));
    let refused = worker.caller.post("/v1/executions", start("reject_duplicate", 1)).await;
    let since = &first["execution"]["created_at"];
    assert_eq!((refused.0, &refused.1["code"]), (StatusCode::CONFLICT, &json!("id_conflict")));
    assert_eq!(&refused.1["since"], since);
    let text = format!("there is already an execution with this id, since {}", since.as_str().unwrap());
    assert_eq!(refused.1["detail"], text);
    // However often it was started, it runs once.
    let turn = worker.take("one").await;
    worker.close(turn, vec![], completed(&json!("done"))).await;
    assert!(worker.try_take().await.is_none());
    let (_, ended) = worker.caller.post("/v1/executions", start("use_existing", 1)).await;
    assert_eq!(ended["execution"]["output"], "done");
}

#[tokio::test]
async fn a_start_with_an_event_sends_it_if_the_execution_is_there_and_repeats_nothing() {
    let worker = Worker::default();
    let start =
        |event: serde_json::Value| json!({"workflow": "orders", "id": "one", "input": 1, "event": event});
    let add = |item: &str, id: &str| start(json!({"name": "add", "payload": item, "event_id": id}));
    for (item, id, status, waiting) in
        [("lamp", "1", 201, 1), ("chair", "2", 200, 2), ("chair", "2", 200, 2), ("lamp", "1", 200, 2)]
    {
        let (answered, answer) = worker.caller.post("/v1/executions", add(item, id)).await;
        assert_eq!((answered.as_u16(), &answer["execution"]["pending_events"]), (status, &json!(waiting)));
    }
    let events = worker.get("/v1/executions/one/events").await;
    let payloads: Vec<_> = events["events"].as_array().unwrap().iter().map(|e| &e["payload"]).collect();
    assert_eq!(payloads, ["lamp", "chair"]);
    // The policy goes before the event.
    let mut rejecting = add("sofa", "3");
    rejecting["policy"] = json!("reject_duplicate");
    let refused = worker.caller.refused("/v1/executions", rejecting).await;
    assert_eq!(refused, (409, "id_conflict".to_owned()));

    let turn = worker.take("one").await;
    worker.close(turn, vec![], completed(&json!("done"))).await;
    let refused = worker.caller.refused("/v1/executions", add("sofa", "4")).await;
    assert_eq!(refused, (409, "already_terminal".to_owned()));
    let (status, ended) = worker.caller.post("/v1/executions", add("chair", "2")).await;
    assert_eq!((status, &ended["execution"]["output"]), (StatusCode::OK, &json!("done")));
    let nameless = worker.caller.refused("/v1/executions", start(json!({"payload": 1}))).await;
    assert_eq!(nameless, (400, "invalid_request".to_owned()));
}

#[tokio::test]
async fn an_id_that_another_workflow_has_is_a_conflict_whatever_the_policy() {
    let worker = Worker::default();
    let start = |workflow: &str, policy: &str| json!({"workflow": workflow, "id": "one", "policy": policy});
    let (status, _) = worker.caller.post("/v1/executions", start("w1", "use_existing")).await;
    assert_eq!(status, StatusCode::CREATED);
    for policy in ["use_existing", "reject_duplicate"] {
        let refused = worker.caller.refused("/v1/executions", start("w2", policy)).await;
        assert_eq!(refused, (409, "id_conflict".to_owned()), "{policy}");
    }
    assert_eq!(worker.seen("one").await["workflow"], "w1");
}

#[tokio::test]
async fn timeouts_under_a_second_are_refused_by_name_with_the_minimum() {
    let worker = Worker::default();
    for (field, value) in [
        ("execution_timeout", json!("999ms")),
        ("execution_timeout_ms", json!(999)),
        ("run_timeout", json!(1)),
        ("run_timeout_ms", json!(500)),
    ] {
        let body = json!({"workflow": "orders", field: value});
        let (status, problem) = worker.caller.post("/v1/executions", body).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_request")));
        assert_eq!(problem["field"], field);
        assert!(problem["detail"].as_str().unwrap().contains("at least 1s"), "{problem}");
    }
    worker.start("least", json!({"execution_timeout": "1s", "run_timeout_ms": 1000})).await;
}

#[tokio::test]
async fn a_delayed_execution_starts_when_it_is_time_and_its_deadline_counts_from_the_start() {
    let worker = Worker::default();
    let started = worker.start("later", json!({"delay": "5m", "execution_timeout": "10m"})).await;
    assert_eq!(started["available_at"], worker.caller.after(300));
    assert_eq!(started["deadline_at"], worker.caller.after(600));
    assert_eq!(started["next"], json!({"what": "becomes_available", "at": worker.caller.after(300)}));
    worker.caller.pass(298).await;
    assert!(worker.try_take().await.is_none());
    worker.caller.pass(2).await;
    worker.take("later").await;
}

#[tokio::test]
async fn limits_are_named_with_value_and_maximum() {
    let worker = Worker::default();
    for (fields, limit) in [
        (json!({"workflow": "w", "memo": "x".repeat(5_000)}), "memo_bytes"),
        (json!({"workflow": "w", "input": "x".repeat(360_000)}), "input_bytes"),
    ] {
        let (status, problem) = worker.caller.post("/v1/executions", fields).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!((&problem["code"], &problem["limit"]), (&json!("limit_exceeded"), &json!(limit)));
        assert!(problem["value"].as_u64() > problem["maximum"].as_u64(), "{problem}");
    }
    let unknown = worker.caller.refused("/v1/executions", json!({"workflow": "w", "timeout": "1h"})).await;
    assert_eq!(unknown, (400, "invalid_request".to_owned()));
}

/// Takes a turn of each execution that waits, and returns their ids in the order in which they came.
async fn taken(worker: &Worker) -> Vec<String> {
    let mut ids = Vec::new();
    while let Some(turn) = worker.try_take().await {
        ids.push(turn.execution.id.to_string());
    }
    ids
}

#[tokio::test]
async fn executions_of_a_high_priority_go_first_and_of_a_low_one_last() {
    let worker = Worker::default();
    for number in 0..3 {
        worker.start(&format!("low-{number}"), json!({"priority": "low"})).await;
        worker.start(&format!("plain-{number}"), json!({})).await;
    }
    let high = worker.start("high", json!({"priority": "high", "fairness_key": "customer-7"})).await;
    assert_eq!(high["priority"], "high");
    assert_eq!(worker.seen("plain-0").await.get("priority"), None);
    let order = taken(&worker).await;
    let expected = ["high", "plain-0", "plain-1", "plain-2", "low-0", "low-1", "low-2"];
    assert_eq!(order, expected);
}

#[tokio::test]
async fn an_executions_tenant_does_not_delay_the_turns_of_others() {
    let worker = Worker::default();
    for number in 0..20 {
        worker.start(&format!("big-{number:02}"), json!({"fairness_key": "big"})).await;
    }
    for number in 0..2 {
        worker.start(&format!("small-{number}"), json!({"fairness_key": "small"})).await;
    }
    let order = taken(&worker).await;
    let last_small = order.iter().rposition(|id| id.starts_with("small")).unwrap();
    assert!((2..5).contains(&last_small) && order.len() == 22, "{order:?}");
}

#[tokio::test]
async fn a_bad_priority_or_fairness_key_of_an_execution_is_refused_by_field() {
    let worker = Worker::default();
    let refused = async |fields: serde_json::Value| {
        let mut body = json!({"workflow": "orders"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let (status, answer) = worker.caller.send(Method::POST, "/v1/executions", Some(&body)).await;
        (status.as_u16(), answer["field"].clone())
    };
    assert_eq!(refused(json!({"priority": "urgent"})).await, (400, json!("priority")));
    assert_eq!(refused(json!({"fairness_key": ""})).await, (400, json!("fairness_key")));
    assert_eq!(refused(json!({"fairness_key": "k".repeat(257)})).await, (400, json!("fairness_key")));
    worker.start("longest", json!({"fairness_key": "k".repeat(256)})).await;
}
