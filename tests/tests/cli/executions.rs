//! The commands that start and operate executions.

use serde_json::Value;

use crate::scene::Scene;

impl Scene {
    /// Runs a command that must succeed; returns its output.
    pub(crate) async fn prints(&self, args: &[&str]) -> String {
        let ended = self.run(args).await;
        assert!(ended.status.success(), "{args:?}: {ended:?}");
        ended.stdout
    }
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} should be in:\n{text}");
    }
}

#[tokio::test]
async fn a_started_execution_is_shown_described_explained_and_listed() {
    let scene = Scene::start().await;
    let options = ["--input", r#"{"boxes": 3}"#, "--memo", "[1]", "--label", "team=a", "--timeout", "1h"];
    let limits =
        ["--run-timeout", "30m", "--on-failure-timeout", "5m", "--priority", "high", "--fairness-key", "a"];
    let start = [&["start", "orders", "--id", "order-7"][..], &limits, &options].concat();
    let started = scene.prints(&start).await;
    assert_has(&started, &["order-7", "orders", "pending", "team=a", r#"{"boxes": 3}"#, "(1h)", "(30m)"]);
    assert_has(&started, &["on failure      5m", "priority        high"]);
    // A second start shows the existing execution.
    assert_has(&scene.prints(&["start", "orders", "--id", "order-7"]).await, &[r#"{"boxes": 3}"#]);
    let refused = scene.run(&["start", "orders", "--id", "order-7", "--reject-duplicate"]).await;
    assert!(refused.stderr.starts_with("error: id_conflict: "), "{refused:?}");

    // Its id is enough, unless a task has the same one.
    let shown = scene.prints(&["execution", "show", "order-7"]).await;
    assert_eq!(scene.prints(&["describe", "order-7"]).await, shown);
    let json = scene.prints(&["describe", "order-7", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON")["memo"], serde_json::json!([1]));
    let explained = scene.prints(&["explain", "order-7"]).await;
    let sentences = [
        "Execution order-7 (workflow orders, queue workflows) is pending in its run 1",
        "this run must have ended",
    ];
    assert_has(&explained, &sentences);
    scene.schedule(&serde_json::json!({"queue": "q", "kind": "k", "id": "order-7"})).await;
    assert_has(&scene.prints(&["describe", "order-7"]).await, &["task            order-7"]);

    let list = scene.prints(&["execution", "list", "orders", "--status", "pending"]).await;
    assert_has(&list, &["order-7", "1 execution shown"]);
    assert_has(&scene.prints(&["execution", "list", "others"]).await, &["0 executions shown"]);
    scene.prints(&["start", "imports", "--id", "import-1"]).await;
    assert_has(&scene.prints(&["execution", "list"]).await, &["order-7", "import-1", "2 executions shown"]);
    for (option, value, shown) in [
        ("--label", "team=a", "1 execution shown"),
        ("--label", "team=b", "0 executions shown"),
        ("--error", "card_declined", "0 executions shown"),
        ("--started-from", "2026-01-31T08:00:00Z", "2 executions shown"),
        ("--started-before", "2026-01-31T08:00:00Z", "0 executions shown"),
    ] {
        assert_has(&scene.prints(&["execution", "list", option, value]).await, &[shown]);
    }
    for (option, value) in [("--label", "team"), ("--started-from", "today")] {
        let refused = scene.run(&["execution", "list", option, value]).await;
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert_has(&refused.stderr, &["expected"]);
    }
    let export = scene.prints(&["execution", "export", "order-7", "--payloads"]).await;
    let export: Value = serde_json::from_str(&export).expect("JSON");
    assert_eq!((&export["execution"]["id"], &export["payloads"]), (&"order-7".into(), &true.into()));
    let plain = scene.prints(&["execution", "export", "order-7"]).await;
    assert!(!plain.contains("boxes"), "{plain}");
    assert_has(&scene.run(&["execution", "export", "nobody"]).await.stderr, &["not_found"]);
    let counts = scene.prints(&["execution", "counts", "--json"]).await;
    let expected = serde_json::json!({"workflows": [
        {"workflow": "imports", "executions": {"pending": 1}},
        {"workflow": "orders", "executions": {"pending": 1}},
    ]});
    let counts: Value = serde_json::from_str(&counts).expect("JSON");
    assert_eq!((&counts["workflows"], &counts["complete"]), (&expected["workflows"], &true.into()));
    assert_has(&scene.prints(&["execution", "counts"]).await, &["imports", "orders", "2 workflows"]);
}

#[tokio::test]
async fn a_start_that_waits_has_an_exit_code_for_whether_there_is_a_result() {
    let scene = Scene::start().await;
    let late = scene.run(&["start", "orders", "--timeout", "1s", "--wait", "20s"]).await;
    assert_eq!(late.status.code(), Some(1), "{late:?}");
    assert_has(&late.stdout, &["timed_out", "timed out       execution"]);
    let open = scene.run(&["start", "orders", "--id", "open", "--wait", "10ms", "--json"]).await;
    assert_eq!(open.status.code(), Some(1));
    assert_has(&open.stderr, &["open hasn't ended after 10ms"]);
    assert_eq!(serde_json::from_str::<Value>(&open.stdout).expect("JSON")["status"], "pending");
    for (option, field) in [("--run-timeout", "run_timeout"), ("--on-failure-timeout", "on_failure_timeout")]
    {
        let short = scene.run(&["start", "orders", option, "10ms"]).await;
        let problem = format!("error: invalid_request: {field}: expected a duration of at least 1s");
        assert_has(&short.stderr, &[&problem]);
    }
}

#[tokio::test]
async fn events_are_sent_shown_and_cleared() {
    let scene = Scene::start().await;
    scene.prints(&["start", "orders", "--id", "e"]).await;
    let offer = ["event", "e", "shipped", r#"{"by": "sea"}"#, "--event-id", "once"];
    assert_eq!(scene.prints(&offer).await, "shipped is sent: 1 event waiting for e\n");
    assert_eq!(scene.prints(&offer).await, "shipped had been sent before: 1 event waiting for e\n");
    let events = scene.prints(&["execution", "events", "e"]).await;
    assert_has(&events, &["shipped", "once", r#"{"by": "sea"}"#, "1 event waiting"]);
    let named = "Events that nobody has taken: shipped (1); `tickover execution events e` shows them.";
    assert_has(&scene.prints(&["explain", "e"]).await, &[named]);
    let gone = scene.prints(&["execution", "clear-events", "e", "shipped"]).await;
    assert_eq!(gone, "1 event named shipped thrown away\n");
    assert!(!scene.prints(&["explain", "e"]).await.contains("Events"));
    // Events that are left when it has ended are shown as well.
    for name in ["paid-10", "paid-9", "paid-10"] {
        scene.prints(&["event", "e", name]).await;
    }
    scene.prints(&["execution", "terminate", "e"]).await;
    let named = "Events that nobody has taken: paid-9 (1), paid-10 (2);";
    assert_has(&scene.prints(&["execution", "explain", "e"]).await, &[named]);
    // One call starts an execution with an event, or sends it.
    let add = |item: &'static str| ["start", "baskets", "--id", "b", "--event", item];
    assert_has(&scene.prints(&add(r#"add="a lamp""#)).await, &["b", "pending"]);
    let once = [&add(r#"add="a chair""#)[..], &["--event-id", "once"]].concat();
    for _ in 0..2 {
        scene.prints(&once).await;
        let events = scene.prints(&["execution", "events", "b"]).await;
        assert_has(&events, &["a lamp", "a chair", "once", "2 events waiting"]);
    }
    let wrong = scene.run(&add("add=a lamp")).await;
    assert_has(&wrong.stderr, &["quotes of its own"]);
    // A request without an answer yet says how to ask for it, also if the command's caller gave no id.
    let asked = scene.run(&["event", "b", "add", "--answer", "0s", "--event-id", "add-7"]).await;
    let told = "error: add has no answer yet: repeat the command with --event-id add-7";
    assert_has(&asked.stderr, &[told]);
    let asked = scene.run(&["event", "b", "add", "--answer", "0s"]).await;
    assert_has(&asked.stderr, &["repeat the command with --event-id "]);
    assert_has(&scene.prints(&["execution", "events", "b"]).await, &["add-7", "4 events waiting"]);
    scene.prints(&["execution", "clear-events", "b", "add"]).await;
    let cleared = scene.run(&["event", "b", "add", "--answer", "20s", "--event-id", "add-7"]).await;
    assert!(cleared.stderr.starts_with("error: unanswered: "), "{cleared:?}");
    let unknown = scene.run(&["event", "nobody", "shipped"]).await;
    assert!(unknown.stderr.starts_with("error: not_found: "), "{unknown:?}");
}

#[tokio::test]
async fn operators_pause_end_and_restart_executions_and_see_the_timeline() {
    let scene = Scene::start().await;
    scene.prints(&["start", "orders", "--id", "e"]).await;
    let execution = async |call: &'static str| scene.prints(&["execution", call, "e"]).await;
    assert_eq!(execution("pause").await, "e is paused\n");
    assert_eq!(execution("pause").await, "e is already paused\n");
    assert_has(&execution("explain").await, &["an operator holds it", "`tickover execution resume e`"]);
    assert_eq!(execution("resume").await, "e is pending\n");
    assert_eq!(execution("cancel").await, "e is cancelled\n");
    assert_eq!(execution("terminate").await, "e had already ended: it is cancelled\n");
    let timeline = execution("timeline").await;
    assert_has(&timeline, &["started", "paused", "resumed", "execution cancelled"]);
    assert_has(&execution("explain").await, &["somebody cancelled it", "`tickover execution restart e`"]);
    assert_has(&execution("restart").await, &["run             2", "pending"]);
    assert_has(&execution("runs").await, &["cancelled", "1 earlier run"]);
    let first = scene.prints(&["execution", "timeline", "e", "--run", "1"]).await;
    assert_has(&first, &["started", "execution cancelled"]);
    let refused = scene.run(&["execution", "export", "e", "--run", "3"]).await;
    assert!(refused.stderr.starts_with("error: invalid_request: run: "), "{refused:?}");
    assert_eq!(execution("terminate").await, "e is cancelled\n");
    assert_has(&scene.prints(&["execution", "rerun", "e"]).await, &["run             3"]);
    let unknown = scene.run(&["execution", "retry-step", "e", "label[3]"]).await;
    assert!(unknown.stderr.starts_with("error: unknown_step: "), "{unknown:?}");
    let json = scene.prints(&["execution", "timeline", "e", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON")["run"], 3);
}
