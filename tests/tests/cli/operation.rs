//! The same call for many executions or tasks.

use serde_json::{Value, json};

use crate::scene::Scene;

#[tokio::test]
async fn an_operation_is_tried_started_shown_listed_and_stopped() {
    let scene = Scene::start().await;
    for id in ["a", "b"] {
        scene.schedule(&json!({"queue": "q", "kind": "k", "id": id, "labels": {"team": id}})).await;
    }
    let run = async |args: &[&str]| {
        let ended = scene.run(&[&["operation"], args].concat()).await;
        assert!(ended.status.success(), "{args:?}: {ended:?}");
        ended
    };
    let counted = run(&["on-tasks", "cancel", "--queue", "q", "--dry-run"]).await.stdout;
    assert!(counted.contains("cancel, completed, a dry run") && counted.contains("2 found\n"), "{counted}");
    let cancel = ["on-tasks", "cancel", "--queue", "q", "--label", "team=a", "--operation-id", "mine"];
    let cancelled = run(&cancel).await;
    assert!(cancelled.stdout.contains("1 found, 1 changed, 0 left as they were"), "{cancelled:?}");
    assert!(cancelled.stderr.contains("waiting for its end"), "{cancelled:?}");
    assert_eq!(
        (&scene.task("a").await["status"], &scene.task("b").await["status"]),
        (&json!("cancelled"), &json!("pending"))
    );
    // The same again is the same operation.
    assert_eq!(run(&cancel).await.stdout, cancelled.stdout);
    assert_eq!(run(&["show", "mine"]).await.stdout, cancelled.stdout);
    let shown: Value = serde_json::from_str(&run(&["show", "mine", "--json"]).await.stdout).expect("JSON");
    assert_eq!((&shown["id"], &shown["changed"]), (&json!("mine"), &json!(1)));
    let stopped = run(&["stop", "mine"]).await;
    assert!(stopped.stderr.contains("mine was over already"), "{stopped:?}");
    let listed = run(&["list"]).await.stdout;
    assert!(listed.contains("mine") && listed.contains("cancel (dry run)"), "{listed}");
    assert_eq!(run(&["list", "--json", "--limit", "1"]).await.stdout.lines().count(), 1);

    let event = ["on-executions", "send-event", "--id", "nobody", "--event", "go", "--payload", "[1]"];
    let sent = run(&event).await.stdout;
    assert!(
        sent.contains("1 refused: not_found") && sent.contains(r#"event: {"name":"go","payload":[1]}"#),
        "{sent}"
    );
    let begun = run(&["on-executions", "cancel", "--workflow", "w", "--no-wait", "--json"]).await.stdout;
    assert!(serde_json::from_str::<Value>(&begun).expect("JSON")["id"].is_string(), "{begun}");
    let tasks = scene.run(&["list", "--kind", "k", "--label", "team=b"]).await.stdout;
    assert!(tasks.contains("1 task shown"), "{tasks}");
}

#[tokio::test]
async fn a_wrong_operation_says_what_is_expected() {
    let scene = Scene::start().await;
    for (args, code, said) in [
        (&["on-tasks", "delete", "--queue", "q"][..], 2, "expected one of retry, retry-step"),
        (&["on-tasks", "retry", "--status", "lost"], 2, "expected one of pending"),
        (&["on-tasks", "retry"], 1, "invalid_request: tasks: expected ids"),
        (&["on-tasks", "restart", "--queue", "q"], 1, "invalid_request: action"),
        (&["on-executions", "send-event", "--workflow", "w"], 1, "invalid_request: event"),
        (&["on-executions", "retry", "--id", "a b"], 2, "invalid value"),
        (&["show", "nobody"], 1, "not_found"),
    ] {
        let ended = scene.run(&[&["operation"], args].concat()).await;
        assert_eq!(ended.status.code(), Some(code), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(said), "{args:?}: {ended:?}");
    }
}
