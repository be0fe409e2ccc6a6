//! A task's life, over HTTP and by direct invocation.

use reqwest::Method;
use serde_json::json;

use crate::system::{SOON, System, task, until};

#[tokio::test]
async fn a_task_is_scheduled_claimed_kept_alive_and_completed_over_http() {
    let system = System::deployed().await;
    let (status, health) = system.call(Method::GET, "/healthz", None).await;
    assert_eq!((status, &health["status"]), (200, &json!("ok")));
    assert_eq!(system.call_unsigned(Method::GET, "/healthz").await, 403, "an unsigned request is refused");

    let scheduled = system.post("/v1/tasks", task("http-1", "emails", json!({"timeout": "1h"}))).await;
    assert_eq!(scheduled["task"]["status"], "pending");
    let claimed = system.post("/v1/queues/emails/claim", json!({"worker": "w", "wait": "10s"})).await;
    let claimed = &claimed["tasks"][0];
    assert_eq!((&claimed["id"], &claimed["input"]), (&json!("http-1"), &json!({"to": "ada@example.com"})));
    let lease = &claimed["lease"];

    let beat = system.post("/v1/tasks/http-1/heartbeat", json!({"lease": lease, "progress": 0.5})).await;
    assert_eq!(beat["cancel_requested"], false);
    assert_eq!(system.task("http-1").await.unwrap()["progress"], 0.5);
    let report = json!({"lease": lease, "output": {"sent": true}});
    let completed = system.post("/v1/tasks/http-1/complete", report.clone()).await;
    assert_eq!(completed["task"]["status"], "completed");
    let again = system.post("/v1/tasks/http-1/complete", report).await;
    assert_eq!((&again["duplicate"], &again["task"]["output"]), (&json!(true), &json!({"sent": true})));
    let (status, problem) = system.call(Method::GET, "/v1/tasks/nobody", None).await;
    assert_eq!((status, &problem["code"]), (404, &json!("not_found")));
}

#[tokio::test]
async fn a_failed_attempt_is_retried_by_direct_invocation() {
    let system = System::deployed().await;
    let retry = json!({"retry": "fixed(2, 2s)"});
    let scheduled = system.invoke("schedule", &task("direct-1", "default", retry)).await;
    assert_eq!(scheduled["task"]["status"], "pending", "{scheduled}");
    let claim = json!({"id": "direct-1", "worker": "w"});
    let first = system.invoke("claim", &claim).await;
    let error = json!({"code": "smtp", "message": "no route"});
    let fail = json!({"id": "direct-1", "lease": first["tasks"][0]["lease"], "error": error});
    let failed = system.invoke("complete", &json!({"type": "fail", "body": fail})).await;
    assert_eq!(failed["task"]["status"], "pending", "{failed}");

    let second = until("the second attempt", SOON, async || {
        let claimed = system.invoke("claim", &claim).await;
        claimed["tasks"].get(0).cloned()
    });
    let second = second.await;
    assert_eq!(second["attempt"], 2);
    let report = json!({"id": "direct-1", "lease": second["lease"], "output": 7});
    let completed = system.invoke("complete", &report).await;
    assert_eq!(completed["task"]["status"], "completed", "{completed}");
    let outcomes = completed["task"]["attempts"].as_array().unwrap();
    let outcomes: Vec<_> = outcomes.iter().map(|attempt| attempt["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["failed", "completed"]);
}
