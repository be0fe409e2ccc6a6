//! What functions do only for some work, as they are deployed: with any queue, lifecycle events, and the table's lists. The
//! judge in front of the emulator refuses each call that a function's role may not make, so a permission that is missing
//! fails these tests.

use std::sync::Arc;

use serde_json::{Value, json};
use tickover_api::{OPERATORS_ROUTES, calls};
use tickover_core::duration::Millis;
use tickover_core::id::ExecutionId;
use tickover_service::memory::ManualClock;
use tickover_tests::runtime_api::Function;

use crate::deployment::{Deployment, batch, event, failed_messages, now};

/// Invocations in which the worker ends the executions.
const DELIVERIES: usize = 12;

/// Longer than what is kept in a record.
pub(crate) fn long_text() -> String {
    "long ".repeat(20_000)
}

/// Invokes a function that must do what it is asked.
pub(crate) async fn ask(function: &Function, body: Value) -> Value {
    let answer = function.invoke(body.clone()).await.unwrap();
    assert!(answer["code"].is_null(), "{body}: {answer}; {}", function.logs());
    answer
}

/// The key of the template's route for a call: operators' calls have routes of their own.
fn route_of(method: &str, path: &str) -> &'static str {
    let fits = |route: &&&str| {
        let (of, template) = route.split_once(' ').unwrap();
        let mut parts = template.split('/').zip(path.split('/'));
        of == method
            && template.split('/').count() == path.split('/').count()
            && parts.all(|(part, given)| part == given || part.starts_with('{'))
    };
    OPERATORS_ROUTES.iter().find(fits).copied().unwrap_or("$default")
}

/// Calls the HTTP API by the gateway; returns the answer's body.
pub(crate) async fn call(gateway: &Function, method: &str, path: &str, body: Value) -> Value {
    let mut request = event("http_api_post_task");
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    (request["rawPath"], request["rawQueryString"]) = (json!(path), json!(query));
    // As API Gateway says it, whatever the example event has.
    request["routeKey"] = json!(route_of(method, path));
    request["requestContext"]["routeKey"] = request["routeKey"].clone();
    request["requestContext"]["http"] = json!({"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7", "userAgent": "curl"});
    request["body"] = json!(body.to_string());
    let answer = gateway.invoke(request).await.unwrap();
    let status = answer["statusCode"].as_u64().unwrap();
    assert!((200..300).contains(&status), "{method} {path}: {answer}; {}", gateway.logs());
    serde_json::from_str(answer["body"].as_str().unwrap()).unwrap_or_default()
}

fn limited(id: &str) -> Value {
    json!({"id": id, "queue": "emails", "kind": "k", "concurrency": [{"key": "customer", "limit": 1}]})
}

pub(crate) fn envelope(kind: &str, body: &Value) -> Value {
    json!({"v": 1, "type": kind, "body": body})
}

#[tokio::test]
async fn places_at_a_limit_are_taken_waited_for_and_given_on_by_each_function() {
    let deployment = Deployment::new().await.with_everything().await;
    let [schedule, claim, complete, tick, gateway] = deployment.core().await;
    for id in ["first", "second", "third"] {
        ask(&schedule, limited(id)).await;
    }
    let claimed = ask(&claim, json!({"id": "first", "worker": "w"})).await;
    let waits = claim.invoke(json!({"id": "second", "worker": "w"})).await.unwrap();
    assert!(waits["tasks"].as_array().is_none_or(Vec::is_empty), "{waits}");
    claim.invoke(json!({"id": "third", "worker": "w"})).await.unwrap();
    let limit = call(&gateway, "GET", "/v1/limits/customer", json!({})).await;
    assert_eq!((&limit["limit"]["taken"], &limit["limit"]["waiting"]), (&json!(1), &json!(2)), "{limit}");
    ask(&complete, json!({"id": "first", "lease": claimed["tasks"][0]["lease"], "output": 1})).await;

    let claimed = ask(&claim, json!({"id": "second", "worker": "w"})).await;
    let fail = json!({"id": "second", "lease": claimed["tasks"][0]["lease"],
                      "error": {"code": "no", "message": "no", "retryable": false}});
    ask(&schedule, envelope("fail", &fail)).await;
    call(&gateway, "POST", "/v1/tasks/third/cancel", json!({})).await;
    assert_eq!(ask(&tick, json!({})).await["failed"], 0);
    call(&gateway, "PUT", "/v1/limits/customer", json!({"limit": 2})).await;
    call(&gateway, "DELETE", "/v1/limits/customer", json!({})).await;
}

#[tokio::test]
async fn a_worker_takes_and_gives_on_places_of_executions_and_finds_any_queue() {
    let deployment = Deployment::new().await.with_everything().await;
    let [schedule, ..] = deployment.core().await;
    let worker = deployment.start("worker").await;
    let order = |id: &str, boxes: Value| {
        let order = json!({"number": 1, "boxes": boxes, "express": true});
        envelope(
            "execution",
            &json!({"id": id, "workflow": "order-fulfilment", "queue": "emails", "input": order,
            "concurrency": [{"key": "orders", "limit": 1}]}),
        )
    };
    ask(&schedule, order("one", json!([long_text()]))).await;
    ask(&schedule, order("two", json!([]))).await;
    // It waits for half a minute, so its message is one of the timers.
    let slow = json!({"number": 3, "boxes": [], "second_thoughts": "30s"});
    let slow = json!({"id": "slow", "workflow": "order-fulfilment", "queue": "emails", "input": slow});
    ask(&schedule, envelope("execution", &slow)).await;
    let deliver = async || {
        let bodies = deployment.hints().await;
        let answer = worker.invoke(batch("sqs_ingress", bodies)).await.unwrap();
        assert_eq!(failed_messages(&answer), [""; 0], "{}", worker.logs());
    };
    for id in ["one", "two"] {
        let shipped =
            json!({"id": id, "name": "shipped", "event_id": "e", "payload": {"carrier": long_text()}});
        ask(&schedule, envelope("event", &shipped)).await;
        ask(&schedule, envelope("event", &shipped)).await;
    }
    // A turn of one of them, its label, its second turn; then its place is the other one's.
    let service = deployment.service().await;
    let has_ended = async || {
        for id in ["one", "two"] {
            let id = ExecutionId::parse(id).unwrap();
            if service.execution(&id).await.unwrap().unwrap().execution.closed().is_none() {
                return false;
            }
        }
        true
    };
    for _ in 0..DELIVERIES {
        if !has_ended().await {
            deliver().await;
        }
    }
    assert!(has_ended().await, "{}", worker.logs());
}

#[tokio::test]
async fn steps_that_run_side_by_side_are_counted_by_whoever_gets_their_reports() {
    let deployment = Deployment::new().await.with_everything().await;
    let [schedule, claim, complete, ..] = deployment.core().await;
    let worker = deployment.start("worker").await;
    let order = json!({"number": 1, "boxes": ["books", "lamps", "pens"], "express": true});
    let start = json!({"id": "one", "workflow": "order-fulfilment", "queue": "emails", "input": order});
    ask(&schedule, envelope("execution", &start)).await;
    let turn = worker.invoke(batch("sqs_ingress", deployment.hints().await)).await.unwrap();
    assert_eq!(failed_messages(&turn), [""; 0], "{}", worker.logs());
    for function in [&complete, &schedule, &complete] {
        let claimed = ask(&claim, json!({"queue": "emails", "worker": "w", "wait": "5s"})).await;
        let task = &claimed["tasks"][0];
        let done = json!({"id": task["id"], "lease": task["lease"], "output": "a label"});
        ask(function, envelope("complete", &done)).await;
    }
}

#[tokio::test]
async fn large_payloads_repeated_requests_and_reports_by_message_need_no_other_permission() {
    let deployment = Deployment::new().await.with_everything().await;
    let [schedule, claim, complete, _, gateway] = deployment.core().await;
    let large = json!({"idempotency_key": "once", "queue": "emails", "kind": "k", "input": long_text(),
                       "retry": {"max_attempts": 3, "delay": "1s"}});
    let first = ask(&schedule, large.clone()).await;
    assert_eq!(ask(&schedule, large).await["task"]["id"], first["task"]["id"]);
    // Claimed from the queue, so that its lease knows the message.
    let next = async || {
        let claimed = ask(&claim, json!({"queue": "emails", "worker": "w", "wait": "5s"})).await;
        claimed["tasks"][0].clone()
    };
    let task = next().await;
    assert_eq!(task["input"], json!(long_text()));
    let fail = json!({"id": task["id"], "lease": task["lease"], "error": {"code": "no", "message": "no"}});
    ask(&schedule, envelope("fail", &fail)).await;
    let task = next().await;
    let last = json!({"id": task["id"], "lease": task["lease"],
                      "error": {"code": "no", "message": "no", "retryable": false}});
    ask(&complete, envelope("fail", &last)).await;
    let retry = format!("/v1/tasks/{}/retry", task["id"].as_str().unwrap());
    call(&gateway, "POST", &retry, json!({})).await;
    let task = next().await;
    ask(&complete, json!({"id": task["id"], "lease": task["lease"], "output": long_text()})).await;
    ask(&schedule, json!({"id": "plain", "queue": "emails", "kind": "k"})).await;
    let task = next().await;
    let done = json!({"id": task["id"], "lease": task["lease"], "output": 1});
    ask(&schedule, envelope("complete", &done)).await;
    let more = json!({"queue": "emails", "kind": "k"});
    ask(&schedule, json!({"tasks": [more, more]})).await;
    let mut report = None;
    for what in ["fail", "complete"] {
        let claimed =
            call(&gateway, "POST", "/v1/queues/emails/claim", json!({"worker": "w", "wait": "5s"})).await;
        let task = &claimed["tasks"][0];
        let path = format!("/v1/tasks/{}/{what}", task["id"].as_str().unwrap());
        let error = json!({"code": "no", "message": "no"});
        let body = if what == "fail" {
            json!({"lease": task["lease"], "error": error})
        } else {
            json!({"lease": task["lease"]})
        };
        report = Some(call(&gateway, "POST", &path, body).await);
    }
    assert_eq!(report.unwrap()["task"]["status"], "completed");
    // Nobody has announced the workflow: every queue is looked at.
    let unknown = envelope("execution", &json!({"workflow": "nobodys", "input": 1}));
    assert!(schedule.invoke(unknown).await.is_ok(), "{}", schedule.logs());
}

#[tokio::test]
async fn crons_and_operations_are_made_by_the_gateway_and_carried_out_by_the_tick() {
    let deployment = Deployment::new().await.with_everything().await;
    let [.., tick, gateway] = deployment.core().await;
    let cron = json!({"id": "hourly", "every": "1h",
                      "task": {"queue": "emails", "kind": "k", "input": long_text()}});
    call(&gateway, "POST", "/v1/crons", cron).await;
    call(&gateway, "GET", "/v1/crons", json!({})).await;
    call(&gateway, "POST", "/v1/crons/hourly/trigger", json!({})).await;
    // Made two hours ago, they are due.
    let clock = ManualClock::new(now().minus(Millis::from_secs(2 * 3_600)));
    let past = deployment.service_at(Arc::new(clock)).await;
    let execution = json!({"workflow": "order-fulfilment", "input": {"long": long_text()}});
    for (id, what, work) in [
        (
            "tasks",
            "task",
            json!({"queue": "emails", "kind": "k", "input": long_text(), "unique": {"key": "u"}}),
        ),
        ("executions", "execution", execution),
    ] {
        let cron = json!({"id": id, "every": "1h", what: work}).to_string();
        calls::create_cron(&past, cron.as_bytes()).await.unwrap();
    }
    let report = ask(&tick, json!({"scheduled_at": now().to_rfc3339()})).await;
    assert_eq!(report["failed"], 0, "{report}; {}", tick.logs());
    for path in [
        "/v1/tasks?status=completed",
        "/v1/tasks?status=failed",
        "/v1/executions?workflow=order-fulfilment",
        "/v1/executions?status=failed",
        "/v1/operations",
        "/v1/queues",
    ] {
        call(&gateway, "GET", path, json!({})).await;
    }
    let start = json!({"id": "wanted", "workflow": "order-fulfilment", "queue": "emails", "input": 1});
    call(&gateway, "POST", "/v1/executions", start).await;
    call(&gateway, "GET", "/v1/executions/wanted/timeline", json!({})).await;
    for operation in [
        json!({"id": "tasks", "action": "retry", "tasks": {"queue": "emails"}}),
        json!({"id": "all", "action": "retry", "executions": {"workflow": "order-fulfilment"}}),
        json!({"id": "open", "action": "cancel", "executions": {"workflow": "order-fulfilment"}}),
    ] {
        call(&gateway, "POST", "/v1/operations", operation.clone()).await;
        let answer = tick.invoke(batch("sqs_timers", deployment.due_timers().await)).await.unwrap();
        assert_eq!(failed_messages(&answer), [""; 0], "{}", tick.logs());
        let path = format!("/v1/operations/{}", operation["id"].as_str().unwrap());
        call(&gateway, "GET", &path, json!({})).await;
    }
    assert_eq!(ask(&tick, json!({})).await["failed"], 0);
    call(&gateway, "DELETE", "/v1/crons/hourly", json!({})).await;
}

/// What a call needs in its body, by the end of its path; other calls get an empty object.
fn body_of(path: &str) -> Value {
    let task = json!({"queue": "emails", "kind": "k"});
    match path {
        "/v1/tasks" => task,
        "/v1/tasks/batch" => json!({"tasks": [task]}),
        "/v1/executions" => json!({"workflow": "order-fulfilment", "input": 1}),
        "/v1/crons" => json!({"every": "1h", "task": task}),
        "/v1/operations" => json!({"action": "retry", "tasks": {"queue": "emails"}}),
        _ if path.ends_with("/claim") => json!({"worker": "w", "wait": "0s"}),
        _ if path.ends_with("/fail") => json!({"lease": "l", "error": {"code": "no", "message": "no"}}),
        _ if path.contains("/limits/") => json!({"limit": 2}),
        _ if path.contains("/crons/") => json!({"every": "2h", "task": task}),
        _ if path.ends_with("/kinds/{kind}") => json!({"timeout": "1m"}),
        _ => json!({"lease": "l"}),
    }
}

/// A path of the document with names of what there is in place of its parameters.
fn named(path: &str) -> String {
    let id = match path.split('/').nth(2) {
        Some("executions") => "wanted",
        Some("crons") => "hourly",
        Some("operations") => "all",
        _ => "t",
    };
    let name = if path.contains("/steps/") { "charge" } else { "shipped" };
    let pairs = [
        ("{id}", id),
        ("{queue}", "emails"),
        ("{kind}", "k"),
        ("{key}", "customer"),
        ("{holder}", "t"),
        ("{name}", name),
        ("{token}", "none"),
    ];
    pairs.into_iter().fold(path.to_owned(), |path, (parameter, name)| path.replace(parameter, name))
}

#[tokio::test]
async fn every_call_of_the_http_api_is_one_that_the_gateway_may_make() {
    let deployment = Deployment::new().await.with_everything().await;
    let [.., gateway] = deployment.core().await;
    let start = json!({"id": "wanted", "workflow": "order-fulfilment", "queue": "emails", "input": 1});
    let task =
        json!({"id": "t", "queue": "emails", "kind": "k", "concurrency": [{"key": "customer", "limit": 1}]});
    let cron = json!({"id": "hourly", "every": "1h", "task": {"queue": "emails", "kind": "k"}});
    let operation = json!({"id": "all", "action": "retry", "tasks": {"queue": "emails"}});
    for (path, body) in
        [("/v1/executions", start), ("/v1/tasks", task), ("/v1/crons", cron), ("/v1/operations", operation)]
    {
        call(&gateway, "POST", path, body).await;
    }
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/api/openapi.json");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(document).unwrap()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let mut calls: Vec<(String, &String)> = paths
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |one| (one.to_uppercase(), path))
        })
        .collect();
    // What deletes comes last, and first what only reads.
    calls.sort_by_key(|(method, path)| {
        (["GET", "POST", "PUT"].iter().position(|one| one == method).unwrap_or(3), *path)
    });
    assert!(calls.len() > 50, "{calls:?}");
    for (method, path) in calls {
        let mut request = event("http_api_post_task");
        (request["rawPath"], request["rawQueryString"]) = (json!(named(path)), json!(""));
        request["requestContext"]["http"]["method"] = json!(method);
        request["body"] = if method == "GET" { Value::Null } else { json!(body_of(path).to_string()) };
        let answer = gateway.invoke(request).await.unwrap();
        // 501 is what a deployment has not: no permission is missing.
        let status = answer["statusCode"].as_u64().unwrap();
        assert!(status < 500 || status == 501, "{method} {path}: {answer}; {}", gateway.logs());
    }
}
