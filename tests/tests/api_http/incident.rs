//! What an operator asks first: what is stuck, what has failed since when, who works, and how the day was.

use std::sync::Arc;

use serde_json::{Value, json};
use tickover_core::id::{QueueName, WorkflowName};
use tickover_core::limits::Limits;
use tickover_service::memory::{MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::Store;
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};
use tickover_sqlite::SqliteStore;
use tickover_tests::scene::Scene;

use crate::support::Api;

async fn ids(api: &Api, what: &str, query: &str) -> String {
    let mut found: Vec<String> = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api.get(&format!("/v1/{what}?{query}{cursor}")).await.ok(200);
        found.extend(page[what].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    found.sort();
    found.join(" ")
}

fn stores() -> [Arc<dyn Store>; 2] {
    [Arc::new(MemoryStore::default()), Arc::new(SqliteStore::memory().unwrap())]
}

/// Without an index of tasks, and with one.
async fn both(test: impl AsyncFn(Api)) {
    for store in stores() {
        test(Api::over(Scene::over(store)).await).await;
    }
}

async fn fail(api: &Api, id: &str) {
    let lease = api.running(id, json!({})).await;
    let error = json!({"lease": lease, "error": {"code": "x"}});
    api.post(&format!("/v1/tasks/{id}/fail"), error).await.ok(200);
}

#[tokio::test]
async fn lists_are_filtered_by_when_records_ended_and_by_how_their_ids_begin() {
    both(async |api| {
        fail(&api, "old-1").await;
        api.advance(1_000);
        fail(&api, "new-1").await;
        let lease = api.running("new-2", json!({})).await;
        api.post("/v1/tasks/new-2/complete", json!({"lease": lease})).await.ok(200);
        api.schedule("open", json!({})).await;
        let second = "2026-01-01T00:00:01.000Z";
        for (query, expected) in [
            (format!("ended_from={second}"), "new-1 new-2"),
            (format!("ended_before={second}"), "old-1"),
            (format!("ended_from={second}&status=failed"), "new-1"),
            (format!("ended_from={second}&status=pending"), ""),
            (format!("ended_from={second}&ended_before={second}"), ""),
            ("id_prefix=new-".to_owned(), "new-1 new-2"),
            ("id_prefix=new-2".to_owned(), "new-2"),
            ("id_prefix=ew".to_owned(), ""),
            ("id_prefix=o&limit=1".to_owned(), "old-1 open"),
        ] {
            assert_eq!(ids(&api, "tasks", &query).await, expected, "{query}");
        }
        for id in ["a-1", "a-2", "b-1"] {
            api.post("/v1/executions", json!({"workflow": "w", "id": id})).await.ok(201);
        }
        api.post("/v1/executions/a-1/terminate", json!({})).await.ok(200);
        api.advance(1_000);
        api.post("/v1/executions/b-1/terminate", json!({})).await.ok(200);
        let later = "2026-01-01T00:00:02.000Z";
        for (query, expected) in [
            (format!("ended_before={later}"), "a-1"),
            (format!("ended_from={later}"), "b-1"),
            ("id_prefix=a-".to_owned(), "a-1 a-2"),
        ] {
            assert_eq!(ids(&api, "executions", &format!("workflow=w&{query}")).await, expected, "{query}");
        }
        let wrong = api.get("/v1/tasks?ended_from=yesterday").await.problem(400, "invalid_request");
        assert_eq!(wrong["field"], "ended_from");
        // An operation works on the same.
        let selection = json!({"ended_from": second, "error": "x"});
        let asked = json!({"action": "retry", "tasks": selection, "dry_run": true});
        let operation = api.post("/v1/operations", asked).await.ok(201)["operation"].clone();
        assert_eq!(operation["tasks"], selection_with_statuses());
    })
    .await;
}

fn selection_with_statuses() -> Value {
    json!({"ended_from": "2026-01-01T00:00:01.000Z", "error": "x", "status": ["failed", "timed_out"]})
}

#[tokio::test]
async fn what_is_stuck_is_what_goes_on_only_if_somebody_acts() {
    both(async |api| {
        for id in ["goes-on", "paused"] {
            api.post("/v1/executions", json!({"workflow": "w", "id": id})).await.ok(201);
        }
        api.post("/v1/executions/paused/pause", json!({})).await.ok(200);
        assert_eq!(ids(&api, "executions", "workflow=w&stuck=true").await, "paused");
        assert_eq!(ids(&api, "executions", "workflow=w&stuck=false").await, "goes-on paused");
        api.post("/v1/executions/paused/resume", json!({})).await.ok(200);
        assert_eq!(ids(&api, "executions", "workflow=w&stuck=true").await, "");

        api.schedule("waits", json!({})).await;
        api.schedule("needs", json!({"requires": ["gpu"]})).await;
        api.post("/v1/tasks", json!({"queue": "other", "kind": "k", "id": "elsewhere"})).await.ok(201);
        assert_eq!(ids(&api, "tasks", "stuck=true").await, "needs");
        api.post("/v1/queues/other/pause", json!({})).await.ok(200);
        assert_eq!(ids(&api, "tasks", "stuck=true").await, "elsewhere needs");
        assert_eq!(ids(&api, "tasks", "stuck=true&queue=other").await, "elsewhere");
    })
    .await;
}

async fn workers(api: &Api) -> Value {
    api.get("/v1/workers").await.ok(200)["queues"].clone()
}

#[tokio::test]
async fn a_queue_has_the_workers_that_have_asked_and_without_any_it_is_unserved() {
    for store in stores() {
        let api = Api::over(Scene::over(Arc::clone(&store))).await;
        api.schedule("t", json!({})).await;
        let none = workers(&api).await;
        assert_eq!(
            (&none[0]["queue"], &none[0]["unserved"], &none[0]["workers"]),
            (&json!("q"), &json!(true), &json!([]))
        );
        let claim = json!({"worker": "ada", "version": "1.2"});
        let claimed = api.post("/v1/queues/q/claim", claim.clone()).await.ok(200);
        let began = "2026-01-01T00:00:00.000Z";
        let ada = json!({"name": "ada", "since": began, "seen_at": began, "there": true, "version": "1.2"});
        assert_eq!(workers(&api).await[0]["workers"], json!([ada]));
        let lease = &claimed["tasks"][0]["lease"];
        api.post("/v1/tasks/t/complete", json!({"lease": lease})).await.ok(200);

        // Another process knows it from the queue's record.
        let queue = api.scene.queue.clone();
        let other = another_process(&api, store, queue).await;
        assert_eq!(workers(&other).await[0]["workers"], json!([ada]));
        // A worker of an idle queue is noted once a minute, and one without a name is seen, too.
        api.advance(60_000);
        api.post("/v1/queues/q/claim", claim).await.ok(200);
        api.post("/v1/queues/q/claim", json!({})).await.ok(200);
        api.advance(10_000);
        let found = workers(&other).await[0]["workers"].clone();
        assert_eq!(
            (&found[0]["name"], &found[0]["seen_at"]),
            (&json!("ada"), &json!("2026-01-01T00:01:00.000Z"))
        );
        assert_eq!(workers(&api).await[0]["workers"][1]["name"], "unnamed");

        api.schedule("late", json!({})).await;
        assert_eq!(workers(&api).await[0]["unserved"], false);
        api.advance(180_000);
        let gone = workers(&api).await;
        assert_eq!((&gone[0]["unserved"], &gone[0]["workers"][0]["there"]), (&json!(true), &json!(false)));
        api.post("/v1/queues/q/pause", json!({})).await.ok(200);
        assert_eq!(workers(&api).await[0]["unserved"], false, "nobody may take its work");
    }
}

#[tokio::test]
async fn a_worker_that_has_had_its_work_since_before_a_restart_is_a_worker_of_its_queue() {
    let store = Arc::new(SqliteStore::memory().unwrap());
    let api = Api::over(Scene::over(store.clone())).await;
    api.schedule("long", json!({})).await;
    api.post("/v1/queues/q/claim", json!({"worker": "ada", "lease": "1h"})).await.ok(200);
    // The messages of a local server are in its memory.
    let queue = Arc::new(MemoryQueue::new(api.scene.clock.clone(), Queues::OnOpen));
    let restarted = another_process(&api, store, queue).await;
    restarted.schedule("next", json!({})).await;
    api.advance(600_000);
    let queue = restarted.get("/v1/queues/q").await.ok(200)["queue"].clone();
    let listed = restarted.get("/v1/queues").await.ok(200)["queues"][0].clone();
    assert_eq!((&queue["in_flight"], &listed["in_flight"]), (&json!(1), &json!(1)));
    let found = workers(&restarted).await[0].clone();
    let numbers = ["depth", "in_flight", "unserved"].map(|name| found[name].clone());
    assert_eq!(numbers, [json!(1), json!(1), json!(false)], "{found}");
    assert_eq!(overview(&restarted).await["queues"][0]["unserved"], false);
}

/// A process with the same store and clock.
async fn another_process(api: &Api, store: Arc<dyn Store>, queue: Arc<MemoryQueue>) -> Api {
    let clock = api.scene.clock.clone();
    let ports = Ports { store, queue: queue.clone(), clock: clock.clone(), ids: Arc::new(SystemIds) };
    Api::over(Scene { service: Service::new(ports, Limits::default()), clock, queue }).await
}

#[tokio::test]
async fn a_day_is_kept_in_parts_of_five_minutes_and_then_forgotten() {
    let store = Arc::new(SqliteStore::memory().unwrap());
    let api = Api::over(Scene::over(store)).await;
    let keep = async || api.scene.service.keep_history().await.unwrap();
    let day = async |query: &str| api.get(&format!("/v1/history{query}")).await.ok(200);
    assert_eq!(day("").await, json!({"every": "5m", "parts": []}));
    fail(&api, "a").await;
    keep().await;
    api.advance(120_000);
    api.schedule("waits", json!({})).await;
    api.advance(30_000);
    keep().await;
    fail_other(&api).await;
    keep().await;
    let parts = day("?queue=q").await["parts"].clone();
    let expected = json!([{
        "at": "2026-01-01T00:00:00.000Z", "completed": 0, "failed": 1, "late_ms": 0, "depth": 1, "oldest_ms": 30_000,
        "running": 0,
    }]);
    assert_eq!(parts, expected);
    assert_eq!(day("").await["parts"][0]["failed"], 2, "of all queues");
    api.advance(300_000);
    let claimed = api.claim().await;
    api.post("/v1/tasks/waits/complete", json!({"lease": claimed["lease"]})).await.ok(200);
    keep().await;
    let second = day("?queue=q").await["parts"][1].clone();
    assert_eq!((&second["completed"], &second["late_ms"]), (&json!(1), &json!(330_000)));
    let later = day("?from=2026-01-01T00:05:00.000Z").await["parts"].clone();
    assert_eq!(later.as_array().map(Vec::len), Some(1), "from an instant on: {later}");
    api.advance(86_400_000 - 300_000);
    assert_eq!(day("?queue=q").await["parts"].as_array().unwrap().len(), 1, "only the last day is shown");
    keep().await;
    api.get("/v1/history?queue=a%20b").await.problem(400, "invalid_request");
    Api::start().await.get("/v1/history").await.problem(501, "not_kept");
}

async fn overview(api: &Api) -> Value {
    api.get("/v1/overview").await.ok(200)
}

#[tokio::test]
async fn the_overview_counts_what_waits_runs_is_late_needs_somebody_and_has_failed() {
    both(async |api| {
        let queues = api.scene.service.clone();
        let seen = overview(&api).await;
        let none = json!({"count": 0});
        assert_eq!(seen["tasks"], json!({"pending": none, "running": none, "late": none, "stuck": none}));
        assert_eq!((&seen["failed"], &seen["failures"]), (&none, &json!([])));

        fail(&api, "a").await;
        api.advance(7_200_000);
        fail(&api, "b").await;
        api.running("runs", json!({})).await;
        for id in ["late-1", "late-2"] {
            api.schedule(id, json!({})).await;
        }
        api.schedule("needs", json!({"requires": ["gpu"]})).await;
        api.post("/v1/tasks", json!({"queue": "other", "kind": "k", "id": "held"})).await.ok(201);
        api.post("/v1/queues/other/pause", json!({})).await.ok(200);
        for id in ["open", "paused"] {
            api.post("/v1/executions", json!({"workflow": "w", "id": id})).await.ok(201);
        }
        api.post("/v1/executions/paused/pause", json!({})).await.ok(200);
        api.advance(61_000);
        api.schedule("new", json!({})).await;
        let flows = [(WorkflowName::parse("w").unwrap(), QueueName::parse("workflows").unwrap())];
        queues.announce_routes(&flows.into()).await.unwrap();

        let seen = overview(&api).await;
        let counts = |of: &str| {
            let counts = seen[of].as_object().unwrap().iter();
            counts
                .filter(|(_, count)| count.is_object())
                .map(|(name, count)| format!("{name} {}", count["count"]))
                .collect::<Vec<_>>()
                .join(", ")
        };
        assert_eq!(counts("tasks"), "late 4, pending 5, running 1, stuck 2");
        assert_eq!(counts("executions"), "late 1, open 2, stuck 1");
        let group = json!({
            "kind": "work", "error": "x", "count": 2, "last_hour": 1, "first_at": "2026-01-01T00:00:00.000Z",
            "last_at": "2026-01-01T02:00:00.000Z", "message": "",
        });
        assert_eq!((&seen["failed"], &seen["failures"]), (&json!({"count": 2}), &json!([group])));
        let names: Vec<_> = seen["queues"].as_array().unwrap().iter().map(|queue| &queue["name"]).collect();
        assert_eq!(names, ["other", "q", "workflows"]);
        let queue = &seen["queues"][1];
        assert_eq!(
            (&queue["in_flight"], &queue["unserved"], &queue["oldest_at"]),
            (&json!(1), &json!(false), &json!("2026-01-01T02:00:00.000Z"))
        );
        assert_eq!(seen["queues"][0]["paused"], true);
    })
    .await;
}

#[tokio::test]
async fn executions_that_failed_are_groups_by_their_error_and_those_whose_deadline_passed_are_one_of_their_own()
 {
    both(async |api| {
        for id in ["slow-1", "slow-2"] {
            api.post("/v1/executions", json!({"workflow": "w", "id": id, "execution_timeout": "5s"}))
                .await
                .ok(201);
        }
        api.advance(6_000);
        api.scene.tick().await.unwrap();
        let seen = overview(&api).await;
        let group = &seen["failures"][0];
        assert_eq!(
            (&group["workflow"], &group["count"], &group["error"]),
            (&json!("w"), &json!(2), &Value::Null)
        );
        assert_eq!(seen["failed"], json!({"count": 2}));
    })
    .await;
}

async fn fail_other(api: &Api) {
    api.post("/v1/tasks", json!({"queue": "other", "kind": "k", "id": "o"})).await.ok(201);
    let claimed = api.post("/v1/queues/other/claim", json!({})).await.ok(200);
    let report = json!({"lease": claimed["tasks"][0]["lease"], "error": {"code": "x"}});
    api.post("/v1/tasks/o/fail", report).await.ok(200);
}

#[tokio::test]
async fn failures_are_counted_over_all_in_a_period_with_the_first_and_the_last_of_all() {
    for store in stores() {
        let is_indexed = store.traits().tasks.is_some();
        let api = Api::over(Scene::over(store)).await;
        let failures = async |query: &str| api.get(&format!("/v1/failures{query}")).await.ok(200);
        let none = failures("").await;
        assert_eq!((&none["failed"], &none["groups"]), (&json!({"count": 0}), &json!([])));
        // Where each is read, the bound of that is said.
        let bound = if is_indexed { Value::Null } else { json!(5_000) };
        assert_eq!(none["read_max"], bound);

        // More than an overview reads without an index, and more groups than it shows.
        for number in 0..501 {
            fail(&api, &format!("old-{number}")).await;
        }
        api.advance(7_200_000);
        for number in 0..25 {
            let lease = api.running(&format!("new-{number}"), json!({})).await;
            let error =
                json!({"lease": lease, "error": {"code": format!("code-{number}"), "message": "why"}});
            api.post(&format!("/v1/tasks/new-{number}/fail"), error).await.ok(200);
        }
        fail(&api, "last").await;
        let all = failures("").await;
        assert_eq!((&all["failed"], &all["more_groups"]), (&json!({"count": 527}), &Value::Null));
        assert_eq!(all["groups"].as_array().unwrap().len(), 26);
        let (first_at, last_at) = ("2026-01-01T00:00:00.000Z", "2026-01-01T02:00:00.000Z");
        let group = json!({
            "kind": "work", "error": "x", "count": 502, "last_hour": 1, "first_at": first_at, "last_at": last_at,
            "message": "",
        });
        assert_eq!(all["groups"][0], group);
        assert_eq!(overview(&api).await["more_failures"], true);

        let lately = failures(&format!("?ended_from={last_at}")).await;
        assert_eq!(
            (&lately["failed"]["count"], lately["groups"].as_array().unwrap().len()),
            (&json!(26), 26)
        );
        let group = lately["groups"].as_array().unwrap().iter().find(|group| group["error"] == "x").unwrap();
        assert_eq!((&group["count"], &group["first_at"]), (&json!(1), &json!(first_at)));
        let before = failures(&format!("?ended_before={last_at}")).await;
        assert_eq!(
            (&before["failed"]["count"], before["groups"].as_array().unwrap().len()),
            (&json!(501), 1)
        );
        let wrong = api.get("/v1/failures?ended_from=yesterday").await.problem(400, "invalid_request");
        assert_eq!(wrong["field"], "ended_from");
    }
}
