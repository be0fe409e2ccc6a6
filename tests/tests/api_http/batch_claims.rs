//! Claims of tasks that belong together, over HTTP.

use serde_json::{Value, json};

use crate::bad_input::refused;
use crate::support::Api;

impl Api {
    async fn schedule_keyed(&self, id: &str, kind: &str, key: Option<&str>) {
        let body = json!({"queue": "q", "kind": kind, "id": id, "fairness_key": key});
        self.post("/v1/tasks", body).await.ok(201);
    }

    /// The ids of the tasks that a claim returns, sorted.
    async fn claim_ids(&self, body: Value) -> Vec<String> {
        let reply = self.post("/v1/queues/q/claim", body).await.ok(200);
        let ids =
            reply["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned());
        let mut ids: Vec<_> = ids.collect();
        ids.sort_unstable();
        ids
    }
}

#[tokio::test]
async fn a_claim_with_same_key_returns_tasks_of_one_kind_and_key_and_leaves_the_others_to_the_next() {
    let api = Api::start().await;
    for (id, kind, key) in [
        ("a1", "mail", Some("a")),
        ("b1", "mail", Some("b")),
        ("a2", "mail", Some("a")),
        ("t1", "text", Some("a")),
        ("n1", "mail", None),
        ("n2", "mail", None),
    ] {
        api.schedule_keyed(id, kind, key).await;
    }
    let mut batches = vec![];
    for _ in 0..4 {
        batches.push(api.claim_ids(json!({"max": 10, "same_key": true})).await);
    }
    batches.sort();
    assert_eq!(batches, [vec!["a1", "a2"], vec!["b1"], vec!["n1", "n2"], vec!["t1"]]);
    // None of them was claimed before its own batch, and no time has passed.
    for id in ["b1", "t1", "n1"] {
        let task = api.task(id).await;
        assert_eq!(
            (&task["attempt"], &task["attempts"][0]["claimed_at"]),
            (&json!(1), &json!("2026-01-01T00:00:00.000Z"))
        );
    }
}

#[tokio::test]
async fn a_full_claim_returns_at_once_and_another_one_when_its_time_to_fill_is_over() {
    let api = Api::start().await;
    for id in ["1", "2", "3"] {
        api.schedule_keyed(id, "mail", None).await;
    }
    let body = json!({"max": 2, "same_key": true, "fill": "5s"});
    let full = api.post("/v1/queues/q/claim", body.clone()).await.ok(200);
    assert_eq!(full["tasks"].as_array().unwrap().len(), 2);
    assert_eq!(full["tasks"][0]["lease_expires_at"], "2026-01-01T00:01:00.000Z");
    let partial = api.post("/v1/queues/q/claim", body).await.ok(200);
    assert_eq!(partial["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(partial["tasks"][0]["lease_expires_at"], "2026-01-01T00:01:05.000Z");
}

#[tokio::test]
async fn wrong_options_of_a_claim_are_named() {
    let api = Api::start().await;
    api.schedule_keyed("one", "mail", None).await;
    refused(
        &api,
        "/v1/queues/q/claim",
        &[
            (json!({"max": 0, "same_key": true}), "max", "from 1 to 10"),
            (json!({"max": 1001, "same_key": true}), "max", "from 1 to 10"),
            (json!({"max": -1, "same_key": true}), "max", "from 1 to 10"),
            (json!({"same_key": "yes"}), "same_key", "true or false"),
            (json!({"fill": "21s"}), "fill", "20s"),
            (json!({"fill": -1}), "fill", "expected a duration"),
            (json!({"fill": "6s", "lease": "10s"}), "fill", "half of the lease, 5s, not 6s"),
            (json!({"fill": "6s", "wait": "20s"}), "fill", "at most 25s together with `wait`, 20s, not 6s"),
        ],
    )
    .await;
    let ids = api.claim_ids(json!({"fill": "5s", "wait": "20s", "lease": "10s"})).await;
    assert_eq!(ids, ["one"]);
}
