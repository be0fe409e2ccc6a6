//! Commands that fail.

use serde_json::json;

use crate::scene::Scene;

#[tokio::test]
async fn a_failing_command_is_retried_until_no_attempt_is_left() {
    let scene = Scene::start().await;
    let worker = scene.worker(&[], r#"echo "attempt $TICKOVER_ATTEMPT broke" >&2; exit 7"#);
    let task = json!({"queue": "work", "kind": "break", "retry": "fixed(1, 100ms)"});
    let id = scene.schedule(&task).await;
    let task = scene.until_status(&id, "failed").await;
    assert_eq!(task["error"], json!({"code": "exit_7", "message": "attempt 2 broke"}));
    assert_eq!(task["attempts"].as_array().expect("attempts").len(), 2);
    // The command's standard error is also shown where the worker runs.
    worker.says("attempt 1 broke").await;
    worker.says("the task is failed").await;
}

#[tokio::test]
async fn the_tail_of_standard_error_is_reported_and_no_more() {
    let scene = Scene::start().await;
    let _worker = scene.worker(&[], "seq 1 5000 >&2; exit 1");
    let id = scene.schedule_plain("chatty").await;
    let task = scene.until_status(&id, "failed").await;
    let message = task["error"]["message"].as_str().expect("a message");
    assert!(message.ends_with("4999\n5000"), "{message}");
    assert!((1_900..=2_048).contains(&message.len()), "{}", message.len());
}

#[tokio::test]
async fn a_command_ended_by_a_signal_has_failed_with_its_number() {
    let scene = Scene::start().await;
    let _worker = scene.worker(&[], "kill -9 $$");
    let id = scene.schedule_plain("crash").await;
    assert_eq!(scene.until_status(&id, "failed").await["error"]["code"], "signal_9");
}

#[tokio::test]
async fn a_command_that_cannot_be_started_ends_the_worker_and_costs_no_attempt() {
    let scene = Scene::start().await;
    let worker = scene.worker_of(&["--", "/no/such/program"]);
    let id = scene.schedule_plain("any").await;
    let ended = worker.ended().await.expect("an end");
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("error: can't start /no/such/program"), "{}", ended.stderr);
    let task = scene.until_status(&id, "pending").await;
    assert_eq!((&task["attempt"], &task["attempts"][0]["outcome"]), (&json!(0), &json!("released")));
}

#[tokio::test]
async fn a_background_process_that_keeps_the_output_open_is_not_waited_for() {
    let scene = Scene::start().await;
    // The background process ends when the test's folder is deleted.
    let script = r#"(while [ -e "$DIR" ]; do sleep 0.1; done) & echo started"#;
    let _worker = scene.worker(&[], script);
    let id = scene.schedule_plain("daemon").await;
    assert_eq!(scene.until_status(&id, "completed").await["output"], "started");
}
