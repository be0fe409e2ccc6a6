//! The example workflow, run by the worker function.

use reqwest::Method;
use serde_json::{Value, json};

use crate::stack::{SOON, Stack, until};

async fn ended(stack: &Stack, id: &str) -> Value {
    let what = format!("{id} to end");
    until(&what, SOON, async || {
        let (_, mut answer) = stack.call(Method::GET, &format!("/v1/executions/{id}"), None).await;
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
async fn an_order_panics_once_sleeps_waits_for_its_event_and_is_received() {
    let stack = Stack::deployed().await;
    let order = json!({"number": 7, "boxes": ["books", "lamps"], "card": "bent", "second_thoughts": "3s"});
    let start = json!({"workflow": "order-fulfilment", "id": "order-7", "queue": "orders", "input": order});
    let started = stack.post("/v1/executions", start).await;
    assert_eq!(started["execution"]["status"], "pending");

    let path = "/v1/executions/order-7";
    until("the order to wait for its shipment", SOON, async || {
        let (_, answer) = stack.call(Method::GET, path, None).await;
        answer["execution"]["waits_for"].to_string().contains("shipped").then_some(())
    })
    .await;
    stack.post(&format!("{path}/events/shipped"), json!({"payload": {"carrier": "a bicycle"}})).await;
    let execution = ended(&stack, "order-7").await;
    assert_eq!((&execution["status"], &execution["output"]), (&json!("completed"), &receipt(7)));

    let (_, timeline) = stack.call(Method::GET, &format!("{path}/timeline"), None).await;
    let timeline = timeline.to_string();
    for seen in ["charge", "label[0]", "label[1]", "second-thoughts", "shipped"] {
        assert!(timeline.contains(seen), "no {seen}: {timeline}");
    }
}

#[tokio::test]
async fn an_order_is_started_and_told_of_its_shipment_by_message() {
    let stack = Stack::deployed().await;
    let order = json!({"number": 8, "boxes": ["books", "lamps"], "express": true});
    let start = json!({"workflow": "order-fulfilment", "id": "order-8", "queue": "orders", "input": order});
    stack.send("ingress", [json!({"v": 1, "type": "execution", "body": start})]).await;
    until("the order to be there", SOON, async || {
        let (status, _) = stack.call(Method::GET, "/v1/executions/order-8", None).await;
        (status == 200).then_some(())
    })
    .await;
    let shipped = json!({"id": "order-8", "name": "shipped", "payload": {"carrier": "a bicycle"}});
    stack.send("ingress", [json!({"v": 1, "type": "event", "body": shipped})]).await;
    let execution = ended(&stack, "order-8").await;
    assert_eq!((&execution["status"], &execution["output"]), (&json!("completed"), &receipt(8)));
}
