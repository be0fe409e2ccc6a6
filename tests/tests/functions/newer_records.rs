//! Records that a newer build has written: this build doesn't change them, and says so.

use serde_json::json;
use tickover_core::id::TaskId;
use tickover_core::time::Timestamp;
use tickover_core::timer::{Timer, Wake};

use crate::deployment::{Deployment, batch, event, failed_messages, message_id, waiting_task};

#[tokio::test]
async fn every_function_leaves_a_newer_builds_record_unchanged() {
    let deployment = Deployment::new().await;
    let [schedule, claim, tick] =
        [deployment.start("schedule").await, deployment.start("claim").await, deployment.start("tick").await];
    let task = waiting_task(&schedule, "t", json!({"timeout": "1s"})).await;
    deployment.make_newer("t").await;
    let before = deployment.item("t").await;

    // By its timer, which waits until the deadline has passed. So the later cases are after the deadline too.
    let at = Timestamp::parse_rfc3339(task["deadline_at"].as_str().unwrap()).unwrap();
    let timer =
        Wake::Timer(Timer { record: TaskId::parse("t").unwrap().into(), at, due_at: at }).body().unwrap();
    let timers = batch("sqs_timers", [timer]);
    let answer = tick.invoke(timers.clone()).await.unwrap();
    assert_eq!(failed_messages(&answer), [message_id(&timers, 0)], "a newer build may still need it");
    assert!(tick.logs().contains("corrupt_record"), "{}", tick.logs());
    // By a tick, which processes all other records.
    let report = tick.invoke(json!({})).await.unwrap();
    assert_eq!((&report["failed"], &report["timed_out"]), (&json!(1), &json!(0)), "{report}");
    let logs = tick.logs();
    assert!(logs.contains("record left alone") && logs.contains(r#""task.id":"t""#), "{logs}");
    // By a claim from its hint, which this build wrote before.
    let error = claim.invoke(event("direct_claim")).await.unwrap_err();
    assert_eq!(error.error_type, "corrupt_record", "{error}");
    // And by its id.
    let error = claim.invoke(json!({"id": "t", "worker": "worker-1"})).await.unwrap_err();
    assert_eq!(error.error_type, "corrupt_record", "{error}");
    assert!(claim.logs().contains("claim failed"), "{}", claim.logs());

    assert_eq!(deployment.item("t").await, before);
}
