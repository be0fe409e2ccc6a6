//! The audit line of each operator's call.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};
use tickover::Client;
use tickover::client::{ClientError, ExecutionId};
use tickover_api::OPERATORS_ROUTES;
use tickover_api::audit::{Identity, RouteKey};
use tickover_core::by::{By, Caller as Operator};
use tickover_core::id::{FlowKey, QueueName};
use tickover_service::Service;
use tickover_tests::http::Caller;
use tower::ServiceExt as _;

use crate::lines::Log;

/// What each audit line says.
const MESSAGE: &str = "an operator's call";

fn ada() -> Identity {
    Identity { caller: Operator::new("ada"), client: Some(Operator::new("console")) }
}

/// All routes of the document, each as its method, a space, and its path.
fn routes() -> Vec<String> {
    let document: Value = serde_json::from_str(include_str!("../../../shared/api/openapi.json")).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let routes = paths.flat_map(|(path, methods)| {
        methods
            .as_object()
            .unwrap()
            .keys()
            .map(|method| format!("{} {path}", method.to_uppercase()))
            .collect::<Vec<_>>()
    });
    routes.collect()
}

/// A request by a route, about what there may not be.
fn request(route: &str) -> Request<Body> {
    let (method, path) = route.split_once(' ').unwrap();
    let named = ["id", "queue", "kind", "key", "holder", "name", "token"];
    let path = named.iter().fold(path.to_owned(), |path, name| path.replace(&format!("{{{name}}}"), name));
    // What a caller says of itself counts for nothing.
    let request = Request::builder().method(method).uri(path).header("x-user", "eve").header("caller", "eve");
    request.header(header::CONTENT_TYPE, "application/json").extension(ada()).body(Body::from("{}")).unwrap()
}

async fn send(service: &Service, request: Request<Body>) -> u16 {
    let router = tickover_api::router(service.clone());
    router.oneshot(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn every_operators_call_has_one_audit_line_and_no_other_call_has_any() {
    let caller = Caller::default();
    assert!(OPERATORS_ROUTES.len() > 20);
    for route in routes() {
        Log::listen();
        let status = send(&caller.scene.service, request(&route)).await;
        let lines = Log::lines(MESSAGE);
        if !OPERATORS_ROUTES.contains(&route.as_str()) {
            assert!(lines.is_empty(), "{route}: {lines:?}");
            continue;
        }
        assert_eq!(lines.len(), 1, "{route}: {}", Log::text());
        let line = &lines[0];
        assert_eq!((&line["target"], &line["level"]), (&json!("audit"), &json!("INFO")), "{line}");
        assert_eq!((&line["caller"], &line["client"]), (&json!("ada"), &json!("console")), "{line}");
        assert_eq!((&line["call"], &line["status"]), (&json!(route), &json!(status)), "{line}");
        assert_eq!(line["outcome"] == "ok", (200..300).contains(&status), "{line}");
        assert!(line["timestamp"].is_string(), "{line}");
        // Of those that make a record, an answer names it, if there is one.
        let has_name = route.contains('{');
        let named = line["id"].as_str().is_some_and(|id| !id.is_empty());
        assert_eq!(named, has_name, "{line}");
    }
}

#[tokio::test]
async fn a_line_names_what_the_call_was_about_and_what_came_of_it() {
    let service = Caller::default().scene.service;
    let key = FlowKey::parse("a/b ä").unwrap();
    let cron = json!({"id": "hourly", "every": "1h", "task": {"queue": "q", "kind": "k"}});
    let operation = json!({"id": "all", "action": "retry", "tasks": {"queue": "q"}});
    let about = format!("/v1/limits/{}", key.to_path());
    for (method, path, body, id, outcome) in [
        ("POST", "/v1/crons", cron, "hourly", "ok"),
        ("POST", "/v1/operations", operation, "all", "ok"),
        ("PUT", &about, json!({"limit": 2}), "a/b ä", "ok"),
        ("DELETE", &format!("{about}/holders/@e"), json!({}), "a/b ä/@e", "ok"),
        ("POST", "/v1/executions/e/steps/label%5B3%5D/retry", json!({}), "e/label[3]", "not_found"),
        ("POST", "/v1/tasks/t/retry", json!({"secret": 1}), "t", "invalid_request"),
    ] {
        Log::listen();
        let request =
            Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        send(&service, request.extension(ada()).body(Body::from(body.to_string())).unwrap()).await;
        let lines = Log::lines(MESSAGE);
        assert_eq!(
            (&lines[0]["id"], &lines[0]["outcome"]),
            (&json!(id), &json!(outcome)),
            "{path}: {lines:?}"
        );
        assert!(!Log::lines(MESSAGE)[0].to_string().contains("secret"));
    }
}

#[tokio::test]
async fn a_call_that_came_by_a_foreign_route_is_audited_too() {
    let service = Caller::default().scene.service;
    Log::listen();
    let mut request = request("POST /v1/executions/{id}/terminate");
    request.extensions_mut().insert(RouteKey("POST /v1/{proxy+}".to_owned()));
    assert_eq!(send(&service, request).await, 403);
    let lines = Log::lines(MESSAGE);
    assert_eq!((&lines[0]["outcome"], &lines[0]["id"]), (&json!("foreign_route"), &json!("id")), "{lines:?}");
}

#[tokio::test]
async fn a_client_without_a_server_leaves_the_same_line_and_its_name_in_the_record() {
    let scene = Caller::default().scene;
    let name = By::caller(Operator::new("function/nightly"));
    let client = Client::from(scene.service.clone().called_by(name));
    let id = ExecutionId::parse("e").unwrap();
    let start = json!({"id": "e", "workflow": "w", "queue": "q", "input": 1});
    tickover_api::calls::executions::start(&scene.service, start.to_string().as_bytes()).await.unwrap();
    Log::listen();
    client.api().pause(&id).await.unwrap();
    let missing = ExecutionId::parse("none").unwrap();
    assert!(matches!(client.api().pause(&missing).await, Err(ClientError::Refused(_))));
    client.api().execution(&id, tickover_core::duration::Millis::ZERO).await.unwrap();
    let said: Vec<_> = Log::lines(MESSAGE)
        .iter()
        .map(|line| {
            [&line["caller"], &line["call"], &line["id"], &line["outcome"]]
                .map(|field| field.as_str().unwrap().to_owned())
        })
        .collect();
    let pause = |id: &str, outcome: &str| {
        ["function/nightly", "POST /v1/executions/{id}/pause", id, outcome].map(str::to_owned)
    };
    assert_eq!(said, [pause("e", "ok"), pause("none", "not_found")]);
    let timeline = client.api().timeline(&id, None).await.unwrap().entries;
    let paused = timeline.iter().find(|entry| entry.kind == "paused").unwrap();
    assert_eq!(paused.by.as_ref().unwrap().caller.as_deref(), Some("function/nightly"));
    client.api().pause_queue(&QueueName::parse("q").unwrap()).await.unwrap();
    assert_eq!(Log::lines(MESSAGE).len(), 3);
}

#[tokio::test]
async fn the_line_of_a_request_has_its_caller_and_the_names_in_its_path_but_no_token() {
    let caller = Caller::default();
    caller.schedule("order-7", json!({})).await;
    let service = caller.scene.service;
    for (method, path, about) in [
        ("GET", "/v1/tasks/order-7", json!("order-7")),
        ("GET", "/v1/limits/customer", json!("customer")),
        // Who misplaces a secret doesn't find it in the log.
        ("POST", "/v1/tasks/hunter2/complete", Value::Null),
        ("POST", "/v1/callbacks/hunter2/complete", Value::Null),
        ("GET", "/nowhere", Value::Null),
    ] {
        Log::listen();
        let request =
            Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        send(&service, request.extension(ada()).body(Body::from("{}")).unwrap()).await;
        let lines = Log::lines("request");
        assert_eq!((&lines[0]["id"], &lines[0]["caller"]), (&about, &json!("ada")), "{path}: {lines:?}");
        // The gateway's log directives name it.
        assert_eq!(lines[0]["target"], "tickover_api::layers");
        assert!(!Log::text().contains("hunter2"), "{}", Log::text());
    }
}
