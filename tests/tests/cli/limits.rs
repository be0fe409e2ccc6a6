//! Concurrency limits by key.

use serde_json::{Value, json};

use crate::scene::Scene;

#[tokio::test]
async fn a_limit_is_shown_set_unset_and_a_place_released() {
    let scene = Scene::start().await;
    for id in ["a", "b"] {
        let concurrency = json!([{"key": "customer 7", "limit": 1}]);
        scene.schedule(&json!({"queue": "q", "kind": "k", "id": id, "concurrency": concurrency})).await;
    }
    let run = async |args: &[&str]| {
        let ended = scene.run(&[&["limits"], args].concat()).await;
        assert!(ended.status.success(), "{args:?}: {ended:?}");
        ended.stdout
    };
    let shown = run(&["show", "customer 7"]).await;
    assert!(shown.contains("Key \"customer 7\": limit nothing has asked for one lately; 0 taken"), "{shown}");
    let set = run(&["set", "customer 7", "5"]).await;
    assert!(set.contains("limit 5, set by local; 0 taken, 0 waiting."), "{set}");
    let shown: Value = serde_json::from_str(&run(&["show", "customer 7", "--json"]).await).expect("JSON");
    assert_eq!((&shown["limit"], &shown["pinned"]), (&json!(5), &json!(true)));
    let unset = run(&["unset", "customer 7"]).await;
    assert!(!unset.contains("set by"), "{unset}");
    run(&["release", "customer 7", "a"]).await;
    let refused = scene.run(&["limits", "set", "customer 7", "0"]).await;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[tokio::test]
async fn an_execution_is_started_with_limits_and_explained_while_they_hold_it_back() {
    let scene = Scene::start().await;
    let limits = ["--concurrency", "customer 7=1", "--rate", "api=1/1m", "--burst", "1"];
    for id in ["first", "second"] {
        scene.prints(&[&["start", "orders", "--id", id][..], &limits].concat()).await;
    }
    let explained = scene.prints(&["explain", "second"]).await;
    assert!(explained.contains("by the rate of the key \"api\", it can't start before"), "{explained}");
    let shown = scene.prints(&["limits", "show", "api"]).await;
    assert!(shown.contains("1 starts in 1m, 1 at once"), "{shown}");
    let unique = ["start", "orders", "--unique", "sync 7", "--unique-for", "open"];
    scene.prints(&[&unique[..], &["--id", "only"]].concat()).await;
    let other = scene.prints(&unique).await;
    assert!(other.contains("only"), "{other}");
    let burst = ["--debounce", "index 9", "--debounce-wait", "1h", "--debounce-at-most", "2h", "--json"];
    let mut ids = vec![];
    for input in ["1", "2"] {
        let started = scene.prints(&[&["start", "orders", "--input", input][..], &burst].concat()).await;
        let started: Value = serde_json::from_str(&started).expect("JSON");
        assert_eq!(started["input"].to_string(), input);
        ids.push(started["id"].clone());
    }
    assert_eq!(ids[0], ids[1]);
    let released = scene.prints(&["limits", "release", "customer 7", "@first"]).await;
    assert!(released.contains("0 taken"), "{released}");
    for wrong in [["--concurrency", "customer 7=0"], ["--rate", "api=0/1m"], ["--rate", "api"]] {
        let refused = scene.run(&[&["start", "orders"][..], &wrong].concat()).await;
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    let refused = scene.run(&["limits", "release", "customer 7", "@@first"]).await;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
