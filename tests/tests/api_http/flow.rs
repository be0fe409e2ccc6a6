//! Flow control over HTTP: keys of which one task is scheduled at a time.

use serde_json::{Value, json};

use crate::support::Api;

fn mail(input: i32, fields: &Value) -> Value {
    let mut body = json!({"queue": "q", "kind": "mail", "input": input});
    for (name, value) in fields.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn a_unique_key_answers_with_the_task_that_has_it_or_refuses_and_names_it() {
    let api = Api::start().await;
    let unique = json!({"unique": {"key": "digest of 7", "for": "open"}});
    let first = api.post("/v1/tasks", mail(1, &unique)).await.ok(201)["task"].clone();
    let again = api.post("/v1/tasks", mail(2, &unique)).await.ok(200)["task"].clone();
    assert_eq!((&again["id"], &again["input"]), (&first["id"], &json!(1)));
    let refuse = json!({"unique": {"key": "digest of 7", "on_conflict": "refuse"}});
    let refused = api.post("/v1/tasks", mail(3, &refuse)).await;
    let refused = refused.problem(409, "not_unique");
    assert!(refused["detail"].as_str().unwrap().contains(first["id"].as_str().unwrap()), "{refused:?}");
    let replace = json!({"unique": {"key": "digest of 7", "on_conflict": "replace"}});
    let fourth = api.post("/v1/tasks", mail(4, &replace)).await.ok(201)["task"].clone();
    assert_eq!(api.task(first["id"].as_str().unwrap()).await["status"], "cancelled");
    assert_eq!(api.claim().await["id"], fourth["id"]);
}

#[tokio::test]
async fn the_last_request_of_a_burst_runs_at_the_latest_at_its_bound() {
    let api = Api::start().await;
    let debounce = json!({"debounce": {"key": "index-doc-9", "wait": "10s", "at_most": "15s"}});
    let first = api.post("/v1/tasks", mail(1, &debounce)).await.ok(201)["task"].clone();
    api.advance(9_000);
    let second = api.post("/v1/tasks", mail(2, &debounce)).await.ok(200)["task"].clone();
    assert_eq!((&second["id"], &second["input"]), (&first["id"], &json!(2)));
    api.advance(6_000);
    let claimed = api.claim().await;
    assert_eq!((&claimed["id"], &claimed["input"]), (&first["id"], &json!(2)));
}

#[tokio::test]
async fn a_task_says_its_priority_and_the_beginning_of_its_fairness_key() {
    let api = Api::start().await;
    for (fields, priority, key) in [
        (json!({}), Value::Null, Value::Null),
        (json!({"priority": "normal"}), Value::Null, Value::Null),
        (json!({"priority": "low", "fairness_key": "customer 7"}), json!("low"), json!("customer 7")),
        (json!({"priority": "high", "fairness_key": "ü".repeat(128)}), json!("high"), json!("ü".repeat(24))),
    ] {
        let task = api.post("/v1/tasks", mail(1, &fields)).await.ok(201)["task"].clone();
        let task = api.task(task["id"].as_str().unwrap()).await;
        assert_eq!((&task["priority"], &task["fairness_key"]), (&priority, &key));
    }
}

#[tokio::test]
async fn what_flow_control_refuses_is_named_by_its_field() {
    let api = Api::start().await;
    let key = |bytes: usize| json!({"unique": {"key": "k".repeat(bytes)}});
    api.post("/v1/tasks", mail(1, &key(256))).await.ok(201);
    for (fields, code, field) in [
        (key(257), "invalid_request", "unique.key"),
        (json!({"unique": {"key": ""}}), "invalid_request", "unique.key"),
        (json!({"debounce": {"key": "a", "wait": "10s"}}), "invalid_request", "debounce.at_most"),
        (
            json!({"debounce": {"key": "a", "wait": "10s", "at_most": "1s"}}),
            "invalid_request",
            "debounce.at_most",
        ),
        (json!({"concurrency": [{"key": "a", "limit": 0}]}), "invalid_request", "concurrency[0].limit"),
        (json!({"concurrency": [{"key": "a", "limit": 1_001}]}), "invalid_request", "concurrency[0].limit"),
        (json!({"requires": ["a gpu"]}), "invalid_request", "requires[0]"),
        (json!({"rate": {"key": "a", "limit": 0}}), "invalid_request", "rate.limit"),
        (json!({"unique": {"key": "a"}, "idempotency_key": "b"}), "invalid_request", "unique"),
        (
            json!({"debounce": {"key": "a", "wait": "1s", "at_most": "2s"}, "delay": "1s"}),
            "invalid_request",
            "debounce",
        ),
    ] {
        let refused = api.post("/v1/tasks", mail(1, &fields)).await;
        assert_eq!(refused.problem(400, code)["field"], field, "{fields}");
    }
}
