//! Work that arrives by message, and messages that can't be processed.

use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::json;

use crate::system::{SOON, System, task, until};

#[tokio::test]
async fn of_a_batch_the_bad_message_ends_among_the_dead_letters_and_the_others_are_done() {
    let system = System::deployed().await;
    // A message that failed comes back after the queue's own visibility timeout: five times that is too long for a
    // test.
    let visibility = system.sqs.set_queue_attributes().queue_url(system.queue_url("ingress").await);
    visibility.attributes(QueueAttributeName::VisibilityTimeout, "2").send().await.unwrap();

    let schedule = |id: &str| json!({"v": 1, "type": "task", "body": task(id, "default", json!({}))});
    let bad = json!({"v": 1, "type": "task", "body": {"queue": "default"}});
    system.send("ingress", [schedule("message-1"), bad.clone(), schedule("message-2")]).await;
    for id in ["message-1", "message-2"] {
        system.status(id, "pending", SOON).await;
    }

    let dead = system.queue_url("dead-ingress").await;
    let letter = until("the dead letter", SOON, async || {
        let received = system.sqs.receive_message().queue_url(&dead).send().await.unwrap();
        received.messages.unwrap_or_default().pop()
    });
    assert_eq!(letter.await.body.unwrap(), bad.to_string());
}

#[tokio::test]
async fn a_result_may_arrive_by_message() {
    let system = System::deployed().await;
    system.invoke("schedule", &task("message-3", "default", json!({}))).await;
    let claimed = system.invoke("claim", &json!({"id": "message-3", "worker": "w"})).await;
    let report = json!({"id": "message-3", "lease": claimed["tasks"][0]["lease"], "output": "sent"});
    system.send("completions", [json!({"v": 1, "type": "complete", "body": report})]).await;
    let task = system.status("message-3", "completed", SOON).await;
    assert_eq!(task["output"], "sent");
}
