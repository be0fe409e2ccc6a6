//! Defaults of kinds, and workers that provide something.

use serde_json::{Value, json};
use tickover_tests::process::Ended;

use crate::scene::Scene;

impl Scene {
    async fn kind(&self, args: &[&str]) -> Ended {
        self.run(&[&["kind"], args].concat()).await
    }

    async fn kind_text(&self, args: &[&str]) -> String {
        let ended = self.kind(args).await;
        assert!(ended.status.success(), "{args:?}: {ended:?}");
        ended.stdout
    }

    /// How many attempts a task of the kind `send` gets.
    async fn attempts(&self) -> Value {
        let id = self.schedule(&json!({"queue": "mail", "kind": "send"})).await;
        self.task(&id).await["max_attempts"].clone()
    }
}

#[tokio::test]
async fn the_defaults_of_a_kind_are_set_shown_listed_and_deleted_and_read_from_a_file() {
    let scene = Scene::start().await;
    assert_eq!(scene.attempts().await, 1);
    let set =
        scene.kind_text(&["set", "mail", "send", r#"{"retry": "fixed(3, 2s)", "timeout": "1h"}"#]).await;
    assert_eq!(set, "send of mail: {\"timeout\":\"1h\",\"retry\":\"fixed(3, 2s)\"} (set by local)\n");
    assert_eq!(scene.kind_text(&["show", "mail", "send"]).await, set);
    assert_eq!(scene.attempts().await, 4);
    let file = scene.write("kind.json", "{\"retry\": \"fixed(1, 2s)\"}\n");
    scene.kind_text(&["set", "mail", "send", "--file", &file]).await;
    scene.kind_text(&["set", "mail", "digest", r#"{"priority": "low"}"#]).await;
    let listed = scene.kind_text(&["list", "mail"]).await;
    assert_eq!(
        listed,
        "digest of mail: {\"priority\":\"low\"} (set by local)\nsend of mail: {\"retry\":\"fixed(1, 2s)\"} (set by local)\n"
    );
    assert_eq!(scene.attempts().await, 2);
    let one: Value =
        serde_json::from_str(&scene.kind_text(&["show", "mail", "send", "--json"]).await).expect("JSON");
    assert_eq!((&one["queue"], &one["defaults"]["retry"]), (&json!("mail"), &json!("fixed(1, 2s)")));
    for _ in 0..2 {
        assert_eq!(scene.kind_text(&["delete", "mail", "send"]).await, "send of mail has no defaults\n");
    }
    assert_eq!(scene.attempts().await, 1);
    let unknown = scene.kind(&["show", "mail", "send"]).await;
    assert!(!unknown.status.success() && unknown.stderr.contains("not_found"), "{unknown:?}");
}

#[tokio::test]
async fn wrong_defaults_of_a_kind_are_refused_by_the_field_or_the_file_and_change_nothing() {
    let scene = Scene::start().await;
    let (not_json, missing) =
        (scene.write("wrong.json", "retry: 3"), scene.write("gone.json", "{}") + "-gone");
    let long = "k".repeat(300);
    for (args, expected) in [
        (vec!["mail", "send", r#"{"timeout": "0s"}"#], "timeout"),
        (vec!["mail", "send", r#"{"retry": "fixed(x)"}"#], "retry"),
        (vec!["mail", "send", r#"{"input": 1}"#], "input"),
        (vec!["mail", "send", r#"{"requires": ["a gpu"]}"#], "requires[0]"),
        (vec!["mail", "send", "{"], "the defaults"),
        (vec!["mail", "send"], "DEFAULTS"),
        (vec!["mail", "send", "{}", "--file", &not_json], "--file"),
        (vec!["mail", "send", "--file", &not_json], "wrong.json isn't JSON"),
        (vec!["mail", "send", "--file", &missing], "gone.json-gone"),
        (vec!["mail", &long, "{}"], "KIND"),
        (vec!["a queue", "send", "{}"], "QUEUE"),
    ] {
        let ended = scene.kind(&[&["set"], args.as_slice()].concat()).await;
        assert!(!ended.status.success() && ended.stderr.contains(expected), "{args:?}: {ended:?}");
    }
    assert_eq!(scene.attempts().await, 1);
    assert_eq!(scene.kind_text(&["list", "mail"]).await, "");
}

#[tokio::test]
async fn a_worker_of_the_tool_gets_only_tasks_whose_requirements_it_provides() {
    let scene = Scene::start().await;
    let worker = scene.worker(&["--provides", "gpu", "--provides", "avx"], "echo 1");
    let needs = |name: &str| json!({"queue": "work", "kind": "render", "requires": [name]});
    let other = scene.schedule(&needs("tpu")).await;
    let own = scene.schedule(&needs("gpu")).await;
    scene.until_status(&own, "completed").await;
    // It names no queue: the one whose workers provide it is found.
    let routed = scene.schedule(&json!({"kind": "render", "requires": ["avx"]})).await;
    assert_eq!(scene.until_status(&routed, "completed").await["queue"], "work");
    let waiting = scene.task(&other).await;
    assert_eq!((&waiting["status"], &waiting["next"]["unprovided"]), (&json!("pending"), &json!(["tpu"])));
    drop(worker);
    let refused = scene.run(&["work", "work", "--provides", "a gpu", "--", "true"]).await;
    assert!(refused.status.code() == Some(2) && refused.stderr.contains("--provides"), "{refused:?}");
}
