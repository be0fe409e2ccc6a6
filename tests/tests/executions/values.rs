//! Published values: read, listed, waited for.

use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_core::execution::command::{Cleanup, Record};
use tickover_core::payload::{Json, Payload};

use tickover_service::executions::StartedTurn;
use tickover_service::ports::Clock as _;

use crate::worker::{Worker, completed};

impl Worker {
    /// A write of a turn that brings these values; returns the record.
    async fn publish(&self, turn: &mut StartedTurn, values: &str) {
        let service = &self.caller.scene.service;
        let values = service.store_payload(Json::parse(values).expect("JSON")).await.expect("a payload");
        let (lease, cleanup) = (turn.lease, Cleanup::default());
        let record = Record { lease, entries: vec![], cleanup, timed_attempts: None, values: Some(values) };
        turn.execution = service.record_progress(&turn.execution, record).await.expect("a record");
    }
}

fn view(name: &str, version: u32, at: &Value, value: &Value) -> Value {
    json!({"name": name, "version": version, "published_at": at, "value": value})
}

#[tokio::test]
async fn published_values_are_listed_read_and_described_also_if_they_are_large() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    assert_eq!(worker.get("/v1/executions/e/values").await, json!({"values": []}));
    assert_eq!(worker.seen("e").await.get("values"), None);
    let mut turn = worker.take("e").await;
    let at = worker.caller.scene.clock.now();
    worker
        .publish(&mut turn, &format!(r#"{{"a":[1,{0},null],"stage":[3,{0},"packing"]}}"#, at.as_millis()))
        .await;
    let instant = json!(at.to_rfc3339());
    let (first, stage) =
        (view("a", 1, &instant, &json!(null)), view("stage", 3, &instant, &json!("packing")));
    assert_eq!(worker.get("/v1/executions/e/values").await, json!({"values": [first, stage]}));
    assert_eq!(worker.get("/v1/executions/e/values/stage").await, json!({"value": stage}));
    assert_eq!(worker.seen("e").await["values"], json!([first, stage]));
    let unknown = worker.caller.send(axum::http::Method::GET, "/v1/executions/e/values/weight", None).await;
    assert_eq!((unknown.0.as_u16(), &unknown.1["code"]), (404, &json!("unknown_value")));

    let large = "x".repeat(3_000);
    worker.publish(&mut turn, &format!(r#"{{"stage":[4,{},"{large}"]}}"#, at.as_millis())).await;
    assert!(matches!(turn.execution.values, Some(Payload::Blob(_))));
    assert_eq!(worker.get("/v1/executions/e/values/stage").await["value"]["value"], json!(large));
    assert_eq!(worker.seen("e").await["values"][0]["value"], json!(large));
    // A list reads no further items, and an export has none.
    let list = worker.get("/v1/executions?workflow=orders").await;
    assert_eq!(list["executions"][0].get("values"), None);
    assert!(!worker.get("/v1/executions/e/export").await.to_string().contains(&large));
    worker.close(turn, vec![], completed(&json!(1))).await;
    assert_eq!(worker.get("/v1/executions/e/values/stage").await["value"]["version"], 4);
}

#[tokio::test]
async fn a_reader_waits_for_a_later_version_the_end_or_its_time() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let mut turn = worker.take("e").await;
    worker.publish(&mut turn, r#"{"stage":[1,0,"packing"]}"#).await;
    let version = async |query: &str| {
        let answer = worker.get(&format!("/v1/executions/e/values/stage{query}")).await;
        answer["value"]["version"].as_u64().expect("a version")
    };
    // It has an older one: the answer comes at once.
    let before = worker.caller.scene.clock.now();
    assert_eq!(version("?wait=20s").await, 1);
    assert_eq!(worker.caller.scene.clock.now(), before);
    // In vain: the time of these tests moves on with the waits.
    assert_eq!(version("?wait=20s&version=1").await, 1);
    assert_eq!(worker.caller.scene.clock.now().since(before), Millis::from_secs(20));
    let publishes = async {
        tokio::task::yield_now().await;
        worker.publish(&mut turn, r#"{"stage":[2,0,"on its way"]}"#).await;
    };
    assert_eq!(futures::join!(version("?wait=20s&version=1"), publishes).0, 2);
    worker.close(turn, vec![], completed(&json!(1))).await;
    let before = worker.caller.scene.clock.now();
    assert_eq!(version("?wait=20s&version=2").await, 2, "it has ended");
    assert_eq!(worker.caller.scene.clock.now(), before);
    let (status, problem) =
        worker.caller.send(axum::http::Method::GET, "/v1/executions/e/values/stage?version=0", None).await;
    assert_eq!((status.as_u16(), &problem["field"]), (400, &json!("version")));
}
