//! Operators' calls.

use axum::http::StatusCode;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_service::ServiceError;

use crate::worker::{Worker, completed, failed_by};

#[tokio::test]
async fn a_paused_execution_starts_nothing_while_its_deadline_keeps_running() {
    let worker = Worker::default();
    worker.start("e", json!({"execution_timeout": "1h"})).await;
    assert_eq!(worker.operate("e", "pause").await["changed"], true);
    assert_eq!(worker.operate("e", "pause").await["changed"], false);
    assert_eq!(worker.seen("e").await["status"], "paused");
    assert!(worker.try_take().await.is_none());
    assert_eq!(worker.operate("e", "resume").await["changed"], true);
    let turn = worker.take("e").await;
    worker.suspend(turn, vec![], None).await;

    worker.operate("e", "pause").await;
    worker.caller.ok("/v1/executions/e/events/shipped", json!({})).await;
    assert!(worker.try_take().await.is_none());
    worker.caller.pass(3_600).await;
    assert_eq!(worker.seen("e").await["status"], "timed_out");
    let late = worker.caller.refused("/v1/executions/e/resume", json!({})).await;
    assert_eq!(late, (409, "already_terminal".to_owned()));
}

#[tokio::test]
async fn an_event_that_came_during_a_pause_is_taken_after_it() {
    let worker = Worker::default();
    worker.parked("e", json!({})).await;
    worker.operate("e", "pause").await;
    worker.caller.ok("/v1/executions/e/events/shipped", json!({})).await;
    assert!(worker.try_take().await.is_none());
    worker.operate("e", "resume").await;
    worker.take("e").await;
}

#[tokio::test]
async fn cancelling_ends_a_waiting_execution_at_once_and_asks_a_running_one() {
    let worker = Worker::default();
    worker.parked("asleep", json!({})).await;
    let answer = worker.operate("asleep", "cancel").await;
    assert_eq!(
        (&answer["outcome"], &answer["execution"]["status"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    assert_eq!(worker.operate("asleep", "cancel").await["outcome"], "already_finished");

    worker.start("busy", json!({})).await;
    let turn = worker.take("busy").await;
    let answer = worker.operate("busy", "cancel").await;
    assert_eq!(
        (&answer["outcome"], &answer["execution"]["status"]),
        (&json!("requested"), &json!("running"))
    );
    assert_eq!(worker.seen("busy").await["cancel_requested"], true);
    // Its worker sees that with its next write.
    let recorded = worker.record(&turn, vec![worker.step("charge", &json!(1))]).await.unwrap();
    assert!(recorded.cancel_requested);
    let refused = worker.caller.refused("/v1/executions/nobody/cancel", json!({})).await;
    assert_eq!(refused, (404, "not_found".to_owned()));
}

#[tokio::test]
async fn terminating_ends_a_running_execution_and_fences_its_worker() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let turn = worker.take("e").await;
    let answer = worker.operate("e", "terminate").await;
    assert_eq!(answer["execution"]["cause"], json!({"category": "terminated"}));
    let entries = vec![worker.step("charge", &json!(1))];
    for refused in [
        worker.record(&turn, entries.clone()).await,
        worker.try_close(&turn, entries, completed(&json!("won"))).await,
    ] {
        assert!(matches!(refused, Err(ServiceError::Rejected(Reject::TurnLost))), "{refused:?}");
    }
    assert_eq!(worker.seen("e").await["status"], "cancelled");
}

#[tokio::test]
async fn a_worker_that_thaws_after_another_took_over_can_write_nothing() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let frozen = worker.take("e").await;
    worker.caller.scene.clock.advance(Millis::from_secs(61));
    let turn = worker.take("e").await;
    // A single result, enough results to be sealed into a segment, and an end: all are refused.
    let many: Vec<_> =
        (0..40).map(|n| worker.step(&format!("label[{n}]"), &json!("x".repeat(100)))).collect();
    for refused in [
        worker.record(&frozen, vec![worker.step("charge", &json!("twice"))]).await,
        worker.record(&frozen, many.clone()).await,
        worker.try_close(&frozen, many, completed(&json!("frozen"))).await,
    ] {
        assert!(matches!(refused, Err(ServiceError::Rejected(Reject::TurnLost))), "{refused:?}");
    }
    let journal = worker.caller.scene.service.journal_of(&turn.execution).await.unwrap();
    // The next turn has recorded a note about the loss, and nothing else is there.
    assert!(matches!(&journal[..], [Entry { what: Happened::Note { .. }, .. }]), "{journal:?}");
    worker.close(turn, vec![worker.step("charge", &json!("once"))], completed(&json!(1))).await;
    assert_eq!(worker.seen("e").await["output"], 1);
}

#[tokio::test]
async fn a_restart_is_a_new_run_with_the_same_input_and_fresh_deadlines() {
    let worker = Worker::default();
    worker.start("e", json!({"input": "i", "execution_timeout": "1h", "run_timeout": "1m"})).await;
    let refused = worker.caller.refused("/v1/executions/e/restart", json!({})).await;
    assert_eq!(refused, (409, "not_terminal".to_owned()));
    let turn = worker.take("e").await;
    worker.close(turn, vec![worker.step("charge", &json!(1))], completed(&json!(1))).await;
    worker.caller.pass(7_200).await;
    let restarted = worker.operate("e", "restart").await;
    assert_eq!(
        (&restarted["execution"]["run"], &restarted["execution"]["status"]),
        (&json!(2), &json!("pending"))
    );
    assert_eq!(restarted["execution"]["deadline_at"], worker.caller.after(3_600));
    assert_eq!(restarted["execution"]["run_deadline_at"], worker.caller.after(60));
    let turn = worker.take("e").await;
    assert_eq!(turn.input.as_ref().unwrap().as_str(), r#""i""#);
    let entries = serde_json::to_string(&turn.journal).unwrap();
    assert!(!entries.contains("charge"), "{entries}");
}

#[tokio::test]
async fn a_rerun_keeps_good_results_except_of_the_steps_that_are_named() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let turn = worker.take("e").await;
    let entries =
        vec![worker.step("charge", &json!(1)), worker.step("pack", &json!(2)), worker.exhausted("ship")];
    worker.close(turn, entries, failed_by("ship")).await;
    let seen = worker.seen("e").await;
    let cause = json!({"category": "step", "step": "ship", "retries_exhausted": true});
    assert_eq!((&seen["status"], &seen["cause"]), (&json!("failed"), &cause));

    let unknown = worker.caller.refused("/v1/executions/e/rerun", json!({"steps": ["fly"]})).await;
    assert_eq!(unknown, (404, "unknown_step".to_owned()));
    worker.caller.ok("/v1/executions/e/rerun", json!({"steps": ["pack"]})).await;
    let turn = worker.take("e").await;
    let entries = serde_json::to_string(&turn.journal).unwrap();
    assert!(
        entries.contains("charge") && !entries.contains("pack") && !entries.contains("ship"),
        "{entries}"
    );
    assert_eq!(turn.execution.run, 2);
}

#[tokio::test]
async fn a_failed_step_is_retried_in_the_same_run_unless_its_deadline_has_passed() {
    let worker = Worker::default();
    worker.start("e", json!({"execution_timeout": "1h"})).await;
    let turn = worker.take("e").await;
    let entries = vec![worker.step("charge", &json!(1)), worker.exhausted("ship[0]")];
    worker.close(turn, entries, failed_by("ship[0]")).await;
    let retry = |step: &str| format!("/v1/executions/e/steps/{step}/retry");
    let (status, problem) = worker.caller.post(&retry("charge"), json!({})).await;
    assert_eq!((status, &problem["field"]), (StatusCode::BAD_REQUEST, &json!("step")));
    assert_eq!(worker.caller.refused(&retry("fly"), json!({})).await, (404, "unknown_step".to_owned()));
    let answer = worker.caller.ok(&retry("ship%5B0%5D"), json!({})).await;
    assert_eq!((&answer["execution"]["run"], &answer["execution"]["status"]), (&json!(1), &json!("pending")));
    let turn = worker.take("e").await;
    let entries = vec![worker.exhausted("ship[0]")];
    worker.close(turn, entries, failed_by("ship[0]")).await;
    worker.caller.pass(3_600).await;
    let late = worker.caller.refused(&retry("ship%5B0%5D"), json!({})).await;
    assert_eq!(late, (409, "deadline_exceeded".to_owned()));
}

/// The caller has got no answer: what has come of the first call since then is another matter.
#[tokio::test]
async fn a_retry_of_a_step_may_be_repeated_until_something_has_come_of_it() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let turn = worker.take("e").await;
    worker.close(turn, vec![worker.exhausted("ship")], failed_by("ship")).await;
    let retry = "/v1/executions/e/steps/ship/retry";
    let first = worker.caller.ok(retry, json!({})).await["execution"].take();
    let again = worker.caller.ok(retry, json!({})).await["execution"].take();
    assert_eq!((&first["status"], &again), (&json!("pending"), &first));
    let turn = worker.take("e").await;
    worker.close(turn, vec![worker.step("ship", &json!(1))], failed_by("ship")).await;
    let (status, problem) = worker.caller.post(retry, json!({})).await;
    assert_eq!((status, &problem["field"]), (StatusCode::BAD_REQUEST, &json!("step")));
}

#[tokio::test]
async fn a_rerun_has_fresh_deadlines_like_a_restart() {
    let worker = Worker::default();
    worker.start("e", json!({"execution_timeout": "1h", "run_timeout": "1m"})).await;
    let turn = worker.take("e").await;
    let entries = vec![worker.step("charge", &json!(1)), worker.exhausted("ship")];
    worker.close(turn, entries, failed_by("ship")).await;
    worker.caller.pass(7_200).await;
    let rerun = worker.operate("e", "rerun").await["execution"].take();
    assert_eq!((&rerun["run"], &rerun["status"]), (&json!(2), &json!("pending")));
    assert_eq!(rerun["deadline_at"], worker.caller.after(3_600));
    assert_eq!(rerun["run_deadline_at"], worker.caller.after(60));
    // They are enforced then, and not before.
    worker.caller.pass(59).await;
    assert_eq!(worker.seen("e").await["status"], "pending");
    worker.caller.pass(1).await;
    let seen = worker.seen("e").await;
    assert_eq!((&seen["status"], &seen["timeout_kind"]), (&json!("timed_out"), &json!("run")));
}
