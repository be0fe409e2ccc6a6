//! Lists of tasks: filters and pages.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tickover_sqlite::SqliteStore;
use tickover_tests::scene::Scene;

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

/// The ids of a list, page by page. Between the pages, `meanwhile` happens.
async fn walked(api: &Api, filter: &str, mut meanwhile: impl AsyncFnMut()) -> Vec<String> {
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("/v1/tasks?limit=2{filter}{cursor}")).await.ok(200);
        seen.extend(ids(&page));
        let Some(next) = page.get("cursor") else { return seen };
        cursor = format!("&cursor={}", next.as_str().unwrap());
        meanwhile().await;
    }
}

/// In memory without an index, and in `SQLite`, with one.
#[tokio::test]
async fn a_walk_over_tasks_that_are_retried_meanwhile_finds_each_once() {
    for (scene, sorted) in
        [(Scene::in_memory(), false), (Scene::over(Arc::new(SqliteStore::memory().unwrap())), true)]
    {
        let api = Api::over(scene).await;
        for n in 1..=6 {
            let lease = api.running(&format!("t{n}"), json!({})).await;
            let error = json!({"lease": lease, "error": {"code": "x"}});
            api.post(&format!("/v1/tasks/t{n}/fail"), error).await.ok(200);
            api.advance(10);
        }
        let latest_first: Vec<_> = (1..=6).rev().map(|n| format!("t{n}")).collect();
        for filter in ["", "&status=failed,pending", "&status=failed,pending&queue=q"] {
            let mut seen = walked(&api, filter, async || {
                for id in &latest_first {
                    let (status, path) = (&api.task(id).await["status"], format!("/v1/tasks/{id}"));
                    if status == "failed" {
                        api.post(&format!("{path}/retry"), json!({})).await.ok(200);
                    } else {
                        api.post(&format!("{path}/cancel"), json!({})).await.ok(200);
                        api.post(&format!("{path}/retry"), json!({})).await.ok(200);
                    }
                }
            })
            .await;
            if !sorted {
                seen.sort_by(|one, other| other.cmp(one));
            }
            assert_eq!(seen, latest_first, "{filter}");
        }
    }
}

#[tokio::test]
async fn a_cursor_continues_its_own_question_only() {
    let api = some_of_each().await;
    for path in ["/v1/tasks?limit=1", "/v1/tasks?limit=1&status=pending"] {
        let cursor = api.get(path).await.ok(200)["cursor"].as_str().unwrap().to_owned();
        api.get(&format!("{path}&cursor={cursor}")).await.ok(200);
        for other in ["&queue=q", "&kind=work", "&error=x", "&created_from=2020-01-01T00:00:00.000Z"] {
            let refused = api.get(&format!("{path}{other}&cursor={cursor}")).await;
            assert_eq!(refused.problem(400, "invalid_request")["field"], "cursor", "{path}{other}");
        }
    }
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
