//! A task's life, over HTTP and by direct invocation.

use aws_sdk_sqs::types::QueueAttributeName;
use reqwest::Method;
use serde_json::json;

use crate::system::{SOON, System, task, until};
use crate::target::{Check, Target};

#[tokio::test]
async fn a_task_is_scheduled_claimed_kept_alive_and_completed_over_http() {
    let system = System::deployed().await;
    let (status, health) = system.call(Method::GET, "/healthz", None).await;
    assert_eq!((status, &health["status"]), (200, &json!("ok")));
    if Target::here().shows(Check::Signatures) {
        let unsigned = system.call_unsigned(Method::GET, "/healthz").await;
        assert_eq!(unsigned, 403, "an unsigned request is refused");
    }

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
    tasks_of_each_priority_wait_in_queues_of_their_own(&system).await;
}

#[tokio::test]
async fn somebody_without_credentials_ends_an_attempt_with_its_token() {
    if !Target::here().has_callbacks() {
        return;
    }
    let system = System::deployed().await;
    system.post("/v1/tasks", task("called-1", "default", json!({}))).await;
    let claimed = system.invoke("claim", &json!({"id": "called-1", "worker": "w"})).await;
    let lease = json!({"lease": claimed["tasks"][0]["lease"]});
    let made = system.post("/v1/tasks/called-1/callback", lease).await;
    let token = made["token"].as_str().unwrap();
    let url = made["url"].as_str().unwrap();
    assert!(url.starts_with("https://") && url.ends_with(&format!("/v1/callbacks/{token}")), "{url}");
    let output = json!({"output": "by a token"});
    for (token, status) in [(format!("A{token}"), 404), (token.to_owned(), 200), (token.to_owned(), 404)] {
        let path = format!("/v1/callbacks/{token}/complete");
        assert_eq!(system.post_unsigned(&path, &output).await, status);
    }
    assert_eq!(system.status("called-1", "completed", SOON).await["output"], "by a token");
}

/// How many messages one of the system's queues has, whether hidden or not.
async fn messages(system: &System, queue: &str) -> u64 {
    let names = [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    ];
    let request = system.sqs.get_queue_attributes().queue_url(system.queue_url(queue).await);
    let found = request.set_attribute_names(Some(names.to_vec())).send().await.unwrap();
    found.attributes.unwrap().values().map(|count| count.parse::<u64>().unwrap()).sum()
}

/// The queue `emails` has class queues, and only the test that calls this uses it.
async fn tasks_of_each_priority_wait_in_queues_of_their_own(system: &System) {
    for priority in ["high", "normal", "low"] {
        let more = json!({"priority": priority, "timeout": "1h"});
        let scheduled = system.post("/v1/tasks", task(&format!("class-{priority}"), "emails", more)).await;
        let shown = scheduled["task"]["priority"].as_str();
        assert_eq!(shown, Some(priority).filter(|priority| *priority != "normal"), "{scheduled}");
    }
    for queue in ["work-emails__high", "work-emails__low", "work-emails"] {
        until(&format!("a message in {queue}"), SOON, async || {
            (messages(system, queue).await == 1).then_some(())
        })
        .await;
    }
    let (_, queues) = system.call(Method::GET, "/v1/queues", None).await;
    let names = queues["queues"].as_array().unwrap().iter().map(|queue| queue["name"].as_str().unwrap());
    assert!(
        names.clone().any(|name| name == "emails") && !names.clone().any(|name| name.contains("__")),
        "{queues}"
    );
    let mut left = vec!["class-high", "class-low", "class-normal"];
    while !left.is_empty() {
        let claimed =
            system.post("/v1/queues/emails/claim", json!({"worker": "w", "max": 3, "wait": "10s"})).await;
        for claimed in claimed["tasks"].as_array().unwrap() {
            let id = claimed["id"].as_str().unwrap();
            let report = json!({"lease": claimed["lease"], "output": 1});
            let completed = system.post(&format!("/v1/tasks/{id}/complete"), report).await;
            assert_eq!(completed["task"]["status"], "completed");
            left.retain(|one| *one != id);
        }
    }
    for queue in ["work-emails__high", "work-emails__low", "work-emails"] {
        until(&format!("{queue} to be empty"), SOON, async || {
            (messages(system, queue).await == 0).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_function_receives_its_work_of_each_priority() {
    let system = System::deployed().await;
    for priority in ["high", "normal", "low"] {
        let printed = json!({"id": format!("print-{priority}"), "queue": "orders", "kind": "print-label",
            "input": priority, "priority": priority});
        system.post("/v1/tasks", printed).await;
    }
    for priority in ["high", "normal", "low"] {
        let done = system.status(&format!("print-{priority}"), "completed", SOON).await;
        assert_eq!(done["output"], format!("label for {priority}"));
    }
    for queue in ["work-orders__high", "work-orders__low"] {
        until(&format!("{queue} to be empty"), SOON, async || {
            (messages(&system, queue).await == 0).then_some(())
        })
        .await;
    }
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
