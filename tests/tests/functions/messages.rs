//! SQS batches: ingress and completions.

use serde_json::{Value, json};

use crate::deployment::{Deployment, event, failed_messages, running_task};

/// The batch with these bodies in place of its own.
fn with_bodies(mut batch: Value, bodies: &[Value]) -> Value {
    for (record, body) in batch["Records"].as_array_mut().unwrap().iter_mut().zip(bodies) {
        record["body"] = json!(body.to_string());
    }
    batch
}

#[tokio::test]
async fn a_bad_message_fails_alone_with_its_reason_logged_and_its_payload_not() {
    let deployment = Deployment::new().await;
    let [schedule, claim] = [deployment.start("schedule").await, deployment.start("claim").await];
    let batch = event("sqs_ingress");

    let answer = schedule.invoke(batch.clone()).await.unwrap();
    let bad = batch["Records"][1]["messageId"].as_str().unwrap();
    assert_eq!(failed_messages(&answer), [bad]);
    let logs = schedule.logs();
    let reason = logs.lines().find(|line| line.contains(bad)).unwrap_or_else(|| panic!("{logs}"));
    assert!(reason.contains("inputs") && reason.contains("invalid_request"), "{reason}");
    assert!(!logs.contains("@example.com"), "a payload is logged: {logs}");

    // SQS delivers at least once: a task without an id of its own is recognised as the same one.
    let again = schedule.invoke(batch.clone()).await.unwrap();
    assert_eq!(failed_messages(&again), [bad]);
    let mut inputs = Vec::new();
    for _ in 0..4 {
        let claimed = claim.invoke(event("direct_claim")).await.unwrap();
        inputs
            .extend(claimed["tasks"].as_array().unwrap().iter().map(|task| task["input"]["to"].to_string()));
    }
    inputs.sort();
    assert_eq!(inputs, [r#""ada@example.com""#, r#""grace@example.com""#]);
}

#[tokio::test]
async fn a_whole_life_by_messages_and_late_reports_are_acknowledged() {
    let deployment = Deployment::new().await;
    let [schedule, claim, complete] = [
        deployment.start("schedule").await,
        deployment.start("claim").await,
        deployment.start("complete").await,
    ];
    let first = running_task(&schedule, &claim, "first", json!({})).await;
    let second = running_task(&schedule, &claim, "second", json!({})).await;
    let result = json!({"id": "first", "lease": first, "output": {"secret": "seagull"}});

    // A result without an envelope beside one in an envelope.
    let error = json!({"code": "smtp", "message": "no route"});
    let fail = json!({"id": "second", "lease": second, "error": error});
    let bodies = [result.clone(), json!({"v": 1, "type": "fail", "body": fail})];
    let answer = complete.invoke(with_bodies(event("sqs_completions"), &bodies)).await.unwrap();
    assert_eq!(failed_messages(&answer), [""; 0]);
    let described = complete.invoke(result.clone()).await.unwrap();
    assert_eq!(described["task"]["status"], "completed", "{described}");

    // A report by message that is too late is dropped. The invalid one beside it isn't.
    let late = json!({"id": "second", "lease": first, "output": {"secret": "seagull"}});
    let batch =
        with_bodies(event("sqs_completions"), &[late.clone(), json!({"type": "heartbeat", "body": {}})]);
    let bad = batch["Records"][1]["messageId"].as_str().unwrap();
    let answer = complete.invoke(batch.clone()).await.unwrap();
    assert_eq!(failed_messages(&answer), [bad]);
    let logs = complete.logs();
    assert!(logs.contains("late report dropped") && logs.contains("lease_lost"), "{logs}");
    assert!(!logs.contains("seagull"), "a payload is logged: {logs}");

    // Reports may arrive by ingress as well, in their envelope.
    let bodies = [
        json!({"v": 1, "type": "complete", "body": late}),
        result,
        json!({"v": 1, "type": "event", "body": {}}),
    ];
    let batch = with_bodies(event("sqs_ingress"), &bodies);
    let answer = schedule.invoke(batch.clone()).await.unwrap();
    let bad: Vec<_> = batch["Records"].as_array().unwrap()[1..]
        .iter()
        .map(|record| record["messageId"].as_str().unwrap())
        .collect();
    assert_eq!(failed_messages(&answer), bad);
}

#[tokio::test]
async fn executions_and_events_by_message_count_once_however_often_they_are_delivered() {
    let deployment = Deployment::new().await;
    let schedule = deployment.start("schedule").await;
    let bodies = [
        json!({"v": 1, "type": "execution", "body": {"workflow": "orders", "id": "order-7", "queue": "emails"}}),
        json!({"v": 1, "type": "execution", "body": {"workflow": "orders", "queue": "emails"}}),
        json!({"v": 1, "type": "task", "body": {"queue": "emails", "kind": "k"}}),
    ];
    let batch = with_bodies(event("sqs_ingress"), &bodies);
    for _ in 0..2 {
        assert_eq!(failed_messages(&schedule.invoke(batch.clone()).await.unwrap()), [""; 0]);
    }
    let shipped =
        json!({"v": 1, "type": "event", "body": {"id": "order-7", "name": "shipped", "payload": 1}});
    let nobody = json!({"v": 1, "type": "event", "body": {"id": "nobody", "name": "shipped"}});
    let batch = with_bodies(event("sqs_ingress"), &[shipped.clone(), nobody, bodies[2].clone()]);
    let bad = batch["Records"][1]["messageId"].as_str().unwrap();
    for _ in 0..2 {
        assert_eq!(failed_messages(&schedule.invoke(batch.clone()).await.unwrap()), [bad]);
    }
    // The second delivery was the same event.
    let mut body = shipped["body"].clone();
    body["event_id"] = json!("another");
    let third = schedule.invoke(json!({"type": "event", "body": body})).await.unwrap();
    assert_eq!(third, json!({"pending": 2}));
}
