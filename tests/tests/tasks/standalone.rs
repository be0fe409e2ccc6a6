//! Cancelling, delays, states, pauses, and hints that are lost.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_tests::http::Caller;
use tickover_tests::scene::{START, queue_name};

#[tokio::test]
async fn a_cancel_says_whether_it_ended_the_task_requested_that_or_was_too_late() {
    let caller = Caller::default();
    caller.schedule("pending", json!({})).await;
    let answer = caller.ok("/v1/tasks/pending/cancel", json!({})).await;
    assert_eq!((&answer["outcome"], &answer["task"]["status"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!(caller.ok("/v1/tasks/pending/cancel", json!({})).await["outcome"], "already_finished");

    caller.schedule("running", json!({"retry": "fixed(5, 0s)"})).await;
    let lease = caller.lease().await;
    let answer = caller.ok("/v1/tasks/running/cancel", json!({})).await;
    assert_eq!((&answer["outcome"], &answer["task"]["status"]), (&json!("requested"), &json!("running")));
    let beat = caller.ok("/v1/tasks/running/heartbeat", json!({"lease": lease})).await;
    assert_eq!(beat["cancel_requested"], true);
    assert_eq!(caller.fail("running", &lease, "stopped").await["status"], "cancelled");

    caller.schedule("forced", json!({})).await;
    let lease = caller.lease().await;
    let answer = caller.ok("/v1/tasks/forced/cancel", json!({"force": true})).await;
    assert_eq!((&answer["outcome"], &answer["task"]["status"]), (&json!("cancelled"), &json!("cancelled")));
    let refused = caller.refused("/v1/tasks/forced/complete", json!({"lease": lease})).await;
    assert_eq!(refused, (409, "already_terminal".to_owned()));

    assert_eq!(caller.refused("/v1/tasks/nobody/cancel", json!({})).await, (404, "not_found".to_owned()));
}

#[tokio::test]
async fn a_delayed_task_starts_when_it_is_time_however_far_ahead() {
    let caller = Caller::default();
    for (id, seconds) in [("soon", 5), ("later", 14 * 60), ("much-later", 86_400)] {
        let start = caller.after(seconds);
        let task = caller.schedule(id, json!({"delay": seconds * 1_000})).await;
        assert_eq!(
            (&task["available_at"], &task["next"]["what"]),
            (&json!(start), &json!("becomes_available"))
        );
        let mut passed = 0;
        while passed + 60 < seconds {
            caller.pass(60).await;
            passed += 60;
            assert_eq!(caller.claim().await, None, "{id} after {passed} s");
        }
        caller.pass(seconds - passed).await;
        let claimed = caller.claim().await.unwrap();
        assert_eq!(claimed["id"], id);
        caller.ok(&format!("/v1/tasks/{id}/complete"), json!({"lease": claimed["lease"]})).await;
    }
}

#[tokio::test]
async fn a_tasks_status_is_always_one_of_seven() {
    let caller = Caller::default();
    assert_eq!(caller.schedule("a", json!({})).await["status"], "pending");
    let lease = caller.lease().await;
    assert_eq!(caller.task("a").await["status"], "running");
    caller.ok("/v1/tasks/a/complete", json!({"lease": lease})).await;
    assert_eq!(caller.task("a").await["status"], "completed");
    for (status, expected) in [
        ("pending", 0),
        ("running", 0),
        ("completed", 1),
        ("failed", 0),
        ("timed_out", 0),
        ("cancelled", 0),
        ("skipped", 0),
    ] {
        let (code, list) = caller.send(Method::GET, &format!("/v1/tasks?status={status}"), None).await;
        assert_eq!((code, list["tasks"].as_array().unwrap().len()), (StatusCode::OK, expected), "{status}");
    }
    let (code, answer) = caller.send(Method::GET, "/v1/tasks?status=waiting", None).await;
    assert_eq!((code, &answer["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_request")));
}

#[tokio::test]
async fn next_says_for_every_state_what_happens_and_when() {
    let caller = Caller::default();
    caller.schedule("a", json!({"delay": "10s", "start_to_close_timeout": "2m"})).await;
    let next =
        |task: Value| (task["next"]["what"].as_str().unwrap().to_owned(), task["next"].get("at").cloned());
    assert_eq!(next(caller.task("a").await), ("becomes_available".to_owned(), Some(json!(caller.after(10)))));
    caller.pass(10).await;
    assert_eq!(next(caller.task("a").await), ("waits_for_worker".to_owned(), None));
    let lease = caller.lease().await;
    assert_eq!(next(caller.task("a").await), ("lease_expires".to_owned(), Some(json!(caller.after(60)))));
    caller.pass(50).await;
    caller.ok("/v1/tasks/a/heartbeat", json!({"lease": lease})).await;
    caller.pass(50).await;
    caller.ok("/v1/tasks/a/heartbeat", json!({"lease": lease})).await;
    assert_eq!(
        next(caller.task("a").await),
        ("start_to_close_timeout".to_owned(), Some(json!(caller.after(20))))
    );
    caller.ok("/v1/tasks/a/complete", json!({"lease": lease})).await;
    assert_eq!(next(caller.task("a").await), ("deleted".to_owned(), Some(json!(caller.after(30 * 86_400)))));
}

#[tokio::test]
async fn no_task_of_a_paused_queue_is_claimed_and_deadlines_keep_running() {
    let caller = Caller::default();
    caller.schedule("a", json!({"timeout": "30s"})).await;
    caller.schedule("b", json!({})).await;
    caller.ok("/v1/queues/work/pause", json!({})).await;
    assert_eq!(caller.claim().await, None);
    caller.pass(30).await;
    assert_eq!(caller.task("a").await["status"], "timed_out");
    caller.ok("/v1/queues/work/resume", json!({})).await;
    assert_eq!(caller.claim().await.unwrap()["id"], "b");
}

#[tokio::test]
async fn a_hint_lost_between_commit_and_send_is_sent_by_the_tick() {
    let caller = Caller::default();
    caller.schedule("a", json!({})).await;
    // The message is lost: its receiver deletes it and never reports.
    let service = &caller.scene.service;
    let queue = queue_name("work");
    caller.scene.lose_messages(&queue).await;
    assert_eq!(caller.claim().await, None);
    for _ in 0..12 {
        caller.pass(60).await;
    }
    assert_eq!(caller.claim().await.unwrap()["id"], "a");
    assert!(service.now() < START.plus(Millis::from_secs(900)));
}
