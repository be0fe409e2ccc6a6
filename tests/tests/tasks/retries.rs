//! Retries, backoff and an operator's retry.

use serde_json::json;
use tickover_tests::http::Caller;

#[tokio::test]
async fn a_failed_attempt_waits_its_backoff_and_the_claim_is_cleared() {
    let caller = Caller::default();
    caller.schedule("a", json!({"retry": {"max_attempts": 3, "delay": ["5s", "20s"]}})).await;
    let lease = caller.lease().await;
    let task = caller.fail("a", &lease, "boom").await;
    assert_eq!((&task["status"], &task["available_at"]), (&json!("pending"), &json!(caller.after(5))));
    assert_eq!(task.get("lease_expires_at"), None);
    assert_eq!(caller.claim().await, None, "not before its time");
    caller.pass(5).await;
    let lease = caller.lease().await;
    assert_eq!(caller.fail("a", &lease, "boom").await["available_at"], caller.after(20));
    caller.pass(20).await;
    let lease = caller.lease().await;
    let task = caller.fail("a", &lease, "last").await;
    assert_eq!(
        (&task["status"], &task["attempt"], &task["error"]["code"]),
        (&json!("failed"), &json!(3), &json!("last"))
    );
}

#[tokio::test]
async fn short_forms_of_retries_count_without_the_first_attempt() {
    let caller = Caller::default();
    for (id, retry, attempts) in [("a", "none", 1), ("b", "fixed(3, 10s)", 4), ("c", "exponential(5, 1s)", 6)]
    {
        assert_eq!(caller.schedule(id, json!({"retry": retry})).await["max_attempts"], attempts, "{retry}");
    }
}

#[tokio::test]
async fn jitter_is_really_applied_and_the_same_for_a_task() {
    let caller = Caller::default();
    let mut waits = std::collections::BTreeSet::new();
    for number in 0..20 {
        let id = format!("t{number}");
        caller.schedule(&id, json!({"retry": "exponential(1, 100s)"})).await;
        let lease = caller.lease().await;
        let task = caller.fail(&id, &lease, "boom").await;
        let at = task["available_at"].as_str().unwrap().to_owned();
        assert!(at >= caller.now() && at <= caller.after(100));
        waits.insert(at);
    }
    assert!(waits.len() > 10, "{waits:?}");
}

#[tokio::test]
async fn errors_that_are_not_retryable_end_the_task() {
    let caller = Caller::default();
    let retry = json!({"max_attempts": 5, "non_retryable": ["bad_input"]});
    caller.schedule("a", json!({"retry": retry})).await;
    let lease = caller.lease().await;
    assert_eq!(caller.fail("a", &lease, "bad_input").await["status"], "failed");
    caller.schedule("b", json!({"retry": "fixed(5, 0s)"})).await;
    let lease = caller.lease().await;
    let body = json!({"lease": lease, "error": {"code": "x", "retryable": false}});
    assert_eq!(caller.ok("/v1/tasks/b/fail", body).await["task"]["status"], "failed");
}

#[tokio::test]
async fn an_operators_retry_clears_the_old_deadline_and_the_timeout_counts_per_attempt() {
    let caller = Caller::default();
    caller.schedule("a", json!({"timeout": "30s", "input": {"n": 1}})).await;
    caller.pass(30).await;
    assert_eq!(caller.task("a").await["status"], "timed_out");
    caller.pass(1_000).await;
    let task = caller.ok("/v1/tasks/a/retry", json!({})).await["task"].take();
    assert_eq!(task["status"], "pending");
    assert_eq!(task.get("deadline_at"), None);
    caller.pass(1_000).await;
    let claimed = caller.claim().await.unwrap();
    assert_eq!((&claimed["remaining_ms"], &claimed["input"]), (&json!(30_000), &json!({"n": 1})));
    let done = caller.ok("/v1/tasks/a/complete", json!({"lease": claimed["lease"]})).await;
    assert_eq!(done["task"]["status"], "completed");
    assert_eq!(caller.refused("/v1/tasks/a/retry", json!({})).await, (409, "already_terminal".to_owned()));
}
