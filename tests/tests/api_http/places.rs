//! Concurrency limits over HTTP: seen and changed by operators, and named by the tasks that wait.

use reqwest::Method;
use serde_json::{Value, json};
use tickover_core::id::FlowKey;

use crate::support::{Api, keys, names, send};

fn limited(key: &str, limit: u64) -> Value {
    json!({"concurrency": [{"key": key, "limit": limit}]})
}

impl Api {
    async fn limit(&self, key: &str) -> Value {
        self.get(&format!("/v1/limits/{key}")).await.ok(200)["limit"].take()
    }

    async fn change(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        send(request).await.ok(200)["limit"].take()
    }
}

#[tokio::test]
async fn a_waiting_task_says_which_key_holds_it_back_who_has_the_places_and_its_position() {
    let api = Api::start().await;
    let lease = api.running("a", limited("customer/7 ä", 1)).await;
    assert!(api.task("a").await.get("waits_at").is_none());
    for id in ["b", "c"] {
        api.schedule(id, limited("customer/7 ä", 1)).await;
        api.advance(1);
        let claimed = api.post("/v1/queues/q/claim", json!({"worker": "w1"})).await.ok(200);
        assert_eq!(claimed["tasks"], json!([]));
    }
    let task = api.task("c").await;
    assert_eq!(task["next"], json!({"what": "waits_for_place"}));
    let waits_at = &task["waits_at"];
    assert_eq!((&waits_at["position"], &waits_at["limit"]["key"]), (&json!(2), &json!("customer/7 ä")));
    assert_eq!(waits_at["limit"]["holders"][0]["task"], "a");
    // A list says the same.
    let listed = api.get("/v1/tasks?status=pending").await.ok(200);
    let next = |id: &str| {
        let all = listed["tasks"].as_array().unwrap();
        all.iter().find(|task| task["id"] == id).unwrap()["next"]["what"].clone()
    };
    assert_eq!((next("b"), next("c")), (json!("waits_for_place"), json!("waits_for_place")));

    let limit = api.limit("customer%2F7%20%C3%A4").await;
    assert_eq!(keys(&limit), names("key limit pinned taken holders waiting more next"));
    assert_eq!((&limit["limit"], &limit["taken"], &limit["waiting"]), (&json!(1), &json!(1), &json!(2)));
    assert_eq!(limit["next"], json!([{"task": "b"}, {"task": "c"}]));

    api.post("/v1/tasks/a/complete", json!({"lease": lease})).await.ok(200);
    assert_eq!(api.task("c").await["waits_at"]["position"], 1);
    let called = &api.limit("customer%2F7%20%C3%A4").await["holders"][0];
    assert_eq!((&called["task"], &called["called"]), (&json!("b"), &json!(true)));
    assert_eq!(api.claim().await["id"], "b");
}

#[tokio::test]
async fn an_operator_sets_a_limit_gives_it_back_and_takes_a_place_away() {
    let api = Api::start().await;
    for id in ["a", "b", "c"] {
        api.schedule(id, limited("k", 1)).await;
        api.advance(1);
    }
    assert_eq!(api.claim().await["id"], "a");
    let refused = api.post("/v1/queues/q/claim", json!({"max": 2})).await.ok(200);
    assert_eq!(refused["tasks"], json!([]));
    let set = api.change(Method::PUT, "/v1/limits/k", Some(json!({"limit": 2}))).await;
    assert_eq!((&set["limit"], &set["pinned"]), (&json!(2), &json!(true)));
    assert_eq!(api.claim().await["id"], "b");
    let unset = api.change(Method::DELETE, "/v1/limits/k", None).await;
    assert_eq!((&unset["limit"], &unset["pinned"]), (&json!(1), &json!(false)));
    for task in ["a", "b"] {
        api.change(Method::DELETE, &format!("/v1/limits/k/holders/{task}"), None).await;
    }
    assert_eq!(api.claim().await["id"], "c");
}

/// A gateway may hand on a path that it has decoded.
#[tokio::test]
async fn a_key_of_any_text_is_operated_on_whether_its_path_was_decoded_before_or_not() {
    let api = Api::start().await;
    for (number, key) in
        ["a/b", "a?b", "a#b", "100%", "%41", "A", "~41", ".", "..", "ä b", "a%2Fb"].iter().enumerate()
    {
        let decoded = FlowKey::parse(*key).unwrap().to_path();
        let encoded: Vec<String> = decoded.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for path in [encoded.concat(), decoded] {
            let body = Some(json!({"limit": number + 1}));
            let set = api.change(Method::PUT, &format!("/v1/limits/{path}"), body).await;
            assert_eq!(set["key"], *key, "{path}");
            let shown = api.limit(&path).await;
            assert_eq!((&shown["key"], &shown["limit"]), (&json!(key), &json!(number + 1)), "{path}");
        }
    }
}

/// What can't be in a path is refused where it enters, as the document says.
#[tokio::test]
async fn what_a_path_or_a_query_cannot_carry_is_refused() {
    let api = Api::start().await;
    for id in [".", "..", "batch", "complete"] {
        let asked = json!({"queue": "q", "kind": "k", "id": id});
        assert_eq!(api.post("/v1/tasks", asked).await.problem(400, "invalid_request")["field"], "id", "{id}");
    }
    for (field, of) in [("kind", "."), ("kind", ".."), ("queue", "..")] {
        let mut asked = json!({"queue": "q", "kind": "k"});
        asked[field] = json!(of);
        assert_eq!(api.post("/v1/tasks", asked).await.problem(400, "invalid_request")["field"], field);
    }
    let labelled = json!({"queue": "q", "kind": "k", "labels": {"a=b": "c"}});
    api.post("/v1/tasks", labelled).await.problem(400, "invalid_request");
    for id in ["...", "..a", "-x", "batch2"] {
        api.schedule(id, json!({"labels": {"a": "b=c"}})).await;
    }
    let found = api.get("/v1/tasks?label=a%3Db%3Dc").await.ok(200);
    assert_eq!(found["tasks"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_key_that_nobody_has_used_has_no_limit_and_bad_ones_are_refused_by_field() {
    let api = Api::start().await;
    let limit = api.limit("new").await;
    assert_eq!((limit.get("limit"), &limit["taken"], &limit["key"]), (None, &json!(0), &json!("new")));
    let long = "x".repeat(257);
    api.get(&format!("/v1/limits/{long}")).await.problem(400, "invalid_request");
    assert_eq!(api.limit(&"x".repeat(256)).await["taken"], 0);
    for body in [json!({"limit": 0}), json!({"limit": 1_001}), json!({}), json!({"limit": 1, "more": 1})] {
        let request = api.request(Method::PUT, "/v1/limits/k").header("content-type", "application/json");
        let problem = send(request.body(body.to_string())).await.problem(400, "invalid_request");
        assert!(problem["detail"].as_str().unwrap().contains("limit") || body["more"] == 1, "{problem}");
    }
}

#[tokio::test]
async fn the_keys_at_which_something_waits_are_listed_each_as_by_itself() {
    let api = Api::start().await;
    assert_eq!(api.get("/v1/limits").await.ok(200), json!({"limits": [], "more": false}));
    for key in ["b", "a", "free"] {
        api.schedule(&format!("{key}-1"), limited(key, 1)).await;
        api.claim().await;
    }
    for key in ["b", "a"] {
        api.schedule(&format!("{key}-2"), limited(key, 1)).await;
        let claimed = api.post("/v1/queues/q/claim", json!({"worker": "w1"})).await.ok(200);
        assert_eq!(claimed["tasks"], json!([]));
    }
    let listed = api.get("/v1/limits").await.ok(200);
    assert_eq!(listed, json!({"limits": [api.limit("a").await, api.limit("b").await], "more": false}));
    assert_eq!((&listed["limits"][0]["taken"], &listed["limits"][0]["waiting"]), (&json!(1), &json!(1)));
    // Half of a listing is told from all of it.
    for key in 0..50 {
        let id = format!("c-{key:02}");
        api.schedule(&format!("{id}-1"), limited(&id, 1)).await;
        api.claim().await;
        api.schedule(&format!("{id}-2"), limited(&id, 1)).await;
        api.post("/v1/queues/q/claim", json!({})).await.ok(200);
    }
    let listed = api.get("/v1/limits").await.ok(200);
    assert_eq!((listed["limits"].as_array().unwrap().len(), &listed["more"]), (50, &json!(true)));
}
