//! Flow control: keys that limit tasks and executions, over the deployed table and queues.

use reqwest::Method;
use serde_json::{Value, json};

use crate::system::{SOON, System, task, until};
use crate::workflow::ended;

async fn seen(system: &System, id: &str) -> Value {
    let (_, mut answer) = system.call(Method::GET, &format!("/v1/executions/{id}"), None).await;
    answer["execution"].take()
}

#[tokio::test]
async fn orders_of_a_customer_run_one_after_the_other() {
    let system = System::deployed().await;
    let key = json!([{"key": "e2e-customer", "limit": 1}]);
    for number in [71, 72] {
        let order = json!({"number": number, "boxes": ["books"], "express": true});
        let start = json!({"workflow": "order-fulfilment", "id": format!("limited-{number}"),
            "queue": "orders", "input": order, "concurrency": key});
        system.post("/v1/executions", start).await;
        if number == 71 {
            until("the first order to wait for its shipment", SOON, async || {
                seen(&system, "limited-71").await["waits_for"].to_string().contains("shipped").then_some(())
            })
            .await;
        }
    }
    let waits = until("the second order to wait for a place", SOON, async || {
        let second = seen(&system, "limited-72").await;
        (second["waits_at"]["position"] == 1).then_some(second)
    })
    .await;
    assert_eq!(waits["next"]["what"], "waits_for_place");
    assert_eq!(waits["waits_at"]["limit"]["holders"][0]["execution"], "limited-71");
    for number in [71, 72] {
        let id = format!("limited-{number}");
        let shipped = json!({"payload": {"carrier": "a bicycle"}});
        system.post(&format!("/v1/executions/{id}/events/shipped"), shipped).await;
        assert_eq!(ended(&system, &id, SOON).await["status"], "completed");
    }
    let (_, limit) = system.call(Method::GET, "/v1/limits/e2e-customer", None).await;
    assert_eq!((&limit["limit"]["taken"], &limit["limit"]["waiting"]), (&json!(0), &json!(0)), "{limit}");
}

#[tokio::test]
async fn tasks_of_a_key_run_one_at_a_time_start_at_its_rate_and_a_burst_is_one() {
    let system = System::deployed().await;
    let limited = json!({"concurrency": [{"key": "e2e-tasks", "limit": 1}]});
    for id in ["limit-1", "limit-2"] {
        system.post("/v1/tasks", task(id, "default", limited.clone())).await;
    }
    let claim = async |id: &str| {
        let mut claimed = system.invoke("claim", &json!({"id": id, "worker": "w"})).await;
        claimed["tasks"].get_mut(0).map(Value::take)
    };
    let complete = async |id: &str, task: &Value| {
        let report = json!({"id": id, "lease": task["lease"], "output": 1});
        let completed = system.invoke("complete", &report).await;
        assert_eq!(completed["task"]["status"], "completed", "{completed}");
    };
    let first = claim("limit-1").await.expect("the first task");
    assert_eq!(claim("limit-2").await, None);
    assert_eq!(system.task("limit-2").await.unwrap()["next"]["what"], "waits_for_place");
    complete("limit-1", &first).await;
    let second = claim("limit-2").await.expect("the second task");
    complete("limit-2", &second).await;

    let paced = json!({"rate": {"key": "e2e-rate", "limit": 1, "per": "1h"}});
    let starts = [("rate-1", Some("waits_for_worker")), ("rate-2", Some("waits_for_rate"))];
    for (id, next) in starts {
        let scheduled = system.post("/v1/tasks", task(id, "default", paced.clone())).await;
        assert_eq!(scheduled["task"]["next"]["what"].as_str(), next, "{scheduled}");
    }
    let rate = claim("rate-1").await.expect("the first start");
    complete("rate-1", &rate).await;

    let burst = |input: u32| {
        json!({"queue": "default", "kind": "index", "input": input,
            "debounce": {"key": "e2e-burst", "wait": "1h", "at_most": "2h"}})
    };
    let (one, two) = (system.post("/v1/tasks", burst(1)).await, system.post("/v1/tasks", burst(2)).await);
    assert_eq!((&two["task"]["id"], &two["task"]["input"]), (&one["task"]["id"], &json!(2)));
    let unique = json!({"queue": "default", "kind": "sync", "delay": "1h", "unique": {"key": "e2e-unique"}});
    let (one, two) = (system.post("/v1/tasks", unique.clone()).await, system.post("/v1/tasks", unique).await);
    assert_eq!(two["task"]["id"], one["task"]["id"]);
}
