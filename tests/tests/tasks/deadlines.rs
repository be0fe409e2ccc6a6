//! Deadlines over all attempts.

use axum::http::Method;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_tests::http::Caller;

use super::outcomes;

#[tokio::test]
async fn a_task_with_a_timeout_shows_its_deadline_from_the_start() {
    let caller = Caller::default();
    let deadline = caller.after(600);
    let task = caller.schedule("a", json!({"timeout": "10m"})).await;
    assert_eq!(task["deadline_at"], deadline);
    assert_eq!(caller.task("a").await["deadline_at"], deadline);
    assert_eq!(caller.task("a").await["next"]["what"], "schedule_to_close_timeout");
    assert_eq!(caller.task("a").await["next"]["at"], deadline);
}

#[tokio::test]
async fn a_task_without_a_timeout_never_times_out() {
    let caller = Caller::default();
    let task = caller.schedule("a", json!({})).await;
    assert_eq!(task.get("deadline_at"), None);
    for _ in 0..40 {
        caller.pass(86_400).await;
    }
    assert_eq!(caller.task("a").await["status"], "pending");
}

#[tokio::test]
async fn the_sweep_times_out_expired_pending_and_running_tasks_however_many() {
    let caller = Caller::default();
    for number in 0..300 {
        caller.schedule(&format!("t{number}"), json!({"timeout": "5s"})).await;
    }
    let lease = caller.lease().await;
    assert!(!lease.is_empty());
    caller.scene.clock.advance(Millis::from_secs(5));
    let report = caller.scene.tick().await.unwrap();
    assert_eq!(report.timed_out, 300, "{report:?}");
    let (_, list) = caller.send(Method::GET, "/v1/tasks?status=timed_out&limit=500", None).await;
    assert_eq!(list["tasks"].as_array().unwrap().len(), 300);
}

#[tokio::test]
async fn many_ticks_at_once_time_a_task_out_exactly_once() {
    let caller = Caller::default();
    caller.schedule("a", json!({"timeout": "5s"})).await;
    caller.lease().await;
    caller.scene.clock.advance(Millis::from_secs(5));
    let ticks = futures::future::join_all((0..8).map(|_| caller.scene.tick())).await;
    let task = caller.task("a").await;
    assert_eq!(outcomes(&task), ["timed_out"]);
    let timed_out: u64 = ticks.into_iter().map(|report| report.unwrap().timed_out).sum();
    assert_eq!(timed_out, 1);
}

#[tokio::test]
async fn the_deadline_is_kept_through_retries_and_lost_workers() {
    let caller = Caller::default();
    let deadline = caller.after(600);
    caller.schedule("a", json!({"timeout": "10m", "retry": "fixed(5, 10s)"})).await;
    let lease = caller.lease().await;
    assert_eq!(caller.fail("a", &lease, "boom").await["deadline_at"], deadline);
    caller.pass(10).await;
    caller.claim_for("5s").await.unwrap();
    caller.pass(6).await;
    let taken_over = caller.claim().await.unwrap();
    assert_eq!(taken_over["deadline_at"], deadline);
    assert_eq!(taken_over["attempt"], 2);
    let remaining = taken_over["remaining_ms"].as_u64().unwrap();
    assert!((583_000..=584_000).contains(&remaining), "{remaining}");
}

#[tokio::test]
async fn a_global_timeout_is_shared_by_all_attempts_and_final() {
    let caller = Caller::default();
    caller.schedule("a", json!({"timeout": "30s", "retry": "fixed(9, 1s)"})).await;
    let lease = caller.lease().await;
    caller.pass(20).await;
    caller.fail("a", &lease, "boom").await;
    caller.pass(1).await;
    caller.lease().await;
    caller.pass(9).await;
    let task = caller.task("a").await;
    assert_eq!((&task["status"], &task["timeout_kind"]), (&json!("timed_out"), &json!("schedule_to_close")));
    assert_eq!(outcomes(&task), ["failed", "timed_out"]);
    assert!(task["error"]["message"].as_str().unwrap().contains("it broke"), "{task}");
}

#[tokio::test]
async fn a_per_attempt_timeout_is_fresh_for_each_attempt_and_final_when_it_fires() {
    let caller = Caller::default();
    let fields = json!({"timeout": "30s", "timeout_scope": "per_attempt", "retry": "fixed(9, 0s)"});
    caller.schedule("a", fields).await;
    let lease = caller.lease().await;
    caller.pass(20).await;
    caller.fail("a", &lease, "boom").await;
    let again = caller.claim().await.unwrap();
    assert_eq!(again["remaining_ms"], 30_000);
    caller.pass(30).await;
    let task = caller.task("a").await;
    assert_eq!((&task["status"], &task["timeout_kind"]), (&json!("timed_out"), &json!("start_to_close")));
}

#[tokio::test]
async fn an_attempts_timeout_is_capped_by_the_deadline_over_all() {
    let caller = Caller::default();
    caller.schedule("a", json!({"timeout": "10s", "start_to_close_timeout": "1h"})).await;
    let claimed = caller.claim().await.unwrap();
    assert_eq!(claimed["remaining_ms"], 10_000);
    caller.pass(10).await;
    assert_eq!(caller.task("a").await["timeout_kind"], "schedule_to_close");
}

#[tokio::test]
async fn a_retry_picked_up_after_the_deadline_times_out_without_running() {
    let caller = Caller::default();
    caller.schedule("a", json!({"timeout": "30s", "retry": "fixed(1, 20s)"})).await;
    let lease = caller.lease().await;
    caller.fail("a", &lease, "boom").await;
    // No tick: the claim itself finds that it is too late.
    caller.scene.clock.advance(Millis::from_secs(31));
    assert_eq!(caller.claim().await, None);
    let task = caller.task("a").await;
    assert_eq!(task["status"], "timed_out");
    assert_eq!(outcomes(&task), ["failed"]);
}

#[tokio::test]
async fn a_doomed_retry_fails_at_once_and_says_why() {
    let caller = Caller::default();
    caller.schedule("a", json!({"timeout": "30s", "retry": "fixed(3, 1m)"})).await;
    let lease = caller.lease().await;
    let task = caller.fail("a", &lease, "boom").await;
    assert_eq!((&task["status"], &task["timeout_kind"]), (&json!("timed_out"), &json!("schedule_to_close")));
    let message = task["error"]["message"].as_str().unwrap();
    assert!(message.contains("it broke") && message.contains("deadline"), "{message}");
}

#[tokio::test]
async fn at_its_instant_a_deadline_has_passed() {
    let caller = Caller::default();
    caller.schedule("a", json!({"timeout": "10s"})).await;
    let lease = caller.lease().await;
    caller.scene.clock.advance(Millis::new(9_999));
    caller.ok("/v1/tasks/a/heartbeat", json!({"lease": lease})).await;
    caller.scene.clock.advance(Millis::new(1));
    let refused = caller.refused("/v1/tasks/a/complete", json!({"lease": lease, "output": 1})).await;
    assert_eq!(refused, (409, "deadline_exceeded".to_owned()));
    assert_eq!(caller.task("a").await["status"], "timed_out");
}

#[tokio::test]
async fn a_late_completion_is_refused_with_the_reason() {
    let caller = Caller::default();
    caller.schedule("a", json!({"timeout": "10s"})).await;
    let lease = caller.lease().await;
    caller.pass(10).await;
    let before = caller.task("a").await;
    for (call, body) in [
        ("complete", json!({"lease": lease, "output": 1})),
        ("fail", json!({"lease": lease, "error": {"code": "x"}})),
        ("heartbeat", json!({"lease": lease})),
    ] {
        let refused = caller.refused(&format!("/v1/tasks/a/{call}"), body).await;
        assert_eq!(refused, (409, "deadline_exceeded".to_owned()), "{call}");
    }
    assert_eq!(caller.task("a").await, before);
}
