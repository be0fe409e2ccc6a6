//! What an operator asks first: what is stuck, who works, how the day was.

use serde_json::{Value, json};

use crate::scene::Scene;

#[tokio::test]
async fn stuck_ones_queues_without_workers_and_the_day_are_shown() {
    let scene = Scene::start().await;
    for id in ["goes-on", "paused"] {
        scene.prints(&["start", "orders", "--id", id]).await;
    }
    scene.prints(&["execution", "pause", "paused"]).await;
    let stuck = scene.prints(&["execution", "list", "--stuck"]).await;
    assert!(stuck.contains("paused") && !stuck.contains("goes-on"), "{stuck}");
    let begins = scene.prints(&["execution", "list", "--id-prefix", "goes"]).await;
    assert!(begins.contains("goes-on") && !begins.contains("paused"), "{begins}");

    scene.schedule(&json!({"queue": "work", "kind": "k", "id": "t", "requires": ["gpu"]})).await;
    let held = scene.prints(&["list", "--stuck", "--json"]).await;
    let held: Value = serde_json::from_str(held.trim()).expect("one task");
    assert_eq!(held["id"], "t");
    let none = scene.prints(&["workers", "list"]).await;
    assert!(none.contains("NONE: its work waits"), "{none}");
    let options = ["--worker", "ada", "--code-version", "1.2", "--max-tasks", "1", "--provides", "gpu"];
    let ended = scene.worker(&options, "true").ended().await.expect("an end");
    assert!(ended.status.success(), "{ended:?}");
    let lines = scene.prints(&["workers", "list", "--json"]).await;
    let queues: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let work = queues.iter().find(|queue| queue["queue"] == "work").expect("the queue");
    assert_eq!((&work["workers"][0]["name"], &work["workers"][0]["version"]), (&json!("ada"), &json!("1.2")));
    assert!(
        scene
            .prints(&["list", "--status", "completed", "--ended-from", "2020-01-01T00:00:00Z"])
            .await
            .contains('k')
    );

    let first = scene.prints(&["overview"]).await;
    assert!(first.contains("2 are open") && first.contains("0 tasks, 1 executions"), "{first}");
    assert!(first.contains("work"), "{first}");
    let first: Value = serde_json::from_str(&scene.prints(&["overview", "--json"]).await).expect("JSON");
    assert_eq!(first["executions"]["stuck"]["count"], 1);

    scene.schedule(&json!({"queue": "work", "kind": "k", "id": "lost", "timeout": "1ms"})).await;
    let lost = async || {
        let found = scene.prints(&["failures", "--json"]).await;
        serde_json::from_str::<Value>(&found).expect("JSON")
    };
    // Its deadline passes while nobody asks for it.
    scene.until_status("lost", "timed_out").await;
    let failed = lost().await;
    assert_eq!((&failed["failed"]["count"], &failed["groups"][0]["kind"]), (&json!(1), &json!("k")));
    let shown = scene.prints(&["failures", "--ended-from", "2020-01-01T00:00:00Z"]).await;
    assert!(shown.contains("task k"), "{shown}");
    let none = scene.prints(&["failures", "--ended-before", "2020-01-01T00:00:00Z"]).await;
    assert!(!none.contains("task k"), "{none}");

    let day = scene.prints(&["history"]).await;
    assert!(day.contains("completed"), "{day}");
    let wrong = scene.run(&["list", "--ended-from", "yesterday"]).await;
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}
