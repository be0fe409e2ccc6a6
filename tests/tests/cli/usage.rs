//! Options that contradict each other, and options of several commands that mean the same.

use serde_json::{Value, json};

use crate::scene::Scene;

#[tokio::test]
async fn contradictory_options_are_usage_errors() {
    let scene = Scene::start().await;
    let (later, earlier) = ("2026-02-01T00:00:00Z", "2026-01-01T00:00:00Z");
    let debounce = ["--debounce", "k", "--debounce-wait", "10s", "--debounce-at-most", "1s"];
    for args in [
        &["work", "q", "--lease", "1s", "--heartbeat", "30s", "--", "true"][..],
        &["work", "q", "--lease", "30s", "--heartbeat", "30s", "--", "true"],
        &["list", "--created-from", later, "--created-before", earlier],
        &["execution", "list", "--started-from", later, "--started-before", later],
        &["operation", "on-tasks", "cancel", "--created-from", later, "--created-before", earlier],
        &["operation", "on-executions", "cancel", "--event", "e"],
        &[&["task", "q", "k"][..], &debounce].concat(),
        &[&["start", "w"][..], &debounce].concat(),
        &["cron", "create", "--every", "1h", "--workflow", "w", "--task", "{}"],
        &["cron", "create", "--every", "1h"],
        &["cron", "create", "--every", "1h", "--task", "{}", "--input", "1"],
    ] {
        let ended = scene.run(args).await;
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {ended:?}");
    }
    let nothing = scene.run(&["list", "--json"]).await.stdout;
    assert_eq!(nothing, "");
}

#[tokio::test]
async fn a_cron_takes_a_workflow_and_its_input_as_a_start_does() {
    let scene = Scene::start().await;
    let workflow = ["--workflow", "report", "--input", r#"{"n": 1.50}"#, "--queue", "reports"];
    let create = [&["cron", "create", "--id", "c", "--every", "1h", "--json"][..], &workflow].concat();
    let made: Value = serde_json::from_str(&scene.prints(&create).await).expect("JSON");
    let expected = json!({"workflow": "report", "input": {"n": 1.5}, "queue": "reports"});
    assert_eq!(made["execution"], expected, "{made}");
    scene.prints(&["cron", "trigger", "c"]).await;
    let list = scene.prints(&["execution", "list", "report", "--json"]).await;
    let started: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(started["queue"], "reports");
}

#[tokio::test]
async fn lists_take_several_statuses() {
    let scene = Scene::start().await;
    let cancelled = scene.schedule_plain("k").await;
    scene.prints(&["cancel", &cancelled]).await;
    scene.schedule_plain("k").await;
    for (statuses, count) in [("pending", 1), ("cancelled,pending", 2), ("running,failed", 0)] {
        let list = scene.prints(&["list", "--status", statuses, "--json"]).await;
        assert_eq!(list.lines().count(), count, "{statuses}: {list}");
    }
    scene.prints(&["start", "w", "--id", "a"]).await;
    scene.prints(&["start", "w", "--id", "b"]).await;
    scene.prints(&["execution", "terminate", "b"]).await;
    let list = scene.prints(&["execution", "list", "w", "--status", "waiting,pending,cancelled"]).await;
    assert!(list.contains("2 executions shown"), "{list}");
    let refused = scene.run(&["list", "--status", "pending,odd"]).await;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[tokio::test]
async fn a_start_that_waits_says_that_no_worker_has_taken_it() {
    let scene = Scene::start().await;
    let started = scene.run(&["start", "nobody", "--wait", "3s"]).await;
    assert_eq!(started.status.code(), Some(1), "{started:?}");
    assert!(started.stderr.contains("no worker has taken it yet"), "{started:?}");
    assert!(started.stderr.contains("nobody") && started.stderr.contains("workflows"), "{started:?}");
}
