//! Rates over HTTP: seen by operators, named by the tasks that wait, and given in every kind of request.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Api, send};

fn rate(key: &str, limit: u64, per: &str) -> Value {
    json!({"rate": {"key": key, "limit": limit, "per": per}})
}

impl Api {
    /// The instant from which a task may start, as the seconds of its minute.
    async fn starts_at(&self, id: &str) -> String {
        self.task(id).await["available_at"].as_str().unwrap()[17..19].to_owned()
    }
}

#[tokio::test]
async fn a_task_that_waits_for_its_rate_says_for_which_key_and_until_when() {
    let api = Api::start().await;
    for id in ["a", "b"] {
        api.schedule(id, rate("smtp", 6, "1m")).await;
    }
    assert_eq!(api.task("a").await["next"], json!({"what": "waits_for_worker"}));
    let waits = json!({"what": "waits_for_rate", "at": "2026-01-01T00:00:10.000Z", "key": "smtp"});
    assert_eq!(api.task("b").await["next"], waits);
    let limit = api.get("/v1/limits/smtp").await.ok(200)["limit"].take();
    let shown = json!({"limit": 6, "per": "1m", "burst": 1, "next_start_at": "2026-01-01T00:00:20.000Z"});
    assert_eq!(limit["rate"], shown);
    assert!(limit.get("limit").is_none(), "no task has asked for places: {limit}");
    assert!(api.get("/v1/limits/other").await.ok(200)["limit"].get("rate").is_none());
    assert_eq!(api.claim().await["id"], "a");
    api.advance(9_000);
    api.claims_nothing().await;
    api.advance(1_000);
    assert_eq!(api.claim().await["id"], "b");
}

impl Api {
    async fn claims_nothing(&self) {
        let claimed = self.post("/v1/queues/q/claim", json!({})).await.ok(200);
        // Within a second of its start, the claim waits for it.
        assert!(claimed["tasks"].as_array().unwrap().iter().all(|task| task["id"] != "a"), "{claimed}");
    }
}

#[tokio::test]
async fn of_two_rates_for_one_key_the_later_one_counts() {
    let api = Api::start().await;
    api.schedule("a", rate("smtp", 6, "1m")).await;
    api.advance(1);
    api.schedule("b", rate("smtp", 3, "1m")).await;
    api.advance(1);
    api.schedule("c", rate("smtp", 3, "1m")).await;
    assert_eq!((api.starts_at("b").await, api.starts_at("c").await), ("10".to_owned(), "30".to_owned()));
}

#[tokio::test]
async fn the_tasks_of_a_batch_start_one_after_the_other() {
    let api = Api::start().await;
    let task = |id: &str, key: &str| json!({"queue": "q", "kind": "work", "id": id, "rate": {"key": key, "limit": 6, "per": "1m"}});
    let wrong = json!({"queue": "q", "kind": "work", "rate": {"key": "smtp", "limit": 0}});
    let tasks = json!([task("a", "smtp"), task("b", "sms"), wrong, task("c", "smtp"), task("d", "smtp")]);
    let results = api.post("/v1/tasks/batch", json!({"tasks": tasks})).await.ok(200)["results"].take();
    assert_eq!(results[2]["status"], 400);
    let mut starts = vec![];
    for id in ["a", "b", "c", "d"] {
        starts.push(api.starts_at(id).await);
    }
    assert_eq!(starts, ["00", "00", "10", "20"]);
}

#[tokio::test]
async fn a_rate_may_be_the_default_of_a_kind() {
    let api = Api::start().await;
    let put = api.request(Method::PUT, "/v1/queues/q/kinds/work");
    let body = rate("smtp", 6, "1m").to_string();
    let set = send(put.header("content-type", "application/json").body(body)).await.ok(200);
    assert_eq!(set["kind"]["defaults"]["rate"]["key"], "smtp");
    for id in ["a", "b"] {
        api.schedule(id, json!({})).await;
    }
    api.schedule("own", rate("sms", 6, "1m")).await;
    assert_eq!((api.starts_at("b").await, api.starts_at("own").await), ("10".to_owned(), "00".to_owned()));
}

#[tokio::test]
async fn a_rate_out_of_bounds_is_refused_by_its_field() {
    let api = Api::start().await;
    api.schedule("longest", rate(&"k".repeat(256), 1_000_000, "24h")).await;
    for (fields, field) in [
        (json!({"key": "a", "limit": 0}), "rate.limit"),
        (json!({"key": "a", "limit": -1}), "rate.limit"),
        (json!({"key": "a", "limit": 1_000_001}), "rate.limit"),
        (json!({"key": "a", "limit": 1, "per": "0s"}), "rate.per"),
        (json!({"key": "a", "limit": 1, "per": "25h"}), "rate.per"),
        (json!({"key": "a", "limit": 5, "burst": 0}), "rate.burst"),
        (json!({"key": "a", "limit": 5, "burst": 6}), "rate.burst"),
        (json!({"key": "", "limit": 1}), "rate.key"),
        (json!({"key": "k".repeat(257), "limit": 1}), "rate.key"),
        (json!({"limit": 1}), "rate.key"),
    ] {
        let body = json!({"queue": "q", "kind": "work", "rate": fields});
        assert_eq!(api.post("/v1/tasks", body).await.problem(400, "invalid_request")["field"], field);
    }
}

#[tokio::test]
async fn cancelled_tasks_give_their_starts_back_in_whatever_order() {
    let api = Api::start().await;
    for id in ["a", "b", "c", "d"] {
        api.schedule(id, rate("smtp", 6, "1m")).await;
    }
    for id in ["b", "d", "c"] {
        api.post(&format!("/v1/tasks/{id}/cancel"), json!({})).await.ok(200);
    }
    api.schedule("e", rate("smtp", 6, "1m")).await;
    assert_eq!(api.starts_at("e").await, "10");
}

#[tokio::test]
async fn a_retry_does_not_wait_for_starts_that_are_reserved_for_later_and_those_wait_for_one_more() {
    let api = Api::start().await;
    let retried = json!({"rate": {"key": "smtp", "limit": 6, "per": "1m"}, "retry": {"max_attempts": 3, "delay": "0s"}});
    api.schedule("a", retried).await;
    for nth in 0..100 {
        api.schedule(&format!("later-{nth}"), rate("smtp", 6, "1m")).await;
    }
    let first = api.claim().await;
    let report = json!({"lease": first["lease"], "error": {"code": "busy", "message": "try again"}});
    api.post("/v1/tasks/a/fail", report).await.ok(200);
    // Its message comes, and it learns when it may start.
    let none = api.post("/v1/queues/q/claim", json!({})).await.ok(200);
    assert_eq!((&none["tasks"], api.starts_at("a").await), (&json!([]), "20".to_owned()));
    api.advance(10_000);
    assert_eq!(api.claim().await["id"], "later-0");
    api.advance(10_000);
    let again = api.claim().await;
    assert_eq!((&again["id"], &again["attempt"]), (&json!("a"), &json!(2)));
    let limit = api.get("/v1/limits/smtp").await.ok(200)["limit"].take();
    assert_eq!(limit["rate"]["next_start_at"], "2026-01-01T00:17:00.000Z");
}

#[tokio::test]
async fn an_operator_resets_a_rate_and_the_next_task_starts_at_once() {
    let api = Api::start().await;
    for nth in 0..50 {
        api.schedule(&format!("early-{nth}"), rate("smtp", 1, "1m")).await;
    }
    assert_eq!(
        api.get("/v1/limits/smtp").await.ok(200)["limit"]["rate"]["next_start_at"],
        "2026-01-01T00:50:00.000Z"
    );
    let reset = send(api.request(Method::DELETE, "/v1/limits/smtp/rate")).await.ok(200);
    assert_eq!(reset["limit"]["rate"]["next_start_at"], "2026-01-01T00:00:00.000Z");
    api.schedule("now", rate("smtp", 1, "1m")).await;
    assert_eq!(api.starts_at("now").await, "00");
    // Of a key without a rate there is nothing to forget.
    assert!(
        send(api.request(Method::DELETE, "/v1/limits/other/rate")).await.ok(200)["limit"]
            .get("rate")
            .is_none()
    );
}
