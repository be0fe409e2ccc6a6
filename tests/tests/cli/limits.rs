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
    assert!(shown.contains("Key \"customer 7\": limit no task has asked for one lately; 0 taken"), "{shown}");
    let set = run(&["set", "customer 7", "5"]).await;
    assert!(set.contains("limit 5, set by an operator; 0 taken, 0 waiting."), "{set}");
    let shown: Value = serde_json::from_str(&run(&["show", "customer 7", "--json"]).await).expect("JSON");
    assert_eq!((&shown["limit"], &shown["pinned"]), (&json!(5), &json!(true)));
    let unset = run(&["unset", "customer 7"]).await;
    assert!(!unset.contains("operator"), "{unset}");
    run(&["release", "customer 7", "a"]).await;
    let refused = scene.run(&["limits", "set", "customer 7", "0"]).await;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
