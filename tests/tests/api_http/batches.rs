//! Batches: each entry is independent, and the answers are in order.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use serde_json::{Value, json};

use crate::support::{Api, keys, names};

fn statuses(reply: &Value) -> Vec<u64> {
    reply["results"].as_array().unwrap().iter().map(|result| result["status"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_wrong_entry_of_a_batch_fails_alone_and_keeps_its_position() {
    let api = Api::start().await;
    api.schedule("old", json!({})).await;
    let reply = api
        .post(
            "/v1/tasks/batch",
            json!({"tasks": [
                {"queue": "q", "kind": "work", "id": "a", "input": 1},
                {"queue": "q", "kind": "work", "timeout": "0s"},
                {"queue": "q", "kind": "work", "id": "old"},
                {"queue": "q", "kind": "other", "id": "old"},
                17,
                {"queue": "q", "kind": "work", "id": "b"},
            ]}),
        )
        .await
        .ok(200);
    assert_eq!(statuses(&reply), [201, 400, 200, 409, 400, 201]);
    let results = reply["results"].as_array().unwrap();
    assert_eq!(keys(&results[0]), names("status task"));
    assert_eq!((&results[0]["task"]["id"], &results[0]["task"]["input"]), (&json!("a"), &json!(1)));
    assert_eq!(keys(&results[1]), names("status error"));
    assert_eq!(keys(&results[1]["error"]), names("type title status detail code field"));
    assert_eq!(results[1]["error"]["field"], "timeout");
    assert_eq!(results[3]["error"]["code"], "id_conflict");
    assert_eq!(results[4]["error"]["field"], "tasks[4]");
    assert_eq!(results[5]["task"]["id"], "b");
    let claimed = api.post("/v1/queues/q/claim", json!({"max": 10})).await.ok(200);
    assert_eq!(claimed["tasks"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn the_results_of_a_batch_are_recorded_one_by_one() {
    let api = Api::start().await;
    for id in ["a", "b"] {
        api.schedule(id, json!({})).await;
    }
    let claimed = api.post("/v1/queues/q/claim", json!({"max": 10})).await.ok(200);
    let mut entries: Vec<_> = claimed["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| json!({"id": task["id"], "lease": task["lease"], "output": {"of": task["id"]}}))
        .collect();
    entries.push(json!({"id": "absent", "lease": "x"}));
    entries.push(json!({"id": "a"}));
    let reply = api.post("/v1/tasks/complete", json!({"tasks": entries})).await.ok(200);
    assert_eq!(statuses(&reply), [200, 200, 404, 400]);
    for result in &reply["results"].as_array().unwrap()[..2] {
        assert_eq!(keys(result), names("status task"));
        assert_eq!(result["task"]["output"]["of"], result["task"]["id"]);
    }
    assert_eq!(reply["results"][3]["error"]["field"], "lease");
    let again = api.post("/v1/tasks/complete", json!({"tasks": entries[..1]})).await.ok(200);
    assert_eq!(again["results"][0]["duplicate"], true);
}

#[tokio::test]
async fn a_batch_needs_its_list() {
    let api = Api::start().await;
    for path in ["/v1/tasks/batch", "/v1/tasks/complete"] {
        for body in [json!({}), json!({"tasks": {}}), json!({"tasks": null})] {
            assert_eq!(api.post(path, body).await.problem(400, "invalid_request")["field"], "tasks");
        }
        assert_eq!(api.post(path, json!([])).await.problem(400, "invalid_request")["field"], "body");
        assert_eq!(api.post(path, json!({"tasks": []})).await.ok(200), json!({"results": []}));
    }
}
