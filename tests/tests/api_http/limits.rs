//! A value over a limit is refused with the limit's name, the value and the maximum.

use serde_json::{Value, json};

use crate::support::{Api, Reply};

#[track_caller]
fn exceeded(reply: Reply, limit: &str, value: u64, maximum: u64) {
    let problem = reply.problem(413, "limit_exceeded");
    let found = (&problem["limit"], &problem["value"], &problem["maximum"]);
    assert_eq!(found, (&json!(limit), &json!(value), &json!(maximum)));
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[tokio::test]
async fn json_may_nest_64_levels_deep_and_no_deeper() {
    let api = Api::start().await;
    let body = |levels| format!(r#"{{"queue":"q","kind":"k","id":"t{levels}","input":{}}}"#, nested(levels));
    api.post_text("/v1/tasks", body(64)).await.ok(201);
    exceeded(api.post_text("/v1/tasks", body(65)).await, "json_depth", 65, 64);
    exceeded(api.post_text("/v1/tasks", body(200)).await, "json_depth", 201, 64);
    exceeded(api.post_text("/v1/tasks", nested(1_000_000)).await, "json_depth", 1_000_000, 64);
    let lease = api.claim().await["lease"].clone();
    let output = |levels| format!(r#"{{"lease":{lease},"output":{}}}"#, nested(levels));
    exceeded(api.post_text("/v1/tasks/t64/complete", output(65)).await, "json_depth", 65, 64);
    api.post_text("/v1/tasks/t64/complete", output(64)).await.ok(200);
}

#[tokio::test]
async fn payloads_may_have_350_kib() {
    let api = Api::start().await;
    let maximum = 350 * 1024;
    let text = |bytes: usize| Value::from("x".repeat(bytes - 2));
    let body = |bytes| json!({"queue": "q", "kind": "k", "id": "t", "input": text(bytes)});
    exceeded(api.post("/v1/tasks", body(maximum + 1)).await, "input_bytes", 358_401, 358_400);
    api.post("/v1/tasks", body(maximum)).await.ok(201);
    let claimed = api.claim().await;
    assert_eq!(claimed["input"].as_str().unwrap().len(), maximum - 2);
    let output = json!({"lease": claimed["lease"], "output": text(maximum + 1)});
    exceeded(api.post("/v1/tasks/t/complete", output).await, "output_bytes", 358_401, 358_400);
}

#[tokio::test]
async fn a_body_may_have_6_mib() {
    let api = Api::start().await;
    let maximum = 6 * 1024 * 1024;
    let reply = api.post_text("/v1/tasks", vec![b' '; maximum + 1]).await;
    exceeded(reply, "body_bytes", 6_291_457, 6_291_456);
    let reply = api.post_text("/v1/tasks", vec![b' '; 3 * maximum]).await;
    exceeded(reply, "body_bytes", 18_874_368, 6_291_456);
    api.schedule("the-server-goes-on", json!({})).await;
}

#[tokio::test]
async fn labels_keys_codes_and_batches_are_limited() {
    let api = Api::start().await;
    let labels = |count: u32| (0..count).map(|index| (format!("l{index}"), json!("x"))).collect::<Value>();
    let body = |count| json!({"queue": "q", "kind": "k", "labels": labels(count)});
    exceeded(api.post("/v1/tasks", body(17)).await, "labels", 17, 16);
    api.post("/v1/tasks", body(16)).await.ok(201);
    let large: Value = (0..16).map(|index| (format!("l{index}"), json!("x".repeat(256)))).collect();
    let problem = api.post("/v1/tasks", json!({"queue": "q", "kind": "k", "labels": large})).await;
    assert_eq!(problem.problem(413, "limit_exceeded")["limit"], "labels_bytes");
    let key = json!({"queue": "q", "kind": "k", "idempotency_key": "k".repeat(257)});
    exceeded(api.post("/v1/tasks", key).await, "idempotency_key_bytes", 257, 256);
    exceeded(api.post("/v1/tasks/batch", json!({"tasks": vec![json!({}); 101]})).await, "batch", 101, 100);
}
