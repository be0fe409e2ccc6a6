//! Leases: kept, lost, released.

use axum::http::Method;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_tests::http::Caller;

use super::outcomes;

#[tokio::test]
async fn a_lost_worker_is_replaced_its_attempt_not_counted_and_its_result_refused() {
    let caller = Caller::default();
    caller.schedule("a", json!({})).await;
    let lost = caller.claim_for("10s").await.unwrap();
    assert_eq!(caller.claim().await, None, "a worker has it");
    caller.pass(10).await;
    let taken_over = caller.claim().await.unwrap();
    assert_eq!(taken_over["attempt"], 1);
    let late = json!({"lease": lost["lease"], "output": "late"});
    assert_eq!(caller.refused("/v1/tasks/a/complete", late).await, (409, "lease_lost".to_owned()));
    let done = json!({"lease": taken_over["lease"], "output": "done"});
    let task = caller.ok("/v1/tasks/a/complete", done).await["task"].take();
    assert_eq!((outcomes(&task), &task["output"]), (vec!["lost", "completed"], &json!("done")));
}

#[tokio::test]
async fn heartbeats_extend_a_lease() {
    let caller = Caller::default();
    caller.schedule("a", json!({})).await;
    let claimed = caller.claim_for("10s").await.unwrap();
    for step in 1..=10_u32 {
        caller.pass(9).await;
        let progress = f64::from(step) / 10.0;
        let beat = json!({"lease": claimed["lease"], "progress": progress});
        let answer = caller.ok("/v1/tasks/a/heartbeat", beat).await;
        assert_eq!(answer["lease_expires_at"], caller.after(10));
        assert_eq!(answer["cancel_requested"], false);
        assert_eq!(caller.claim().await, None);
        assert_eq!(caller.task("a").await["progress"], progress);
    }
}

#[tokio::test]
async fn work_that_hangs_times_out_although_its_worker_keeps_the_lease() {
    let caller = Caller::default();
    caller.schedule("a", json!({"heartbeat_timeout": "20s", "retry": "fixed(1, 0s)"})).await;
    let claimed = caller.claim_for("10s").await.unwrap();
    assert_eq!(claimed["heartbeat_timeout_ms"], 20_000);
    let alone = || json!({"lease": claimed["lease"], "worker_only": true});
    for _ in 0..2 {
        caller.pass(9).await;
        caller.ok("/v1/tasks/a/heartbeat", alone()).await;
    }
    caller.pass(2).await;
    assert_eq!(caller.refused("/v1/tasks/a/heartbeat", alone()).await, (409, "deadline_exceeded".to_owned()));
    let task = caller.task("a").await;
    assert_eq!((outcomes(&task), &task["status"]), (vec!["timed_out"], &json!("pending")));
    // What comes from the work isn't the worker's alone.
    let lease = caller.lease().await;
    for value in [json!({"progress": 0.5}), json!({"details": 1})] {
        let mut both = json!({"lease": lease, "worker_only": true});
        both.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        assert_eq!(caller.refused("/v1/tasks/a/heartbeat", both).await.0, 400);
    }
}

#[tokio::test]
async fn the_next_claim_has_the_progress_and_the_details_also_of_a_lost_worker() {
    let caller = Caller::default();
    // Beside this input, the second details have no space in the record.
    caller.schedule("a", json!({"input": "x".repeat(200)})).await;
    let mut claimed = caller.claim_for("10s").await.unwrap();
    assert_eq!((claimed.get("progress"), claimed.get("details")), (None, None));
    for details in [json!({"processed": 120}), json!({"seen": "x".repeat(490)})] {
        let beat = json!({"lease": claimed["lease"], "progress": 0.5, "details": details});
        caller.ok("/v1/tasks/a/heartbeat", beat).await;
        caller.ok("/v1/tasks/a/heartbeat", json!({"lease": claimed["lease"]})).await;
        assert_eq!(caller.task("a").await["details"], details);
        caller.pass(10).await;
        claimed = caller.claim_for("10s").await.unwrap();
        assert_eq!((&claimed["progress"], &claimed["details"]), (&json!(0.5), &details));
    }
    let large = json!({"lease": claimed["lease"], "details": "x".repeat(511)});
    assert_eq!(caller.refused("/v1/tasks/a/heartbeat", large).await, (413, "limit_exceeded".to_owned()));
}

#[tokio::test]
async fn a_released_task_is_pending_at_once_and_the_attempt_does_not_count() {
    let caller = Caller::default();
    caller.schedule("a", json!({})).await;
    let lease = caller.lease().await;
    let task = caller.ok("/v1/tasks/a/release", json!({"lease": lease})).await["task"].take();
    assert_eq!((&task["status"], outcomes(&task)), (&json!("pending"), vec!["released"]));
    assert_eq!(caller.claim().await.unwrap()["attempt"], 1);
}

#[tokio::test]
async fn a_task_that_loses_worker_after_worker_ends_as_poisoned() {
    let caller = Caller::default();
    caller.schedule("a", json!({"retry": "fixed(50, 0s)"})).await;
    for _ in 0..4 {
        caller.claim_for("1s").await.unwrap();
        caller.pass(2).await;
    }
    assert_eq!(caller.claim().await, None);
    let task = caller.task("a").await;
    assert_eq!((&task["status"], &task["error"]["code"]), (&json!("failed"), &json!("poisoned")));
}

#[tokio::test]
async fn a_message_of_a_leased_task_becomes_visible_when_the_lease_ends() {
    let caller = Caller::default();
    caller.schedule("a", json!({})).await;
    // The same request again, before a claim, sends a second message.
    caller.schedule("a", json!({})).await;
    caller.claim_for("10s").await.unwrap();
    assert_eq!(caller.claim_for("12h").await, None);
    caller.pass(10).await;
    let (_, queue) = caller.send(Method::GET, "/v1/queues/work", None).await;
    assert_eq!((&queue["queue"]["depth"], &queue["queue"]["in_flight"]), (&json!(2), &json!(0)));
}

#[tokio::test]
async fn attempts_that_time_out_do_not_leave_messages_behind() {
    let caller = Caller::default();
    let retry = json!({"max_attempts": -1, "delay": "1s"});
    caller.schedule("a", json!({"start_to_close_timeout": "30s", "retry": retry})).await;
    for _ in 0..8 {
        caller.claim().await.unwrap();
        caller.pass(30).await;
        caller.pass(1).await;
    }
    // The messages of the attempts that timed out are received again, and have no effect.
    caller.claim().await.unwrap();
    caller.scene.clock.advance(Millis::from_secs(29));
    assert_eq!(caller.claim().await, None);
    let (_, queue) = caller.send(Method::GET, "/v1/queues/work", None).await;
    let count = |name: &str| queue["queue"][name].as_u64().unwrap();
    let messages = count("depth") + count("in_flight") + count("delayed");
    assert!(messages <= 3, "{queue}");
}
