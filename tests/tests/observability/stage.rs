//! A caller, and a reader of the queue of events.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_service::ports::Queue as _;
use tickover_tests::http::Caller;

/// A secret that users write into their tasks and that must not be seen anywhere else.
pub(crate) const SECRET: &str = "hunter2";

/// A caller of a service that has a queue of events.
pub(crate) async fn with_events() -> Caller {
    of(Caller::default()).await
}

/// The same caller with a queue of events.
pub(crate) async fn of(caller: Caller) -> Caller {
    assert!(caller.scene.queue.open(&QueueName::events()).await.unwrap());
    caller
}

/// The events so far, in order; each is read once.
pub(crate) async fn events(caller: &Caller) -> Vec<Value> {
    let (queue, name) = (&caller.scene.queue, QueueName::events());
    let mut events = Vec::new();
    loop {
        let messages = queue.receive(&name, 10, Millis::from_secs(60), Millis::ZERO).await.unwrap();
        if messages.is_empty() {
            return events;
        }
        for message in messages {
            events.push(serde_json::from_str(&message.body).unwrap());
            queue.delete(&name, &message.receipt).await.unwrap();
        }
    }
}

/// The types of events.
pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// A life with every field that users can write: two attempts, a timeout, and an end with a result.
pub(crate) async fn eventful_life(caller: &Caller, id: &str) {
    let input = json!({"password": SECRET});
    let fields = json!({
        "input": input, "labels": {"note": SECRET}, "start_to_close_timeout": "10s", "retry": "fixed(3, 5s)",
    });
    caller.schedule(id, fields).await;
    let lease = caller.lease().await;
    let error = json!({"code": "smtp", "message": format!("refused {SECRET}")});
    caller.ok(&format!("/v1/tasks/{id}/fail"), json!({"lease": lease, "error": error})).await;
    caller.pass(5).await;
    caller.lease().await;
    caller.pass(11).await;
    caller.pass(5).await;
    let lease = caller.lease().await;
    caller.ok(&format!("/v1/tasks/{id}/heartbeat"), json!({"lease": lease, "progress": 0.5})).await;
    caller
        .ok(&format!("/v1/tasks/{id}/complete"), json!({"lease": lease, "output": {"token": SECRET}}))
        .await;
}
