//! Lists of tasks: filters and pages.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Api, keys, names};

fn ids(reply: &Value) -> Vec<String> {
    reply["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

/// Three pending tasks, a running one, and one with each outcome.
async fn some_of_each() -> Api {
    let api = Api::start().await;
    let failed = api.running("failed", json!({})).await;
    api.post("/v1/tasks/failed/fail", json!({"lease": failed, "error": {"code": "x"}})).await.ok(200);
    api.running("timed-out", json!({"timeout": "1s"})).await;
    api.advance(1_000);
    api.scene.tick().await.unwrap();
    let completed = api.running("completed", json!({})).await;
    api.post("/v1/tasks/completed/complete", json!({"lease": completed})).await.ok(200);
    api.running("running", json!({"timeout": "1h"})).await;
    for id in ["w1", "w2", "w3"] {
        api.schedule(id, json!({"input": {"n": 1}})).await;
    }
    let elsewhere = json!({"queue": "elsewhere", "kind": "k", "id": "e"});
    api.post("/v1/tasks", elsewhere).await.ok(201);
    api
}

async fn listed(api: &Api, query: &str) -> BTreeSet<String> {
    ids(&api.get(&format!("/v1/tasks?{query}")).await.ok(200)).into_iter().collect()
}

#[tokio::test]
async fn a_list_is_filtered_by_queue_and_status() {
    let api = some_of_each().await;
    let owned = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
    for (query, expected) in [
        ("status=pending", "w1 w2 w3 e"),
        ("status=pending&queue=q", "w1 w2 w3"),
        ("status=pending,running&queue=q", "w1 w2 w3 running"),
        ("status=pending&status=running&queue=q", "w1 w2 w3 running"),
        ("status=failed", "failed"),
        ("status=timed_out", "timed-out"),
        ("status=failed&include_timed_out=true", "failed timed-out"),
        ("status=failed&include_timed_out=false", "failed"),
        ("status=completed", "completed"),
        ("status=cancelled", ""),
        ("queue=elsewhere", "e"),
        ("queue=nowhere", ""),
        ("", "w1 w2 w3 running failed timed-out completed e"),
    ] {
        assert_eq!(listed(&api, query).await, owned(expected), "{query}");
    }
    let waiting = api.get("/v1/tasks?status=pending&queue=q").await.ok(200);
    assert_eq!(keys(&waiting), names("tasks"));
    assert_eq!(waiting["tasks"][0]["input"], json!({"n": 1}));
}

#[tokio::test]
async fn pages_have_each_task_once_and_the_last_has_no_cursor() {
    let api = Api::start().await;
    let tasks: Vec<_> = (0..23).map(|n| json!({"queue": "q", "kind": "k", "id": format!("t{n}")})).collect();
    api.post("/v1/tasks/batch", json!({"tasks": tasks})).await.ok(200);
    for filter in ["", "&status=pending"] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = api.get(&format!("/v1/tasks?limit=5{filter}{cursor}")).await.ok(200);
            let found = ids(&page);
            assert!(found.len() <= 5, "{page}");
            seen.extend(found);
            match page.get("cursor").map(|cursor| cursor.as_str().unwrap()) {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let distinct: BTreeSet<_> = seen.iter().collect();
        assert_eq!((seen.len(), distinct.len()), (23, 23), "{filter}");
    }
    assert_eq!(ids(&api.get("/v1/tasks?limit=500").await.ok(200)).len(), 23);
}

#[tokio::test]
async fn a_wrong_query_names_its_parameter() {
    let api = Api::start().await;
    for (query, parameter) in [
        ("state=pending", "state"),
        ("status=done", "status"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=-1", "limit"),
        ("queue=a%20b", "queue"),
        ("cursor=nonsense!", "cursor"),
        ("limit=1&limit=2", "limit"),
        ("include_timed_out=maybe", "include_timed_out"),
    ] {
        let problem = api.get(&format!("/v1/tasks?{query}")).await.problem(400, "invalid_request");
        assert_eq!(problem["field"], parameter, "{query}");
    }
}
