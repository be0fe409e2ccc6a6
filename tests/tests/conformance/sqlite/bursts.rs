//! Many requests at once for one record, on a file, in one process and in two: none is refused.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode, header};
use futures::stream::{self, StreamExt as _};
use serde_json::{Value, json};

use super::*;

/// How many callers there are at a time.
const AT_ONCE: usize = 20;

/// As many processes as services: each has its own turns.
fn processes(store: &Arc<dyn Store>, count: usize) -> Vec<Router> {
    let clock = Arc::new(SystemClock);
    let queue = Arc::new(MemoryQueue::new(clock.clone(), tickover_service::memory::Queues::OnOpen));
    let service = || {
        let (store, queue) = (Arc::clone(store), Arc::clone(&queue));
        let ports = Ports { store, queue, clock: clock.clone(), ids: Arc::new(SystemIds) };
        tickover_api::router(Service::new(ports, Limits::default()))
    };
    (0..count).map(|_| service()).collect()
}

async fn send(router: Router, method: Method, path: String, body: Value) -> (StatusCode, Value) {
    use tower::ServiceExt as _;
    let request =
        Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
    let answer = router.oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
    let (status, bytes) = (answer.status(), to_bytes(answer.into_body(), 1_000_000).await.unwrap());
    (status, serde_json::from_slice(&bytes).unwrap())
}

/// Sends so many requests, each to the next process, and returns the answers that aren't a success.
async fn refused(
    routers: &[Router],
    count: usize,
    request: impl Fn(usize) -> (Method, String, Value),
) -> Vec<Value> {
    let sent = (0..count).map(|number| {
        let (method, path, body) = request(number);
        tokio::spawn(send(routers[number % routers.len()].clone(), method, path, body))
    });
    // Spawned as they are polled: at most so many are under way.
    let answers: Vec<_> = stream::iter(sent).buffer_unordered(AT_ONCE).collect().await;
    let answers = answers.into_iter().map(Result::unwrap);
    answers.filter(|(status, _)| !status.is_success()).map(|(_, answer)| answer).collect()
}

/// The last request of a burst counts, with its labels.
#[tokio::test]
async fn a_record_is_found_by_the_labels_of_the_last_request_of_its_burst() {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::memory().unwrap());
    let routers = processes(&store, 1);
    for path in ["/v1/tasks", "/v1/executions"] {
        for team in ["red", "blue"] {
            let debounce = json!({"key": "d", "wait": "1h", "at_most": "2h"});
            let mut body = json!({"queue": "q", "labels": {"team": team}, "debounce": debounce});
            let (name, value) = if path == "/v1/tasks" { ("kind", "k") } else { ("workflow", "w") };
            body[name] = json!(value);
            let (status, answer) = send(routers[0].clone(), Method::POST, path.to_owned(), body).await;
            assert!(status.is_success(), "{answer}");
        }
        for (team, count) in [("red", 0), ("blue", 1)] {
            let list = format!("{path}?label=team%3D{team}");
            let (_, found) = send(routers[0].clone(), Method::GET, list, Value::Null).await;
            let listed = found[path.trim_start_matches("/v1/")].as_array().map(Vec::len);
            assert_eq!(listed, Some(count), "{path}, {team}: {found}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_burst_at_one_record_is_not_refused() {
    for count in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::file(&folder.path().join("data.db")).unwrap());
        let routers = processes(&store, count);
        let post = |path: &str, body: Value| (Method::POST, path.to_owned(), body);

        let debounced = refused(&routers, 60, |number| {
            let debounce = json!({"key": "d", "wait": "1h", "at_most": "2h"});
            post("/v1/tasks", json!({"queue": "q", "kind": "k", "input": number, "debounce": debounce}))
        });
        assert_eq!(debounced.await, [Value::Null; 0], "tasks of one burst, {count} processes");
        let starts = refused(&routers, 60, |number| {
            let debounce = json!({"key": "d", "wait": "1h", "at_most": "2h"});
            post(
                "/v1/executions",
                json!({"workflow": "w", "queue": "w", "input": number, "debounce": debounce}),
            )
        });
        assert_eq!(starts.await, [Value::Null; 0], "executions of one burst, {count} processes");
        let keyed = refused(&routers, 60, |_| {
            post("/v1/tasks", json!({"queue": "q", "kind": "k", "idempotency_key": "i"}))
        });
        assert_eq!(keyed.await, [Value::Null; 0], "one idempotency key, {count} processes");
        let (_, list) = send(routers[0].clone(), Method::GET, "/v1/tasks".to_owned(), Value::Null).await;
        assert_eq!(list["tasks"].as_array().map(Vec::len), Some(2), "{list}");

        let (_, started) = send(
            routers[0].clone(),
            Method::POST,
            "/v1/executions".into(),
            json!({"workflow": "w", "id": "e"}),
        )
        .await;
        assert_eq!(started["execution"]["id"], "e");
        let events = refused(&routers, 200, |number| {
            post("/v1/executions/e/events/paid", json!({"payload": number, "event_id": format!("n{number}")}))
        });
        assert_eq!(events.await, [Value::Null; 0], "events, {count} processes");
        let path = "/v1/executions/e/events".to_owned();
        let (_, events) = send(routers[0].clone(), Method::GET, path, Value::Null).await;
        assert_eq!(events["counts"]["paid"], 200, "{count} processes");

        send(routers[0].clone(), Method::POST, "/v1/tasks".into(), json!({"queue": "one", "kind": "k"}))
            .await;
        let path = "/v1/queues/one/claim".to_owned();
        let (_, claimed) = send(routers[0].clone(), Method::POST, path, json!({"wait": "5s"})).await;
        let task = &claimed["tasks"][0];
        let heartbeat = format!("/v1/tasks/{}/heartbeat", task["id"].as_str().unwrap());
        let beats =
            refused(&routers, 60, |_| post(&heartbeat, json!({"lease": task["lease"], "progress": 0.5})));
        assert_eq!(beats.await, [Value::Null; 0], "heartbeats, {count} processes");

        let cron = |every: usize| json!({"every": format!("{}h", every % 24 + 1), "task": {"queue": "q", "kind": "k"}});
        let crons = refused(&routers, 60, |number| (Method::PUT, "/v1/crons/c".to_owned(), cron(number)));
        assert_eq!(crons.await, [Value::Null; 0], "a cron, {count} processes");
        let calls = ["/v1/crons/c/pause", "/v1/crons/c/resume"];
        let operated = refused(&routers, 60, |number| post(calls[number % 2], json!({})));
        assert_eq!(operated.await, [Value::Null; 0], "calls on a cron, {count} processes");
    }
}
