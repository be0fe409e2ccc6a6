//! The timeouts of each attempt.

use serde_json::json;
use tickover_tests::http::Caller;

use super::outcomes;

#[tokio::test]
async fn schedule_to_start_limits_the_wait_of_each_attempt_from_when_it_may_start() {
    let caller = Caller::default();
    let fields = json!({"schedule_to_start_timeout": "10s", "retry": "fixed(1, 5s)", "delay": "1m"});
    let task = caller.schedule("a", fields).await;
    assert_eq!(task["schedule_to_start_at"], caller.after(70));
    caller.pass(69).await;
    assert_eq!(caller.task("a").await["status"], "pending");
    caller.pass(1).await;
    let task = caller.task("a").await;
    assert_eq!((&task["status"], &task["attempt"]), (&json!("pending"), &json!(1)));
    assert_eq!(task["schedule_to_start_at"], caller.after(15));
    caller.pass(15).await;
    let task = caller.task("a").await;
    assert_eq!((&task["status"], &task["timeout_kind"]), (&json!("timed_out"), &json!("schedule_to_start")));
}

#[tokio::test]
async fn the_time_to_start_is_fresh_after_an_attempt_that_timed_out() {
    for (of_attempt, kind) in
        [("start_to_close_timeout", "start_to_close"), ("heartbeat_timeout", "heartbeat")]
    {
        let caller = Caller::default();
        let fields = json!({"schedule_to_start_timeout": "20s", of_attempt: "10s", "retry": "fixed(2, 5s)"});
        let task = caller.schedule("a", fields).await;
        assert_eq!(task["schedule_to_start_at"], caller.after(20));
        caller.pass(15).await;
        caller.lease().await;
        caller.pass(10).await;
        let task = caller.task("a").await;
        assert_eq!((&task["status"], outcomes(&task)), (&json!("pending"), vec!["timed_out"]), "{kind}");
        assert_eq!(task["available_at"], caller.after(5), "{kind}");
        assert_eq!(task["schedule_to_start_at"], caller.after(25), "{kind}");

        caller.pass(24).await;
        assert_eq!(caller.task("a").await["attempt"], 1, "{kind}");
        caller.pass(1).await;
        let task = caller.task("a").await;
        assert_eq!((&task["status"], &task["attempt"]), (&json!("pending"), &json!(2)), "{kind}");
        assert_eq!(task["schedule_to_start_at"], caller.after(25), "{kind}");
        caller.pass(24).await;
        caller.lease().await;
        caller.pass(10).await;
        let task = caller.task("a").await;
        assert_eq!((&task["status"], &task["timeout_kind"]), (&json!("timed_out"), &json!(kind)));
    }
}

#[tokio::test]
async fn start_to_close_counts_from_the_claim_and_is_fresh_for_each_attempt() {
    let caller = Caller::default();
    caller.schedule("a", json!({"start_to_close_timeout": "10s", "retry": "fixed(1, 0s)"})).await;
    caller.pass(100).await;
    caller.lease().await;
    assert_eq!(caller.task("a").await["start_to_close_at"], caller.after(10));
    caller.pass(10).await;
    assert_eq!(caller.task("a").await["status"], "pending");
    let lease = caller.lease().await;
    caller.pass(9).await;
    let done = caller.ok("/v1/tasks/a/complete", json!({"lease": lease})).await;
    assert_eq!(outcomes(&done["task"]), ["timed_out", "completed"]);
}

#[tokio::test]
async fn schedule_to_close_is_never_reset_and_always_final() {
    let caller = Caller::default();
    let deadline = caller.after(60);
    caller.schedule("a", json!({"timeout": "1m", "on_timeout": "retry", "retry": "fixed(9, 1s)"})).await;
    for _ in 0..3 {
        let lease = caller.lease().await;
        caller.pass(5).await;
        caller.ok("/v1/tasks/a/heartbeat", json!({"lease": lease})).await;
        assert_eq!(caller.fail("a", &lease, "boom").await["deadline_at"], deadline);
        caller.pass(1).await;
    }
    caller.pass(60).await;
    assert_eq!(caller.task("a").await["status"], "timed_out");
}

#[tokio::test]
async fn each_heartbeat_moves_the_heartbeat_timeout_and_nothing_else() {
    let caller = Caller::default();
    let fields = json!({"heartbeat_timeout": "10s", "timeout": "5m", "start_to_close_timeout": "2m"});
    caller.schedule("a", fields).await;
    let lease = caller.lease().await;
    let claimed = caller.task("a").await;
    assert_eq!(claimed["heartbeat_at"], caller.after(10));
    caller.pass(9).await;
    caller.ok("/v1/tasks/a/heartbeat", json!({"lease": lease})).await;
    let beaten = caller.task("a").await;
    assert_eq!(beaten["heartbeat_at"], caller.after(10));
    assert_eq!(beaten["lease_expires_at"], caller.after(60));
    assert_eq!(beaten["start_to_close_at"], claimed["start_to_close_at"]);
    assert_eq!(beaten["deadline_at"], claimed["deadline_at"]);
    caller.pass(10).await;
    assert_eq!(caller.task("a").await["timeout_kind"], "heartbeat");
}

#[tokio::test]
async fn the_first_in_order_of_several_timeouts_at_once_is_named() {
    let caller = Caller::default();
    let all = json!({"timeout": "10s", "start_to_close_timeout": "10s", "heartbeat_timeout": "10s"});
    let two = json!({"start_to_close_timeout": "10s", "heartbeat_timeout": "10s"});
    for (id, fields, kind) in [("a", all, "schedule_to_close"), ("b", two, "heartbeat")] {
        caller.schedule(id, fields).await;
        caller.lease().await;
        caller.pass(10).await;
        assert_eq!(caller.task(id).await["timeout_kind"], kind);
    }
    caller.schedule("c", json!({"timeout": "10s", "schedule_to_start_timeout": "10s"})).await;
    caller.pass(10).await;
    assert_eq!(caller.task("c").await["timeout_kind"], "schedule_to_close");
}

#[tokio::test]
async fn terminal_timeouts_end_a_task_that_has_attempts_left() {
    let caller = Caller::default();
    let fields = json!({"start_to_close_timeout": "10s", "on_timeout": "terminal", "retry": "fixed(5, 0s)"});
    caller.schedule("a", fields).await;
    caller.lease().await;
    caller.pass(10).await;
    assert_eq!(caller.task("a").await["status"], "timed_out");
}
