//! The `tickover cron` commands.

use serde_json::Value;

use crate::scene::Scene;

#[tokio::test]
async fn a_cron_is_created_shown_operated_and_deleted() {
    let scene = Scene::start().await;
    let cron = async |args: &[&str]| scene.run(&[&["cron"], args].concat()).await;
    let task = r#"{"queue": "mail", "kind": "report", "input": {"n": 1.50}}"#;
    let options = ["--cron", "0 9 * * MON-FRI", "--time-zone", "Europe/Berlin", "--overlap", "buffer_one"];
    let made =
        cron(&[&["create", "--id", "s1", "--task", task, "--max-runs", "5"], &options[..]].concat()).await;
    assert!(made.status.success(), "{made:?}");
    for part in ["s1", "active", "0 9 * * MON-FRI (Europe/Berlin)", "buffer_one", "0 of 5", task] {
        assert!(made.stdout.contains(part), "{part} in {}", made.stdout);
    }
    let triggered = cron(&["trigger", "s1"]).await.stdout;
    let run = triggered.trim().strip_prefix("s1 started ").expect("a run").to_owned();
    assert_eq!(scene.task(&run).await["queue"], "mail");
    let shown = cron(&["show", "s1"]).await.stdout;
    assert!(shown.contains(&run) && shown.contains("(triggered)") && shown.contains("pending"), "{shown}");
    let json: Value = serde_json::from_str(&cron(&["show", "s1", "--json"]).await.stdout).expect("JSON");
    assert_eq!((&json["status"], &json["runs"][0]["id"]), (&"active".into(), &run.into()));
    assert_eq!(cron(&["pause", "s1"]).await.stdout, "s1 is paused\n");
    let resumed = cron(&["resume", "s1"]).await.stdout;
    assert!(resumed.starts_with("s1 is active; next at "), "{resumed}");
    let list = cron(&["list"]).await.stdout;
    assert!(list.contains("s1") && list.contains("1 cron shown"), "{list}");
    assert_eq!(cron(&["delete", "s1"]).await.stdout, "s1 is deleted\n");
    assert!(cron(&["list"]).await.stdout.contains("0 crons shown"));
}

#[tokio::test]
async fn a_cron_is_replaced_only_on_request_and_wrong_ones_are_refused() {
    let scene = Scene::start().await;
    let create = async |args: &[&str]| {
        let task = ["--task", r#"{"queue": "mail", "kind": "report"}"#];
        scene.run(&[&["cron", "create", "--id", "s"], args, &task[..]].concat()).await
    };
    assert!(create(&["--every", "1h"]).await.status.success());
    let refused = create(&["--every", "2h"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.starts_with("error: id_conflict: "), "{}", refused.stderr);
    assert!(create(&["--every", "2h", "--replace"]).await.stdout.contains("every 2h"));
    let wrong = create(&["--cron", "61 * * * *"]).await;
    assert!(wrong.stderr.starts_with("error: invalid_request: cron"), "{}", wrong.stderr);
    assert_eq!(create(&[]).await.status.code(), Some(2), "neither cron nor every");
    let missing = scene.run(&["cron", "show", "nobody"]).await;
    assert!(missing.stderr.starts_with("error: not_found: there is no cron"), "{}", missing.stderr);
}
