//! The example workflow, run by the worker function.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::system::{SOON, System, until};

/// Eighty invocations, on a busy machine.
const FORTY_STEPS: Duration = Duration::from_mins(5);

pub(crate) async fn ended(system: &System, id: &str, within: Duration) -> Value {
    let what = format!("{id} to end");
    until(&what, within, async || {
        let (_, mut answer) = system.call(Method::GET, &format!("/v1/executions/{id}"), None).await;
        answer["execution"].get("ended_at").is_some().then(|| answer["execution"].take())
    })
    .await
}

fn receipt(number: u32) -> Value {
    json!({
        "charge": {"reference": format!("charge-{number}")},
        "labels": ["label for books", "label for lamps"],
        "carrier": "a bicycle",
    })
}

#[tokio::test]
async fn an_order_panics_once_sleeps_waits_for_its_event_and_completes() {
    let system = System::deployed().await;
    let order = json!({"number": 7, "boxes": ["books", "lamps"], "card": "bent", "second_thoughts": "3s"});
    let start = json!({"workflow": "order-fulfilment", "id": "order-7", "queue": "orders", "input": order});
    let started = system.post("/v1/executions", start).await;
    assert_eq!(started["execution"]["status"], "pending");

    let path = "/v1/executions/order-7";
    until("the order to wait for its shipment", SOON, async || {
        let (_, answer) = system.call(Method::GET, path, None).await;
        answer["execution"]["waits_for"].to_string().contains("shipped").then_some(())
    })
    .await;
    system.post(&format!("{path}/events/shipped"), json!({"payload": {"carrier": "a bicycle"}})).await;
    let execution = ended(&system, "order-7", SOON).await;
    assert_eq!((&execution["status"], &execution["output"]), (&json!("completed"), &receipt(7)));

    let (_, timeline) = system.call(Method::GET, &format!("{path}/timeline"), None).await;
    let timeline = timeline.to_string();
    for seen in ["charge", "label[0]", "label[1]", "second-thoughts", "shipped"] {
        assert!(timeline.contains(seen), "no {seen}: {timeline}");
    }

    // Its worker has announced the workflow, so that a start needs no queue.
    let start = json!({"workflow": "order-fulfilment", "id": "order-9", "input": {"number": 9, "boxes": []}});
    let queue = until("a start without a queue", SOON, async || {
        let (status, answer) = system.call(Method::POST, "/v1/executions", Some(start.clone())).await;
        (status < 300).then(|| answer["execution"]["queue"].clone())
    })
    .await;
    assert_eq!(queue, "orders");
}

#[tokio::test]
async fn an_order_and_its_event_may_arrive_by_message() {
    let system = System::deployed().await;
    let order = json!({"number": 8, "boxes": ["books", "lamps"], "express": true});
    let start = json!({"workflow": "order-fulfilment", "id": "order-8", "queue": "orders", "input": order});
    system.send("ingress", [json!({"v": 1, "type": "execution", "body": start})]).await;
    until("the order to be there", SOON, async || {
        let (status, _) = system.call(Method::GET, "/v1/executions/order-8", None).await;
        (status == 200).then_some(())
    })
    .await;
    let shipped = json!({"id": "order-8", "name": "shipped", "payload": {"carrier": "a bicycle"}});
    system.send("ingress", [json!({"v": 1, "type": "event", "body": shipped})]).await;
    let execution = ended(&system, "order-8", SOON).await;
    assert_eq!((&execution["status"], &execution["output"]), (&json!("completed"), &receipt(8)));
}

#[tokio::test]
async fn a_workflow_goes_on_for_forty_steps_one_after_the_other() {
    forty_steps(&System::deployed().await, "order-40").await;
}

/// Runs an order with forty labels. Each label takes two invocations of the worker, one after the other: the step's own,
/// and the turn that follows.
pub(crate) async fn forty_steps(system: &System, id: &str) {
    let boxes: Vec<String> = (0..40).map(|number| format!("box {number}")).collect();
    let order = json!({"number": 40, "boxes": boxes, "express": true, "one_by_one": true});
    let start = json!({"workflow": "order-fulfilment", "id": id, "queue": "orders", "input": order});
    system.post("/v1/executions", start).await;
    let shipped = json!({"payload": {"carrier": "a bicycle"}});
    system.post(&format!("/v1/executions/{id}/events/shipped"), shipped).await;
    let execution = ended(system, id, FORTY_STEPS).await;
    assert_eq!(execution["status"], "completed", "{execution}");
    assert_eq!(execution["output"]["labels"].as_array().unwrap().len(), 40);
}
