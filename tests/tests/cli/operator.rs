//! The operator's commands.

use serde_json::{Value, json};
use tickover_tests::process::Process;

use crate::scene::Scene;

#[tokio::test]
async fn a_scheduled_task_is_shown_described_and_listed() {
    let scene = Scene::start().await;
    let options = ["--id", "t1", "--timeout", "1h", "--retry", "fixed(3, 2s)", "--label", "team=a"];
    let ended = scene.run(&[&["task", "emails", "send", r#"{"to": "x"}"#][..], &options].concat()).await;
    assert!(ended.status.success(), "{ended:?}");
    for part in ["t1", "pending", "0 of 4", "team=a", r#"{"to": "x"}"#, "deadline"] {
        assert!(ended.stdout.contains(part), "{part} in {}", ended.stdout);
    }
    assert_eq!(scene.run(&["describe", "t1"]).await.stdout, ended.stdout);
    let json = scene.run(&["describe", "t1", "--json"]).await.stdout;
    assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON"), scene.task("t1").await);
    let list = scene.run(&["list", "--queue", "emails", "--status", "pending"]).await.stdout;
    assert!(list.contains("t1") && list.contains("1 task shown"), "{list}");
    let none = scene.run(&["list", "--queue", "other"]).await.stdout;
    assert!(none.contains("0 tasks shown"), "{none}");
}

#[tokio::test]
async fn what_is_read_by_programs_has_no_colour_codes() {
    let server = Process::tickover(&["--log", "debug", "dev", "--listen", "127.0.0.1:0"]).expect("a server");
    let endpoint = server.address().await.expect("an address");
    let call = async |args: &[&str]| {
        let args = [&["--endpoint", &endpoint], args].concat();
        Process::tickover(&args).expect("a process").ended().await.expect("an end")
    };
    let shown = call(&["task", "emails", "send", "1", "--id", "t1"]).await;
    let list = call(&["list"]).await;
    let wrong = call(&["list", "--no-such-option"]).await;
    server.says("t1").await;
    for text in [shown.stdout, list.stdout, wrong.stderr, server.stderr()] {
        assert!(!text.is_empty() && !text.contains('\u{1b}'), "{text:?}");
    }
}

#[tokio::test]
async fn a_list_follows_the_pages_up_to_its_limit() {
    let scene = Scene::start().await;
    for _ in 0..7 {
        scene.schedule_plain("any").await;
    }
    let some = scene.run(&["list", "--limit", "5", "--json"]).await;
    assert_eq!(some.stdout.lines().count(), 5, "{some:?}");
    let all = scene.run(&["list", "--json"]).await;
    let ids = all.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone());
    let mut ids: Vec<_> = ids.map(|id| id.to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 7);
}

#[tokio::test]
async fn explain_describes_a_live_task() {
    let scene = Scene::start().await;
    let retry = json!({"max_attempts": 2, "delay": ["1h"]});
    let id =
        scene.schedule(&json!({"queue": "work", "kind": "fetch", "timeout": "2d", "retry": retry})).await;
    let explained = scene.run(&["explain", &id]).await.stdout;
    assert!(explained.contains("it has been waiting for a worker of queue work"), "{explained}");
    let _worker = scene.worker(&[], "echo no such host >&2; exit 6");
    scene.until(&id, |task| task["attempt"] == 1 && task["status"] == "pending").await;
    let explained = scene.run(&["explain", &id]).await.stdout;
    for part in [
        "attempt 1 failed, and the wait before the next one ends",
        "Attempts: 1 of 2 used, 1 left.",
        "Last error: exit_6: no such host (attempt 1",
        "the whole task must have ended",
    ] {
        assert!(explained.contains(part), "{part} in {explained}");
    }
}

#[tokio::test]
async fn explain_describes_why_a_task_ended_and_retry_revives_it() {
    let scene = Scene::start().await;
    let worker = scene.worker(&["--max-tasks", "1"], "echo broken >&2; exit 1");
    let id = scene.schedule_plain("any").await;
    scene.until_status(&id, "failed").await;
    worker.ended().await.expect("an end");
    let explained = scene.run(&["explain", &id]).await.stdout;
    for part in ["it was the last one", "exit_1: broken", &format!("tickover retry {id}")] {
        assert!(explained.contains(part), "{part} in {explained}");
    }
    let retried = scene.run(&["retry", &id]).await.stdout;
    assert!(retried.contains("pending"), "{retried}");
    let cancelled = scene.run(&["cancel", &id]).await.stdout;
    assert_eq!(cancelled, format!("{id} is cancelled\n"));
    let again = scene.run(&["cancel", &id]).await.stdout;
    assert_eq!(again, format!("{id} had already ended: it is cancelled\n"));
}

#[tokio::test]
async fn errors_name_their_code_and_end_with_1_and_wrong_usage_with_2() {
    let scene = Scene::start().await;
    let missing = scene.run(&["describe", "nobody"]).await;
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stderr.starts_with("error: not_found: "), "{}", missing.stderr);
    let refused = scene.run(&["task", "q", "k", "--timeout", "1 fortnight"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.starts_with("error: invalid_request: timeout"), "{}", refused.stderr);
    for usage in [&["describe", "a b"][..], &["work", "q"], &["work", "q", "--lease", "1ms", "--", "true"]] {
        assert_eq!(scene.run(usage).await.status.code(), Some(2), "{usage:?}");
    }
    let unreachable = Process::tickover(&["--endpoint", "http://127.0.0.1:1", "list"]).expect("a process");
    let unreachable = unreachable.ended().await.expect("an end");
    assert_eq!(unreachable.status.code(), Some(1));
    assert!(
        unreachable.stderr.starts_with("error: no answer from http://127.0.0.1:1/"),
        "{}",
        unreachable.stderr
    );
}

#[tokio::test]
async fn explaining_an_execution_logs_no_refusal() {
    let server = Process::tickover(&["--log", "info", "dev", "--listen", "127.0.0.1:0"]).expect("a server");
    let endpoint = server.address().await.expect("an address");
    let call = async |args: &[&str]| {
        let args = [&["--endpoint", &endpoint], args].concat();
        Process::tickover(&args).expect("a process").ended().await.expect("an end")
    };
    assert!(call(&["start", "w", "--id", "e"]).await.status.success());
    assert!(call(&["explain", "e"]).await.stdout.contains("Execution e"));
    // This one is in the log, and it comes after the others.
    assert!(!call(&["retry", "nobody"]).await.status.success());
    server.says("/v1/tasks/{id}/retry").await;
    assert!(!server.stderr().contains("path=\"/v1/tasks/{id}\""), "{}", server.stderr());
}

/// What another party writes to move the cursor, to reorder what is shown, and to look like another field.
const FOREIGN: &str = "a\u{1b}[2J\u{9b}1m\u{7f}\u{202e}\r\nstatus          completed";

fn is_plain(text: &str) -> bool {
    let bidi = ['\u{202e}', '\u{2066}'];
    !text.is_empty() && !text.chars().any(|c| (c.is_control() && c != '\n') || bidi.contains(&c))
}

#[tokio::test]
async fn foreign_text_reaches_the_terminal_without_controls() {
    let scene = Scene::start().await;
    let labels = json!({"l\u{1b}": FOREIGN});
    let task = json!({"queue": "work", "kind": "k", "id": "t", "labels": labels, "input": "\u{9b}", "fairness_key": FOREIGN});
    scene.schedule(&task).await;
    let claimed = scene.post("queues/work/claim", &json!({})).await;
    let lease = &claimed["tasks"][0]["lease"];
    let error = json!({"code": "c\u{1b}[31m", "message": FOREIGN, "retryable": false});
    scene.post("tasks/t/fail", &json!({"lease": lease, "error": error})).await;
    scene.post("executions", &json!({"workflow": "w", "id": "e", "labels": labels, "memo": FOREIGN})).await;
    scene.post("executions/e/events", &json!({"name": "n", "payload": "\u{9b}\u{7f}"})).await;
    for args in [
        &["describe", "t"][..],
        &["describe", "t", "--json"],
        &["explain", "t"],
        &["list"],
        &["list", "--json"],
        &["describe", "e"],
        &["execution", "show", "e"],
        &["execution", "timeline", "e"],
        &["execution", "timeline", "e", "--json"],
        &["execution", "events", "e"],
        &["explain", "e"],
        &["execution", "list"],
        &["retry", "t"],
    ] {
        let ended = scene.run(args).await;
        assert!(ended.status.success() && is_plain(&ended.stdout), "{args:?}: {ended:?}");
        let lines =
            ended.stdout.lines().filter(|line| line.starts_with("status ") && line.contains("completed"));
        assert_eq!(lines.count(), 0, "{args:?}: {ended:?}");
    }
    let json = scene.run(&["describe", "t", "--json"]).await.stdout;
    assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON")["labels"], labels);
    let refused = scene.run(&["describe", "\u{1b}[2J"]).await;
    assert!(!refused.status.success() && is_plain(&refused.stderr), "{refused:?}");
}
