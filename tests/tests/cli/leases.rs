//! The lease of a task: kept by heartbeats, lost, timed out, taken back.

use serde_json::{Value, json};

use crate::scene::{Scene, is_gone};

/// A command that writes its process id and then waits until the test's folder is deleted.
const HANG: &str = r#"echo $$ > "$DIR/pid"; while [ -e "$DIR" ]; do sleep 0.05; done"#;
/// A command that runs until the test makes a file.
const UNTIL_FILE: &str = r#"echo $$ > "$DIR/pid"; while [ ! -e "$DIR/go" ]; do sleep 0.05; done; echo done"#;

#[tokio::test]
async fn heartbeats_keep_a_task_longer_than_its_lease() {
    let scene = Scene::start().await;
    let worker = scene.worker(&["--lease", "1s"], UNTIL_FILE);
    let id = scene.schedule_plain("long").await;
    let claimed = scene.until_status(&id, "running").await;
    let mut leases = vec![claimed["lease_expires_at"].clone()];
    // Six heartbeats, a third of a second apart, are two leases' length.
    while leases.len() < 7 {
        let last = leases.last().cloned().unwrap_or_default();
        leases.push(
            scene.until(&id, |task| task["lease_expires_at"] != last).await["lease_expires_at"].clone(),
        );
    }
    scene.signal("go");
    let task = scene.until_status(&id, "completed").await;
    assert_eq!((&task["attempt"], task["attempts"].as_array().map(Vec::len)), (&json!(1), Some(1)), "{task}");
    let ended = worker.interrupt().await.expect("an end");
    assert!(ended.stderr.contains("1 completed; heartbeats: "), "{}", ended.stderr);
    assert!(!ended.stderr.contains("heartbeats: 0 renewed"), "{}", ended.stderr);
}

#[tokio::test]
async fn what_a_command_writes_meets_a_heartbeat_timeout_shorter_than_the_lease() {
    let scene = Scene::start().await;
    // Every 100 ms it writes to its standard error, and in the end a result.
    let script = r#"while [ ! -e "$DIR/go" ]; do echo working >&2; sleep 0.1; done; echo done"#;
    let _worker = scene.worker(&["--lease", "60s"], script);
    let body = json!({"queue": "work", "kind": "slow", "heartbeat_timeout": "1500ms"});
    let id = scene.schedule(&body).await;
    let claimed = scene.until_status(&id, "running").await;
    let mut beats = vec![claimed["heartbeat_at"].clone()];
    // Five heartbeats, half a second apart, are longer than the timeout.
    while beats.len() < 6 {
        let last = beats.last().cloned().unwrap_or_default();
        beats.push(scene.until(&id, |task| task["heartbeat_at"] != last).await["heartbeat_at"].clone());
    }
    scene.signal("go");
    let task = scene.until_status(&id, "completed").await;
    assert_eq!(task["attempts"].as_array().map(Vec::len), Some(1), "{task}");
}

#[tokio::test]
async fn a_silent_command_is_ended_by_the_heartbeat_timeout_and_the_next_attempt_runs() {
    let scene = Scene::start().await;
    let script = format!("[ $TICKOVER_ATTEMPT = 2 ] && exec echo second\n{HANG}");
    // The lease is renewed every 333 ms: the worker lives, and the command hangs.
    let worker = scene.worker(&["--lease", "1s"], &script);
    let silence = json!({"timeout": "2s", "errorOnTimeout": true});
    let body = json!({"queue": "work", "kind": "slow", "maxInactivity": silence, "retry": "fixed(1, 0s)"});
    let id = scene.schedule(&body).await;
    let pid = scene.file("pid").await;
    let task = scene.until_status(&id, "completed").await;
    assert_eq!((&task["output"], &task["attempts"][0]["outcome"]), (&json!("second"), &json!("timed_out")));
    is_gone(&pid).await;
    let ended = worker.interrupt().await.expect("an end");
    assert!(ended.stderr.contains("1 completed, 1 stopped"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_command_reports_progress_and_details_and_the_next_attempt_gets_them() {
    let scene = Scene::start().await;
    let script = r#"
        if [ $TICKOVER_ATTEMPT = 2 ]; then echo "$TICKOVER_PROGRESS $TICKOVER_DETAILS"; exit 0; fi
        echo ${TICKOVER_PROGRESS-none} > "$DIR/first"
        echo "::progress 0.4"; echo '::details {"processed": 120}'; echo output
        while [ ! -e "$DIR/go" ]; do echo working; sleep 0.1; done; exit 1"#;
    let _worker = scene.worker(&[], script);
    let body = json!({"queue": "work", "kind": "slow", "heartbeat_timeout": "3s", "retry": "fixed(1, 0s)"});
    let id = scene.schedule(&body).await;
    // A heartbeat may come between the two lines.
    let reported = scene.until(&id, |task| task["details"] == json!({"processed": 120})).await;
    assert_eq!(reported["progress"], json!(0.4));
    assert_eq!(scene.file("first").await, "none");
    scene.signal("go");
    let task = scene.until_status(&id, "completed").await;
    assert_eq!(task["output"], json!("0.4 {\"processed\": 120}"));
}

#[tokio::test]
async fn a_short_task_sends_no_heartbeat() {
    let scene = Scene::start().await;
    let worker = scene.worker(&["--max-tasks", "1"], "echo 1");
    scene.schedule_plain("short").await;
    let ended = worker.ended().await.expect("an end");
    assert!(ended.status.success());
    assert!(
        ended.stderr.contains("1 completed; heartbeats: 0 renewed, 0 refused, 0 unanswered"),
        "{}",
        ended.stderr
    );
}

#[tokio::test]
async fn the_deadline_ends_the_command() {
    let scene = Scene::start().await;
    let worker = scene.worker(&[], HANG);
    let id = scene.schedule(&json!({"queue": "work", "kind": "slow", "timeout": "1s"})).await;
    let pid = scene.file("pid").await;
    let task = scene.until_status(&id, "timed_out").await;
    assert_eq!(task["timeout_kind"], "schedule_to_close");
    is_gone(&pid).await;
    worker.says("its deadline passed").await;
}

#[tokio::test]
async fn an_attempts_own_timeout_ends_the_command_and_the_next_attempt_runs() {
    let scene = Scene::start().await;
    let script = format!("[ $TICKOVER_ATTEMPT = 2 ] && exec echo second\n{HANG}");
    let _worker = scene.worker(&[], &script);
    let task =
        json!({"queue": "work", "kind": "slow", "start_to_close_timeout": "1s", "retry": "fixed(1, 0s)"});
    let id = scene.schedule(&task).await;
    let pid = scene.file("pid").await;
    let task = scene.until_status(&id, "completed").await;
    assert_eq!((&task["output"], &task["attempts"][0]["outcome"]), (&json!("second"), &json!("timed_out")));
    is_gone(&pid).await;
}

#[tokio::test]
async fn another_worker_gets_a_killed_workers_task() {
    let scene = Scene::start().await;
    let first = scene.worker(&["--lease", "1s", "--worker", "first"], HANG);
    let id = scene.schedule_plain("any").await;
    scene.file("pid").await;
    first.kill().await.expect("an end");
    let _second = scene.worker(&["--worker", "second"], "echo taken over");
    let task = scene.until_status(&id, "completed").await;
    let outcomes: Vec<_> = task["attempts"].as_array().expect("attempts").iter().map(who).collect();
    assert_eq!(outcomes, [("first", "lost"), ("second", "completed")]);
    assert_eq!((&task["attempt"], &task["output"]), (&json!(1), &json!("taken over")));
}

fn who(attempt: &Value) -> (&str, &str) {
    (attempt["worker"].as_str().unwrap_or_default(), attempt["outcome"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn a_cancellation_reaches_the_command_which_may_clean_up() {
    let scene = Scene::start().await;
    let script = format!(r#"trap 'echo cleaned > "$DIR/cleaned"; exit 0' TERM; {HANG}"#);
    let worker = scene.worker(&["--lease", "1s"], &script);
    let id = scene.schedule(&json!({"queue": "work", "kind": "long", "retry": "fixed(5, 0s)"})).await;
    let pid = scene.file("pid").await;
    let ended = scene.run(&["cancel", &id]).await;
    assert!(ended.stdout.contains("its worker is told"), "{ended:?}");
    let task = scene.until_status(&id, "cancelled").await;
    assert_eq!(task["attempt"], 1);
    assert_eq!(scene.file("cleaned").await, "cleaned");
    is_gone(&pid).await;
    worker.says("cancelled  ").await;
}

#[tokio::test]
async fn a_command_that_ignores_the_request_to_end_is_killed_after_its_grace() {
    let scene = Scene::start().await;
    let script = format!("trap '' TERM; {HANG}");
    let _worker = scene.worker(&["--lease", "1s", "--grace", "200ms"], &script);
    let id = scene.schedule_plain("deaf").await;
    let pid = scene.file("pid").await;
    scene.post(&format!("tasks/{id}/cancel"), &json!({})).await;
    scene.until_status(&id, "cancelled").await;
    is_gone(&pid).await;
}

#[tokio::test]
async fn a_command_whose_lease_is_lost_is_ended_and_not_reported() {
    let scene = Scene::start().await;
    let worker = scene.worker(&["--lease", "1s"], HANG);
    let id = scene.schedule_plain("long").await;
    let pid = scene.file("pid").await;
    let ended = scene.run(&["cancel", &id, "--force"]).await;
    assert!(ended.stdout.contains("is cancelled"), "{ended:?}");
    is_gone(&pid).await;
    worker.says("already_terminal").await;
    let ended = worker.interrupt().await.expect("an end");
    assert!(ended.stderr.contains("1 stopped; heartbeats: "), "{}", ended.stderr);
    assert!(ended.stderr.contains("1 refused"), "{}", ended.stderr);
}
