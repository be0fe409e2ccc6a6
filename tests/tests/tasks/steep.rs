//! Steep's policies and durations.

use serde_json::json;
use tickover_tests::http::Caller;

#[tokio::test]
async fn steeps_inner_policies_are_retried_only_as_errors_and_its_deadline_spans_all() {
    let caller = Caller::default();
    let fields = json!({
        "maxInactivity": {"timeout": "10s", "errorOnTimeout": true}, "maxRuntime": "1m",
        "deadline": {"timeout": "5m", "errorOnTimeout": true}, "retries": {"maxAttempts": 9},
    });
    let deadline = caller.after(300);
    caller.schedule("a", fields).await;
    caller.lease().await;
    caller.pass(10).await;
    assert_eq!(caller.task("a").await["status"], "pending", "inactivity is an error here, and is retried");
    let lease = caller.lease().await;
    for _ in 0..6 {
        caller.pass(9).await;
        caller.ok("/v1/tasks/a/heartbeat", json!({"lease": lease})).await;
    }
    caller.pass(6).await;
    let task = caller.task("a").await;
    assert_eq!(task["status"], "cancelled", "this timeout isn't an error, and cancels for good");
    assert_eq!(task["deadline_at"], deadline);
}

#[tokio::test]
async fn steeps_timeouts_are_texts_numbers_or_objects_and_cancel_by_default() {
    let caller = Caller::default();
    let error = json!({"timeout": "10s", "errorOnTimeout": true});
    for (id, policy, status) in [
        ("text", json!("10s"), "cancelled"),
        ("number", json!(10_000), "cancelled"),
        ("object", json!({"timeout": "10s"}), "cancelled"),
        ("error", error, "timed_out"),
    ] {
        caller.schedule(id, json!({"deadline": policy})).await;
        caller.pass(10).await;
        assert_eq!(caller.task(id).await["status"], status, "{id}");
    }
}

#[tokio::test]
async fn a_native_timeout_that_is_no_error_cancels_and_is_not_retried() {
    let caller = Caller::default();
    let fields = json!({"start_to_close_timeout": "10s", "error_on_timeout": false, "retry": "fixed(5, 0s)"});
    caller.schedule("a", fields).await;
    caller.lease().await;
    caller.pass(10).await;
    assert_eq!(caller.task("a").await["status"], "cancelled");
}

#[tokio::test]
async fn each_heartbeat_restarts_the_inactivity_timeout() {
    let caller = Caller::default();
    caller.schedule("a", json!({"maxInactivity": "10s"})).await;
    let lease = caller.lease().await;
    for _ in 0..5 {
        caller.pass(8).await;
        caller.ok("/v1/tasks/a/heartbeat", json!({"lease": lease, "progress": 0.5})).await;
    }
    assert_eq!(caller.task("a").await["status"], "running");
    caller.pass(10).await;
    assert_eq!(caller.task("a").await["status"], "cancelled");
}

#[tokio::test]
async fn attempts_are_one_by_default_endless_at_minus_one_and_skipped_at_zero() {
    let caller = Caller::default();
    let task = caller.schedule("one", json!({})).await;
    assert_eq!(task["max_attempts"], 1);
    let lease = caller.lease().await;
    assert_eq!(caller.fail("one", &lease, "boom").await["status"], "failed");

    let skipped = caller.schedule("none", json!({"retries": {"maxAttempts": 0}})).await;
    assert_eq!(skipped["status"], "skipped");
    assert_eq!(caller.claim().await, None);

    caller.schedule("endless", json!({"retries": {"maxAttempts": -1}})).await;
    for _ in 0..20 {
        let lease = caller.lease().await;
        assert_eq!(caller.fail("endless", &lease, "boom").await["status"], "pending");
    }
}

#[tokio::test]
async fn steeps_backoff_grows_to_its_maximum_exactly() {
    let caller = Caller::default();
    let retries = json!({"maxAttempts": 7, "delay": "1s", "exponentialBackoff": 2, "maxDelay": "10s"});
    caller.schedule("a", json!({"retries": retries})).await;
    for seconds in [1, 2, 4, 8, 10, 10] {
        let lease = caller.lease().await;
        assert_eq!(caller.fail("a", &lease, "boom").await["available_at"], caller.after(seconds));
        caller.pass(seconds).await;
    }
}

#[tokio::test]
async fn steeps_delays_grow_without_a_maximum_and_stay_without_a_factor() {
    let caller = Caller::default();
    for (id, retries, delays) in [
        ("grows", json!({"maxAttempts": 6, "delay": "1s", "exponentialBackoff": 2}), [1, 2, 4, 8, 16]),
        ("stays", json!({"maxAttempts": 6, "delay": "1s"}), [1; 5]),
    ] {
        caller.schedule(id, json!({"retries": retries})).await;
        for seconds in delays {
            let lease = caller.lease().await;
            assert_eq!(caller.fail(id, &lease, "boom").await["available_at"], caller.after(seconds), "{id}");
            caller.pass(seconds).await;
        }
        let lease = caller.lease().await;
        assert_eq!(caller.fail(id, &lease, "boom").await["status"], "failed", "{id}");
    }
}

#[tokio::test]
async fn steeps_deadline_ends_the_task_at_once_whatever_retries_are_left() {
    let caller = Caller::default();
    for (is_error, status) in [(false, "cancelled"), (true, "timed_out")] {
        let fields = |delay: &str| {
            json!({
                "deadline": {"timeout": "10s", "errorOnTimeout": is_error},
                "retries": {"maxAttempts": 9, "delay": delay},
            })
        };
        let ended = async |id: &str, attempt: u32| {
            let task = caller.task(id).await;
            let found = [&task["status"], &task["attempt"], &task["max_attempts"], &task["ended_at"]];
            let expected = [json!(status), json!(attempt), json!(9), json!(caller.now())];
            assert_eq!(found, expected.each_ref(), "{id}, {status}");
        };
        let runs = format!("runs-{status}");
        caller.schedule(&runs, fields("1s")).await;
        let lease = caller.lease().await;
        caller.fail(&runs, &lease, "boom").await;
        caller.pass(1).await;
        caller.lease().await;
        caller.pass(8).await;
        assert_eq!(caller.task(&runs).await["status"], "running");
        caller.pass(1).await;
        ended(&runs, 2).await;

        let waits = format!("waits-{status}");
        caller.schedule(&waits, fields("9s")).await;
        let lease = caller.lease().await;
        assert_eq!(caller.fail(&waits, &lease, "boom").await["status"], "pending");
        caller.pass(9).await;
        assert_eq!(caller.task(&waits).await["status"], "pending");
        caller.pass(1).await;
        ended(&waits, 1).await;

        // It doesn't wait for a retry that can't start before the deadline.
        let doomed = format!("doomed-{status}");
        caller.schedule(&doomed, fields("10s")).await;
        let lease = caller.lease().await;
        caller.pass(1).await;
        caller.fail(&doomed, &lease, "boom").await;
        ended(&doomed, 1).await;
    }
}

#[tokio::test]
async fn steeps_maximum_doesnt_cut_a_constant_delay_and_ours_does() {
    let caller = Caller::default();
    for (id, fields, seconds) in [
        ("steep", json!({"retries": {"maxAttempts": 3, "delay": "2s", "maxDelay": "1s"}}), 2),
        ("ours", json!({"retry": {"max_attempts": 3, "delay": "2s", "max_delay": "1s"}}), 1),
    ] {
        caller.schedule(id, fields).await;
        for _ in 0..2 {
            let lease = caller.lease().await;
            assert_eq!(caller.fail(id, &lease, "boom").await["available_at"], caller.after(seconds), "{id}");
            caller.pass(seconds).await;
        }
        let lease = caller.lease().await;
        assert_eq!(caller.fail(id, &lease, "boom").await["status"], "failed");
    }
}

#[tokio::test]
async fn durations_are_read_in_every_notation() {
    let caller = Caller::default();
    for (number, (text, seconds)) in [
        (json!("30s"), 30),
        (json!("5m"), 300),
        (json!("2h"), 7_200),
        (json!("3d"), 259_200),
        (json!("10h 30 minutes"), 37_800),
        (json!("1 hour 10minutes 5s"), 4_205),
        (json!("1d 5h"), 104_400),
        (json!("10 days 1hrs 30m 15 secs"), 869_415),
        (json!(90_000), 90),
    ]
    .into_iter()
    .enumerate()
    {
        let deadline = caller.after(seconds);
        let task = caller.schedule(&format!("t{number}"), json!({"timeout": text})).await;
        assert_eq!(task["deadline_at"], deadline, "{text}");
    }
}
