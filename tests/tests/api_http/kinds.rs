//! The defaults of kinds of tasks, and tasks that require a capability, over HTTP.

use reqwest::Method;
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_service::ports::Clock as _;

use crate::support::{Api, Reply, send};

/// The time after which every process knows of a change.
const KNOWN_AFTER_MS: u64 = 5_000;

impl Api {
    async fn set(&self, kind: &str, defaults: Value) -> Reply {
        let request = self.request(Method::PUT, &format!("/v1/queues/q/kinds/{kind}"));
        send(request.header("content-type", "application/json").body(defaults.to_string())).await
    }

    async fn claim_with(&self, queue: &str, provides: Value) -> Vec<Value> {
        let claim = json!({"max": 10, "provides": provides});
        let reply = self.post(&format!("/v1/queues/{queue}/claim"), claim).await.ok(200);
        reply["tasks"].as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn the_defaults_of_a_kind_fill_in_what_a_task_leaves_open() {
    let api = Api::start().await;
    let before = api.schedule("before", json!({})).await;
    let defaults = json!({"retry": "fixed(3, 2s)", "timeout": "1h", "requires": ["gpu"]});
    let set = api.set("work", defaults.clone()).await.ok(200);
    assert_eq!(set["kind"]["defaults"]["timeout"], "1h");
    let plain = api.schedule("plain", json!({})).await;
    assert_eq!((&before["max_attempts"], &plain["max_attempts"]), (&json!(1), &json!(4)));
    assert!(before.get("deadline_at").is_none() && plain["deadline_at"].is_string());
    assert_eq!(plain["next"]["unprovided"], json!(["gpu"]));
    // The single task's own options go before the defaults, also those that ask for nothing.
    let own = json!({"retry": "none", "timeout": "5m", "requires": []});
    let own = api.schedule("own", own).await;
    assert_eq!(own["max_attempts"], 1);
    assert!(own["deadline_at"].as_str().unwrap() < plain["deadline_at"].as_str().unwrap());
    assert!(own["next"].get("unprovided").is_none());
    let listed = api.get("/v1/queues/q/kinds").await.ok(200);
    assert_eq!((listed["kinds"].as_array().unwrap().len(), &listed["kinds"][0]["kind"]), (1, &json!("work")));
    assert_eq!(api.get("/v1/queues/q/kinds/work").await.ok(200), set);
}

#[tokio::test]
async fn steeps_policies_are_defaults_of_a_kind_and_a_single_task_overrides_each_of_them() {
    let api = Api::start().await;
    let defaults = json!({
        "maxInactivity": "10s", "maxRuntime": "1m", "deadline": "5m", "retries": {"maxAttempts": 3},
    });
    api.set("work", defaults).await.ok(200);
    let after = |seconds| json!(api.scene.clock.now().plus(Millis::from_secs(seconds)).to_rfc3339());
    // Expected: the times of inactivity, of an attempt and of the whole task, in seconds, and the attempts.
    for (id, own, expected) in [
        ("none", json!({}), (10, 60, 300, 3)),
        ("inactivity", json!({"maxInactivity": "20s"}), (20, 60, 300, 3)),
        ("runtime", json!({"maxRuntime": "2m"}), (10, 120, 300, 3)),
        ("deadline", json!({"deadline": "10m"}), (10, 60, 600, 3)),
        ("retries", json!({"retries": {"maxAttempts": 7}}), (10, 60, 300, 7)),
    ] {
        api.schedule(id, own).await;
        api.post(&format!("/v1/tasks/{id}/claim"), json!({"worker": "w1"})).await.ok(200);
        let task = api.task(id).await;
        let (inactivity, runtime, deadline, attempts) = expected;
        let found =
            ["heartbeat_at", "start_to_close_at", "deadline_at", "max_attempts"].map(|name| &task[name]);
        let expected = [after(inactivity), after(runtime), after(deadline), json!(attempts)];
        assert_eq!(found, expected.each_ref(), "{id}");
    }
    // Whether a timeout is an error is part of the policy.
    for (id, own, status) in [
        ("cancels", json!({"deadline": "5s"}), "cancelled"),
        ("is-an-error", json!({"deadline": {"timeout": "5s", "errorOnTimeout": true}}), "timed_out"),
    ] {
        api.schedule(id, own).await;
        api.advance(5_000);
        api.scene.tick().await.unwrap();
        assert_eq!(api.task(id).await["status"], status, "{id}");
    }
}

#[tokio::test]
async fn a_change_of_defaults_counts_for_what_is_scheduled_afterwards_and_repetitions_stay_the_same() {
    let api = Api::start().await;
    api.set("work", json!({"retry": "fixed(3, 2s)"})).await.ok(200);
    api.schedule("a", json!({})).await;
    api.set("work", json!({"retry": "fixed(1, 2s)"})).await.ok(200);
    let body = || json!({"queue": "q", "kind": "work", "id": "a"});
    let again = api.post("/v1/tasks", body()).await.ok(200);
    assert_eq!(again["task"]["max_attempts"], 4);
    assert_eq!(api.schedule("b", json!({})).await["max_attempts"], 2);
    for _ in 0..2 {
        let deleted = send(api.request(Method::DELETE, "/v1/queues/q/kinds/work")).await.ok(200);
        assert_eq!(deleted["deleted"], true);
    }
    api.get("/v1/queues/q/kinds/work").await.problem(404, "not_found");
    assert_eq!(api.schedule("c", json!({})).await["max_attempts"], 1);
    api.post("/v1/tasks", body()).await.ok(200);
}

#[tokio::test]
async fn defaults_are_read_like_a_task_and_bounded_together() {
    let api = Api::start().await;
    for (defaults, code, field) in [
        (json!({"timeout": "0s"}), "invalid_request", "timeout"),
        (json!({"retry": "fixed(x)"}), "invalid_request", "retry"),
        (json!({"requires": ["a gpu"]}), "invalid_request", "requires[0]"),
        (json!({"input": 1}), "invalid_request", "input"),
        (json!({"unique": {"key": "a"}}), "invalid_request", "unique"),
        (json!({"timeout": "1m", "deadline": "1m"}), "invalid_request", "deadline"),
    ] {
        let status = 400;
        let refused = api.set("work", defaults.clone()).await.problem(status, code);
        assert_eq!(refused["field"], field, "{defaults}: {refused}");
    }
    let mut refused = None;
    for number in 0..100 {
        let set = api.set(&format!("kind-{number}"), json!({"retry": "exponential(5, 1s)"})).await;
        if set.status != 200 {
            refused = Some(set);
            break;
        }
    }
    let refused = refused.expect("a bound").body;
    assert_eq!((&refused["code"], &refused["limit"]), (&json!("limit_exceeded"), &json!("kinds_bytes")));
}

#[tokio::test]
async fn a_task_goes_to_the_queue_whose_workers_provide_what_it_requires() {
    let api = Api::start().await;
    let needs = |id: &str| json!({"kind": "render", "id": id, "requires": ["gpu"]});
    let early = api.post("/v1/tasks", needs("early")).await.ok(201)["task"].clone();
    assert_eq!((&early["queue"], &early["next"]["unprovided"]), (&json!("workflows"), &json!(["gpu"])));
    api.post("/v1/tasks", json!({"kind": "render"})).await.problem(400, "invalid_request");
    // A worker says what it provides when it claims.
    api.schedule("opens-the-queue", json!({})).await;
    assert_eq!(api.claim_with("q", json!(["gpu", "avx"])).await.len(), 1);
    api.advance(KNOWN_AFTER_MS);
    assert_eq!(api.get("/v1/queues/q").await.ok(200)["queue"]["provides"], json!(["avx", "gpu"]));
    let routed = api.post("/v1/tasks", needs("routed")).await.ok(201)["task"].clone();
    assert_eq!((&routed["queue"], routed["next"].get("unprovided")), (&json!("q"), None));
    // The repeated request finds the task where it is.
    let again = api.post("/v1/tasks", needs("early")).await.ok(200)["task"].clone();
    assert_eq!(again["queue"], "workflows");
    let named = json!({"queue": "other", "kind": "render", "requires": ["gpu"]});
    let named = api.post("/v1/tasks", named).await.ok(201)["task"].clone();
    assert_eq!((&named["queue"], &named["next"]["unprovided"]), (&json!("other"), &json!(["gpu"])));
}

#[tokio::test]
async fn a_worker_gets_only_tasks_whose_requirements_it_fulfils() {
    let api = Api::start().await;
    api.schedule("heavy", json!({"requires": ["gpu"]})).await;
    for provides in [json!([]), json!(["avx"])] {
        assert_eq!(api.claim_with("q", provides).await, Vec::<Value>::new());
        // It is visible again soon.
        api.advance(60_000);
    }
    let claimed = api.claim_with("q", json!(["avx", "gpu"])).await;
    assert_eq!(claimed[0]["id"], "heavy");
}
