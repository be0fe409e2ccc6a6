//! Crons as callers see them: over HTTP, in virtual time, started by the tick and its timers.
#![expect(clippy::unwrap_used, reason = "a test's helpers may fail it")]

mod bad_input;
mod bugs;
mod cost;
mod crashes;
mod executions;
mod kinds;
mod overlap;
mod plan;
mod rates;
mod shape;

use axum::http::Method;
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_tests::http::Caller;

/// Creates a cron whose task has only a kind and the queue `work`, with these further fields; returns the cron.
async fn make(caller: &Caller, id: &str, fields: Value) -> Value {
    caller.ok("/v1/crons", body(id, fields)).await["cron"].take()
}

/// The request for that.
fn body(id: &str, fields: Value) -> Value {
    let mut body = json!({"id": id, "task": {"queue": "work", "kind": "work"}});
    if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
        body.extend(fields);
    }
    body
}

/// The cron as it is now.
async fn cron(caller: &Caller, id: &str) -> Value {
    let (status, mut answer) = caller.send(Method::GET, &format!("/v1/crons/{id}"), None).await;
    assert_eq!(status.as_u16(), 200, "{answer}");
    answer["cron"].take()
}

/// Advances the time to an instant, with a tick each minute, and timers as they arrive.
async fn until(caller: &Caller, instant: &str) {
    let end = Timestamp::parse_rfc3339(instant).unwrap();
    while caller.scene.service.now() < end {
        let left = end.since(caller.scene.service.now());
        caller.scene.clock.advance(left.min(Millis::from_secs(60)));
        caller.scene.tick().await.unwrap();
        caller.scene.fire().await;
    }
}

/// The ids of all tasks, sorted.
async fn tasks(caller: &Caller) -> Vec<String> {
    let (_, answer) = caller.send(Method::GET, "/v1/tasks?limit=500", None).await;
    let mut ids: Vec<String> = answer["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

/// Claims and completes every pending task.
async fn complete_all(caller: &Caller) {
    while let Some(task) = caller.claim().await {
        let id = task["id"].as_str().unwrap();
        caller.ok(&format!("/v1/tasks/{id}/complete"), json!({"lease": task["lease"]})).await;
    }
}

/// The states of its runs in the answer, each with its reason where there is one.
fn states(cron: &Value) -> Vec<String> {
    let of = |run: &Value| match run["reason"].as_str() {
        Some(reason) => format!("{}: {reason}", run["state"].as_str().unwrap()),
        None => run["state"].as_str().unwrap().to_owned(),
    };
    cron["runs"].as_array().unwrap().iter().map(of).collect()
}
