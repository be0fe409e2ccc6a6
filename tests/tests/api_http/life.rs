//! A task's life, with the exact fields on which callers rely.

use serde_json::{Value, json};

use crate::support::{Api, keys, names};

/// The fields of every answer about a task.
const ALWAYS: &str = "id queue kind status attempt max_attempts retry created_at attempts next";

#[track_caller]
fn has_exactly(task: &Value, more: &str) {
    assert_eq!(keys(task), names(&format!("{ALWAYS} {more}")), "{task}");
}

#[tokio::test]
async fn a_plain_task_has_exactly_its_fields_in_every_state() {
    let api = Api::start().await;
    let scheduled = api.schedule("t", json!({})).await;
    has_exactly(&scheduled, "available_at");
    assert_eq!(scheduled["created_at"], "2026-01-01T00:00:00.000Z");
    assert_eq!((&scheduled["attempt"], &scheduled["max_attempts"]), (&json!(0), &json!(1)));
    assert_eq!(scheduled["next"], json!({"what": "waits_for_worker"}));
    assert_eq!(api.task("t").await, scheduled);

    let claimed = api.claim().await;
    assert_eq!(keys(&claimed), names("id idempotency_key kind attempt lease lease_expires_at"));
    let running = api.task("t").await;
    has_exactly(&running, "lease_expires_at");
    assert_eq!(running["next"], json!({"what": "lease_expires", "at": "2026-01-01T00:01:00.000Z"}));
    assert_eq!(
        running["attempts"],
        json!([{"attempt": 1, "worker": "w1", "claimed_at": "2026-01-01T00:00:00.000Z"}])
    );

    api.advance(1_500);
    let reply =
        api.post("/v1/tasks/t/complete", json!({"lease": claimed["lease"], "output": null})).await.ok(200);
    assert_eq!(keys(&reply), names("task"));
    has_exactly(&reply["task"], "ended_at output");
    assert_eq!((&reply["task"]["status"], &reply["task"]["output"]), (&json!("completed"), &Value::Null));
    let attempt = &reply["task"]["attempts"][0];
    assert_eq!(keys(attempt), names("attempt worker claimed_at ended_at outcome"));
    assert_eq!(
        (&attempt["outcome"], &attempt["ended_at"]),
        (&json!("completed"), &json!("2026-01-01T00:00:01.500Z"))
    );
    assert_eq!(reply["task"]["next"]["what"], "deleted");
    assert_eq!(api.task("t").await, reply["task"]);
}

#[tokio::test]
async fn a_task_with_every_option_shows_each_instant_where_it_applies() {
    let api = Api::start().await;
    let everything = json!({
        "input": {"a": 1},
        "delay": "10s",
        "timeout": "1h",
        "schedule_to_start_timeout": "1m",
        "start_to_close_timeout": "2m",
        "heartbeat_timeout": "30s",
        "retry": {"max_attempts": -1, "delay": "5s"},
        "labels": {"team": "blue"},
    });
    let task = api.schedule("t", everything).await;
    has_exactly(&task, "available_at deadline_at schedule_to_start_at timeouts input labels");
    assert_eq!(task["available_at"], "2026-01-01T00:00:10.000Z");
    assert_eq!(task["schedule_to_start_at"], "2026-01-01T00:01:10.000Z");
    assert_eq!(task["deadline_at"], "2026-01-01T01:00:00.000Z");
    assert_eq!((&task["labels"], &task["max_attempts"]), (&json!({"team": "blue"}), &json!(-1)));
    assert_eq!(task["next"], json!({"what": "becomes_available", "at": "2026-01-01T00:00:10.000Z"}));

    api.advance(10_000);
    let claimed = api.claim().await;
    assert_eq!(
        keys(&claimed),
        names(
            "id idempotency_key kind input attempt lease lease_expires_at heartbeat_timeout_ms deadline_at remaining_ms"
        )
    );
    assert_eq!(
        (&claimed["deadline_at"], &claimed["remaining_ms"]),
        (&json!("2026-01-01T00:02:10.000Z"), &json!(120_000))
    );
    api.advance(5_000);
    let body = json!({"lease": claimed["lease"], "progress": 0.5});
    let beat = api.post("/v1/tasks/t/heartbeat", body).await.ok(200);
    let expected = json!({
        "lease_expires_at": "2026-01-01T00:01:15.000Z",
        "heartbeat_at": "2026-01-01T00:00:45.000Z",
        "deadline_at": "2026-01-01T00:02:10.000Z",
        "remaining_ms": 115_000,
        "cancel_requested": false,
    });
    assert_eq!(beat, expected);
    let running = api.task("t").await;
    has_exactly(
        &running,
        "deadline_at start_to_close_at heartbeat_at timeouts lease_expires_at input progress labels",
    );
    assert_eq!(
        (&running["heartbeat_at"], &running["progress"]),
        (&json!("2026-01-01T00:00:45.000Z"), &json!(0.5))
    );
}

#[tokio::test]
async fn a_failure_is_shown_while_the_task_waits_again_and_when_it_has_failed() {
    let api = Api::start().await;
    let lease = api.running("t", json!({"retry": "fixed(1, 5s)"})).await;
    let error = json!({"code": "smtp", "message": "mailbox full"});
    let failed = api.post("/v1/tasks/t/fail", json!({"lease": lease, "error": error})).await.ok(200);
    let task = &failed["task"];
    has_exactly(task, "available_at error");
    assert_eq!((&task["status"], &task["error"]), (&json!("pending"), &error));
    assert_eq!(task["available_at"], "2026-01-01T00:00:05.000Z");
    assert_eq!((&task["attempts"][0]["outcome"], &task["attempts"][0]["error"]), (&json!("failed"), &error));

    api.advance(5_000);
    let claimed = api.claim().await;
    assert_eq!(claimed["attempt"], 2);
    has_exactly(&api.task("t").await, "lease_expires_at");
    let long = json!({"code": "smtp", "message": "é".repeat(4_000)});
    api.post("/v1/tasks/t/fail", json!({"lease": claimed["lease"], "error": long})).await.ok(200);
    let task = api.task("t").await;
    has_exactly(&task, "ended_at error");
    assert_eq!((&task["status"], &task["error"]), (&json!("failed"), &long));
    assert_eq!(task["attempts"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn an_error_that_is_not_retryable_is_final() {
    let api = Api::start().await;
    let lease = api.running("t", json!({"retry": "fixed(5, 1s)"})).await;
    let error = json!({"code": "bad_address", "retryable": false});
    let failed = api.post("/v1/tasks/t/fail", json!({"lease": lease, "error": error})).await.ok(200);
    assert_eq!(failed["task"]["status"], "failed");
    assert_eq!(failed["task"]["error"], json!({"code": "bad_address", "message": ""}));
}

#[tokio::test]
async fn a_late_result_is_refused_with_the_reason() {
    let api = Api::start().await;
    let lease = api.running("t", json!({"timeout": "10s"})).await;
    api.advance(10_000);
    let late = json!({"lease": lease, "output": "too late"});
    api.post("/v1/tasks/t/complete", late.clone()).await.problem(409, "deadline_exceeded");
    let task = api.task("t").await;
    has_exactly(&task, "deadline_at ended_at timeout_kind timeouts error");
    assert_eq!((&task["status"], &task["timeout_kind"]), (&json!("timed_out"), &json!("schedule_to_close")));
    assert_eq!(task["attempts"][0]["outcome"], "timed_out");
    for path in ["complete", "heartbeat", "release"] {
        let body = json!({"lease": lease});
        api.post(&format!("/v1/tasks/t/{path}"), body).await.problem(409, "deadline_exceeded");
    }
    assert_eq!(api.task("t").await, task);
}

#[tokio::test]
async fn a_timeout_that_is_no_error_ends_in_cancelled() {
    let api = Api::start().await;
    api.running("t", json!({"maxRuntime": "5s", "retries": {"maxAttempts": 3}})).await;
    api.advance(5_000);
    api.scene.tick().await.unwrap();
    let task = api.task("t").await;
    has_exactly(&task, "ended_at timeout_kind timeouts");
    assert_eq!((&task["status"], &task["timeout_kind"]), (&json!("cancelled"), &json!("start_to_close")));
}

#[tokio::test]
async fn repeating_a_report_is_answered_with_the_record_and_says_so() {
    let api = Api::start().await;
    let lease = api.running("t", json!({})).await;
    let large = json!("x".repeat(5_000));
    let first = api.post("/v1/tasks/t/complete", json!({"lease": lease, "output": large})).await.ok(200);
    assert_eq!(first["task"]["output"], large);
    let again = api.post("/v1/tasks/t/complete", json!({"lease": lease, "output": "another"})).await.ok(200);
    assert_eq!(keys(&again), names("task duplicate"));
    assert_eq!((&again["duplicate"], &again["task"]["output"]), (&json!(true), &large));
    let fail = json!({"lease": lease, "error": {"code": "x"}});
    api.post("/v1/tasks/t/fail", fail).await.problem(409, "already_terminal");

    let lease = api.running("u", json!({})).await;
    for duplicate in [Value::Null, json!(true)] {
        let released = api.post("/v1/tasks/u/release", json!({"lease": lease})).await.ok(200);
        assert_eq!(released["duplicate"], duplicate);
        assert_eq!(
            (&released["task"]["status"], &released["task"]["attempt"]),
            (&json!("pending"), &json!(0))
        );
    }
    let claimed = api.claim().await;
    assert_eq!(claimed["attempt"], 1);
    let stale = json!({"lease": "bm90IGEgbGVhc2U", "output": 1});
    api.post("/v1/tasks/u/complete", stale).await.problem(409, "lease_lost");
}

#[tokio::test]
async fn the_same_request_again_finds_its_task_and_another_under_its_id_is_refused() {
    let api = Api::start().await;
    let body = |input: &str| json!({"queue": "q", "kind": "k", "id": "t", "input": input, "labels": {"a": "1", "b": "2"}});
    let first = api.post("/v1/tasks", body("x")).await.ok(201);
    assert_eq!(api.post("/v1/tasks", body("x")).await.ok(200), first);
    api.post("/v1/tasks", body("y")).await.problem(409, "id_conflict");

    let keyed = |kind: &str| json!({"queue": "q", "kind": kind, "idempotency_key": "order 17/µ"});
    let first = api.post("/v1/tasks", keyed("k")).await.ok(201);
    let again = api.post("/v1/tasks", keyed("k")).await.ok(200);
    assert_eq!(first["task"]["id"], again["task"]["id"]);
    api.post("/v1/tasks", keyed("other")).await.problem(409, "id_conflict");
}

#[tokio::test]
async fn payloads_come_back_as_the_text_they_were() {
    let api = Api::start().await;
    for (id, filler) in [("small", 1), ("large", 20_000)] {
        let input = format!(
            r#"{{ "z":1.50, "a":12345678901234567890123, "é":"\u00e9 ", "f":"{}" }}"#,
            "x".repeat(filler)
        );
        let body = format!(r#"{{"queue":"q","kind":"k","id":"{id}","input":{input}}}"#);
        assert!(api.post_text("/v1/tasks", body).await.text.contains(&input));
        let claim = api.post("/v1/queues/q/claim", json!({})).await;
        assert!(claim.text.contains(&input));
        assert!(api.get(&format!("/v1/tasks/{id}")).await.text.contains(&input));
        let lease = &claim.body["tasks"][0]["lease"];
        let body = format!(r#"{{"lease":{lease},"output":{input}}}"#);
        api.post_text(&format!("/v1/tasks/{id}/complete"), body).await.ok(200);
        assert_eq!(api.get(&format!("/v1/tasks/{id}")).await.text.matches(&input).count(), 2);
    }
}

#[tokio::test]
async fn absent_null_and_zero_attempts_are_different() {
    let api = Api::start().await;
    has_exactly(&api.schedule("null", json!({"input": null})).await, "available_at input");
    let absent =
        json!({"id": null, "delay": null, "timeout": null, "retry": null, "labels": null, "run_at": null});
    let mut body = json!({"queue": "q", "kind": "k"});
    body.as_object_mut().unwrap().extend(absent.as_object().unwrap().clone());
    has_exactly(&api.post("/v1/tasks", body).await.ok(201)["task"], "available_at");
    let skipped = api.schedule("skipped", json!({"retry": {"max_attempts": 0}})).await;
    has_exactly(&skipped, "ended_at");
    assert_eq!((&skipped["status"], &skipped["max_attempts"]), (&json!("skipped"), &json!(0)));
    let past = api.schedule("past", json!({"run_at": "2020-02-30T00:00:00+01:00".replace("30", "29")})).await;
    assert_eq!(past["available_at"], "2026-01-01T00:00:00.000Z");
}

/// A repeated request may be written by another program.
#[tokio::test]
async fn the_same_json_in_another_order_is_the_same_request() {
    let api = Api::start().await;
    for (path, id) in [("/v1/tasks", "idempotency_key"), ("/v1/tasks", "id"), ("/v1/crons", "id")] {
        let request = |input: &str| match path {
            "/v1/crons" => format!(
                r#"{{"id":"c","every":"1h","task":{{"queue":"q","kind":"k","input":{input},"labels":{{"x":"1"}}}}}}"#
            ),
            _ => format!(r#"{{"{id}":"same","queue":"q","kind":"k","input":{input}}}"#),
        };
        api.post_text(path, request(r#"{"a": [1, {"x": 1, "y": "\u00e4"}], "b": 2.50}"#)).await.ok(201);
        api.post_text(path, request(r#"{"b":2.50,"a":[1,{"y":"ä","x":1}]}"#)).await.ok(200);
        for other in [r#"{"b":2.51,"a":[1,{"y":"ä","x":1}]}"#, r#"{"b":2.50,"a":[{"y":"ä","x":1},1]}"#] {
            api.post_text(path, request(other)).await.problem(409, "id_conflict");
        }
    }
    let send = |payload: &str| {
        format!(
            r#"{{"id":"o","action":"send_event","executions":{{"ids":["e"]}},"event":{{"name":"go","payload":{payload}}}}}"#
        )
    };
    api.post_text("/v1/operations", send(r#"{"a":1,"b":2}"#)).await.ok(201);
    api.post_text("/v1/operations", send(r#"{"b":2,"a":1}"#)).await.ok(200);
    api.post_text("/v1/operations", send(r#"{"b":1,"a":2}"#)).await.problem(409, "id_conflict");
}
