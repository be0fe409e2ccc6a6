//! Errors of HTTP itself: paths, methods, media types.

use reqwest::Method;
use serde_json::json;

use crate::support::{Api, send};

#[tokio::test]
async fn an_unknown_path_is_a_404_problem() {
    let api = Api::start().await;
    for path in
        ["/", "/v1", "/v1/task", "/v1/tasks/", "/v1/tasks/t/explode", "/v2/tasks", "/v1/queues/q/claim/x"]
    {
        api.get(path).await.problem(404, "not_found");
    }
    api.get("/v1/tasks/absent").await.problem(404, "not_found");
    api.post("/v1/tasks/absent/cancel", json!({})).await.problem(404, "not_found");
    api.post("/v1/queues/absent/claim", json!({})).await.problem(404, "unknown_queue");
    api.get("/v1/queues/absent").await.problem(404, "unknown_queue");
}

#[tokio::test]
async fn a_wrong_method_is_a_405_that_lists_the_right_ones() {
    let api = Api::start().await;
    for (method, path, allow) in [
        (Method::DELETE, "/v1/tasks", "POST,GET,HEAD"),
        (Method::PUT, "/v1/tasks/t", "GET,HEAD"),
        (Method::GET, "/v1/tasks/batch", "POST"),
        (Method::GET, "/v1/tasks/complete", "POST"),
        (Method::GET, "/v1/tasks/t/claim", "POST"),
        (Method::POST, "/v1/queues/q", "GET,HEAD"),
        (Method::POST, "/healthz", "GET,HEAD"),
    ] {
        let reply = send(api.request(method.clone(), path)).await;
        let allowed = |text: &str| {
            let mut methods: Vec<_> = text.split(',').map(str::to_owned).collect();
            methods.sort();
            methods
        };
        let found = reply.headers["allow"].to_str().unwrap().to_owned();
        assert_eq!(allowed(&found), allowed(allow), "{method} {path}");
        reply.problem(405, "method_not_allowed");
    }
}

#[tokio::test]
async fn a_body_must_be_declared_as_json() {
    let api = Api::start().await;
    let body = |id: &str| json!({"queue": "q", "kind": "k", "id": id}).to_string();
    for media_type in
        ["text/plain", "application/x-www-form-urlencoded", "application/xml", "multipart/form-data"]
    {
        let request = api.request(Method::POST, "/v1/tasks").header("content-type", media_type);
        let problem = send(request.body(body("wrong"))).await.problem(415, "unsupported_media_type");
        assert!(problem["detail"].as_str().unwrap().contains(media_type), "{problem}");
    }
    let compressed =
        api.request(Method::POST, "/v1/tasks").header("content-encoding", "gzip").body(body("wrong"));
    send(compressed).await.problem(415, "unsupported_media_type");
    api.get("/v1/tasks/wrong").await.problem(404, "not_found");
    let json =
        api.request(Method::POST, "/v1/tasks").header("content-type", "application/json; charset=utf-8");
    send(json.body(body("a"))).await.ok(201);
    let relative =
        api.request(Method::POST, "/v1/tasks").header("content-type", "application/cloudevents+json");
    send(relative.body(body("b"))).await.ok(201);
    let bare = send(api.request(Method::POST, "/v1/tasks").body(body("c"))).await;
    bare.problem(415, "unsupported_media_type");
}

#[tokio::test]
async fn an_empty_json_body_is_accepted_where_no_field_is_required() {
    let api = Api::start().await;
    api.schedule("t", json!({})).await;
    for path in [
        "/v1/queues/q/pause",
        "/v1/queues/q/resume",
        "/v1/queues/q/claim",
        "/v1/tasks/t/claim",
        "/v1/tasks/t/cancel",
    ] {
        // A page of any website can send a body that is declared as another type.
        let empty = || api.request(Method::POST, path).header("content-length", "0");
        for media_type in ["text/plain", "application/x-www-form-urlencoded"] {
            let refused = send(empty().header("content-type", media_type)).await;
            refused.problem(415, "unsupported_media_type");
        }
        send(empty()).await.problem(415, "unsupported_media_type");
        send(empty().header("content-type", "application/json")).await.ok(200);
    }
    let path = "/v1/tasks/t/complete";
    api.post_text(path, "").await.problem(400, "invalid_request");
}

#[tokio::test]
async fn names_in_paths_are_percent_decoded_and_checked() {
    let api = Api::start().await;
    api.schedule("a:b.c", json!({})).await;
    for path in ["/v1/tasks/a:b.c", "/v1/tasks/a%3Ab%2Ec", "/v1/tasks/%61:b.c"] {
        assert_eq!(api.get(path).await.ok(200)["task"]["id"], "a:b.c");
    }
    for path in ["/v1/tasks/a%20b", "/v1/tasks/a%2Fb", "/v1/tasks/%C3%AF", "/v1/tasks/a%00"] {
        assert_eq!(api.get(path).await.problem(400, "invalid_request")["field"], "id", "{path}");
    }
    assert_eq!(api.get("/v1/tasks/%ff").await.problem(400, "invalid_request")["field"], "path");
    let long = format!("/v1/queues/{}/claim", "q".repeat(65));
    assert_eq!(api.post(&long, json!({})).await.problem(400, "invalid_request")["field"], "queue");
}

#[tokio::test]
async fn the_health_route_answers() {
    let api = Api::start().await;
    assert_eq!(api.get("/healthz").await.ok(200), json!({"status": "ok"}));
    let head = send(api.request(Method::HEAD, "/healthz")).await;
    assert_eq!((head.status, head.text.as_str()), (200, ""));
}
