//! The trace that work belongs to: from the caller that asked for it to the worker that does it.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use tickover_core::limits::Limits;
use tickover_core::trace::TraceContext;
use tickover_service::executions::Work;
use tickover_service::memory::MemoryStore;
use tickover_service::ports::Store;
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};
use tickover_tests::http::Caller;
use tickover_tests::scene::Scene;
use tower::ServiceExt as _;

use crate::executions::{begin, next, turn};
use crate::lines::Log;
use crate::stage::{events, of};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// A caller of a service over this store that carries traces.
async fn carrying(store: Arc<dyn Store>) -> Caller {
    let scene = Scene::over(store.clone());
    let (queue, clock) = (scene.queue.clone(), scene.clock.clone());
    let ports = Ports { store, queue, clock, ids: Arc::new(SystemIds) };
    let service = Service::new(ports, Limits { carry_trace: true, ..Limits::default() });
    of(Caller::of(Scene { service, ..scene })).await
}

/// Posts a body with W3C's header; returns the status.
async fn post(caller: &Caller, path: &str, header: &str, body: Value) -> u16 {
    let request =
        Request::post(path).header("content-type", "application/json").header("traceparent", header);
    let request = request.body(Body::from(body.to_string())).unwrap();
    let router = tickover_api::router(caller.scene.service.clone());
    router.oneshot(request).await.unwrap().status().as_u16()
}

fn task(id: &str) -> Value {
    json!({"id": id, "queue": "work", "kind": "work"})
}

#[tokio::test]
async fn a_trace_goes_from_a_tasks_request_to_its_worker_its_events_and_its_lines() {
    Log::listen();
    let caller = carrying(Arc::new(MemoryStore::default())).await;
    assert_eq!(post(&caller, "/v1/tasks", TRACE, task("a")).await, 201);
    assert_eq!(caller.claim().await.unwrap()["traceparent"], TRACE);
    let told: Vec<_> = events(&caller).await.iter().map(|event| event["traceparent"].clone()).collect();
    assert_eq!(told, [TRACE, TRACE]);
    for line in [&Log::lines("TaskScheduled")[0], &Log::lines("TaskStarted")[0]] {
        assert_eq!(line["trace.id"], "4bf92f3577b34da6a3ce929d0e0e4736", "{line}");
    }

    // A body may name its own trace, and so may a batch's entries. The others have the header's.
    let mut own = task("b");
    own["traceparent"] = json!(OTHER);
    assert_eq!(post(&caller, "/v1/tasks", TRACE, own.clone()).await, 201);
    assert_eq!(caller.claim().await.unwrap()["traceparent"], OTHER);
    own["id"] = json!("c");
    let batch = json!({"tasks": [own, task("d")]});
    assert_eq!(post(&caller, "/v1/tasks/batch", TRACE, batch).await, 200);
    let mut seen = [caller.claim().await.unwrap(), caller.claim().await.unwrap()];
    seen.sort_by_key(|task| task["id"].to_string());
    assert_eq!(seen.map(|task| task["traceparent"].clone()), [OTHER, TRACE]);
    // The same request in another trace is the same request.
    assert_eq!(post(&caller, "/v1/tasks", OTHER, task("a")).await, 200);
}

#[tokio::test]
async fn an_executions_trace_is_that_of_its_remote_steps() {
    Log::listen();
    let caller = carrying(Arc::new(MemoryStore::default())).await;
    let body = json!({"id": "e", "workflow": "order", "queue": "work"});
    assert_eq!(post(&caller, "/v1/executions", TRACE, body).await, 201);
    let service = &caller.scene.service;
    let taken = turn(service).await;
    begin(service, &taken, "label", None).await;
    let Some(Work::Task(step)) = next(service).await else { panic!("the step is a task") };
    assert_eq!(step.task.trace, TraceContext::parse(TRACE));
    let told = events(&caller).await;
    assert!(told.iter().all(|event| event["traceparent"] == TRACE), "{told:?}");
    assert_eq!(Log::lines("ExecutionStarted")[0]["trace.id"], "4bf92f3577b34da6a3ce929d0e0e4736");
}

#[tokio::test]
async fn an_execution_without_a_trace_gets_that_of_an_event() {
    Log::listen();
    let caller = carrying(Arc::new(MemoryStore::default())).await;
    for (id, own, expected) in [("bare", None, OTHER), ("traced", Some(TRACE), TRACE)] {
        let start = json!({"id": id, "workflow": "order", "queue": "work", "traceparent": own});
        caller.ok("/v1/executions", start).await;
        let path = format!("/v1/executions/{id}/events/paid");
        assert_eq!(post(&caller, &path, OTHER, json!({"event_id": "1"})).await, 200);
        let taken = turn(&caller.scene.service).await;
        assert_eq!(taken.execution.id.as_str(), id);
        assert_eq!(taken.execution.trace, TraceContext::parse(expected), "{id}");
    }
}

#[tokio::test]
async fn an_invalid_trace_is_ignored() {
    let caller = carrying(Arc::new(MemoryStore::default())).await;
    for (index, text) in ["nonsense", "00-0-0-0", &TRACE.to_uppercase(), ""].into_iter().enumerate() {
        let id = format!("t-{index}");
        assert_eq!(post(&caller, "/v1/tasks", text, task(&id)).await, 201, "{text}");
        assert_eq!(caller.claim().await.unwrap().get("traceparent"), None, "{text}");
    }
    // In a body, a value that isn't a text is an error.
    let mut body = task("wrong-type");
    body["traceparent"] = json!({"not": "a text"});
    assert_eq!(post(&caller, "/v1/tasks", TRACE, body).await, 400);
}

#[tokio::test]
async fn by_default_no_trace_is_stored_or_passed_on_even_if_a_record_has_one() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let caller = of(Caller::over(store.clone())).await;
    assert_eq!(post(&caller, "/v1/tasks", TRACE, task("off")).await, 201);
    let kept = store.task(&tickover_tests::scene::task_id("off")).await.unwrap().unwrap();
    assert_eq!(kept.trace, None);

    assert_eq!(post(&carrying(store.clone()).await, "/v1/tasks", TRACE, task("on")).await, 201);
    let kept = store.task(&tickover_tests::scene::task_id("on")).await.unwrap().unwrap();
    assert_eq!(kept.trace, TraceContext::parse(TRACE));
    let claimed = caller.ok("/v1/tasks/on/claim", json!({"worker": "w"})).await;
    assert_eq!(claimed["tasks"][0].get("traceparent"), None, "{claimed}");
    assert!(events(&caller).await.iter().all(|event| event.get("traceparent").is_none()));
}
