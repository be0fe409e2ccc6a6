//! Events: sent, taken in order, counted, cleared.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::worker::Worker;

impl Worker {
    async fn send_event(&self, event: &str, body: Value) -> Value {
        self.caller.ok(&format!("/v1/executions/e/events/{event}"), body).await
    }

    async fn pending(&self) -> Value {
        self.get("/v1/executions/e/events").await
    }
}

#[tokio::test]
async fn events_wait_in_order_by_name_are_counted_and_taken_first_in_first_out() {
    let worker = Worker::default();
    worker.parked("e", json!({})).await;
    worker.send_event("shipped", json!({"payload": 1})).await;
    worker.send_event("paid", json!({"payload": {"by": "card"}})).await;
    assert_eq!(worker.send_event("shipped", json!({"payload": 2})).await, json!({"pending": 3}));
    let pending = worker.pending().await;
    assert_eq!(pending["counts"], json!({"shipped": 2, "paid": 1}));
    let payloads: Vec<_> = pending["events"].as_array().unwrap().iter().map(|e| &e["payload"]).collect();
    assert_eq!(payloads, [&json!(1), &json!({"by": "card"}), &json!(2)]);

    // An event wakes its execution; its code takes the oldest event of the name.
    let turn = worker.take("e").await;
    assert!(!turn.journal.is_empty());
    let taken = worker.taken("shipped");
    worker.suspend(turn, vec![taken], None).await;
    let pending = worker.pending().await;
    assert_eq!(pending["counts"], json!({"shipped": 1, "paid": 1}));
    assert_eq!(pending["events"][1]["payload"], 2);
    assert_eq!(worker.seen("e").await["pending_events"], 2);
}

#[tokio::test]
async fn an_event_with_an_id_counts_once() {
    let worker = Worker::default();
    worker.parked("e", json!({})).await;
    let first = worker.send_event("shipped", json!({"event_id": "a", "payload": 1})).await;
    assert_eq!(first, json!({"pending": 1}));
    let second = worker.send_event("shipped", json!({"event_id": "a", "payload": 2})).await;
    assert_eq!(second, json!({"duplicate": true, "pending": 1}));
    let pending = worker.pending().await;
    assert_eq!(
        (&pending["events"][0]["payload"], &pending["events"][0]["event_id"]),
        (&json!(1), &json!("a"))
    );
    // Without an id, or with another, it is another event.
    worker.send_event("shipped", json!({"event_id": "b"})).await;
    assert_eq!(worker.send_event("shipped", json!({})).await, json!({"pending": 3}));
    // Whoever repeats the call after the end gets the same answer.
    worker.operate("e", "terminate").await;
    assert_eq!(worker.send_event("shipped", json!({"event_id": "a"})).await["duplicate"], true);
}

#[tokio::test]
async fn clearing_removes_the_events_of_one_name() {
    let worker = Worker::default();
    worker.parked("e", json!({})).await;
    for event in ["shipped", "paid", "shipped"] {
        worker.send_event(event, json!({})).await;
    }
    let drain = || worker.caller.send(Method::DELETE, "/v1/executions/e/events/shipped", None);
    assert_eq!(drain().await, (StatusCode::OK, json!({"cleared": 2})));
    assert_eq!(worker.pending().await["counts"], json!({"paid": 1}));
    assert_eq!(drain().await, (StatusCode::OK, json!({"cleared": 0})));
}

#[tokio::test]
async fn an_event_for_an_unknown_or_closed_execution_is_refused_as_such() {
    let worker = Worker::default();
    worker.ended("over", &json!(1)).await;
    for (id, expected) in [("nobody", (404, "not_found")), ("over", (409, "already_terminal"))] {
        let path = format!("/v1/executions/{id}/events/shipped");
        let (status, code) = worker.caller.refused(&path, json!({"payload": 1})).await;
        assert_eq!((status, code.as_str()), expected, "{id}");
    }
    let (status, _) = worker.caller.send(Method::GET, "/v1/executions/nobody/events", None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let refused = worker.caller.refused("/v1/executions/over/events/a%20b", json!({})).await;
    assert_eq!(refused, (400, "invalid_request".to_owned()));
}

#[tokio::test]
async fn an_event_that_arrives_during_a_turn_lets_it_continue() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let turn = worker.take("e").await;
    worker.send_event("shipped", json!({"payload": "now"})).await;
    let suspended = worker.try_suspend(&turn, vec![], None, false).await.unwrap();
    let tickover_service::executions::Suspended::Continue(_, journal) = suspended else { panic!("it slept") };
    assert_eq!(journal.len(), 1);
}

#[tokio::test]
async fn pages_of_buffered_events_do_not_shift() {
    let worker = Worker::default();
    worker.parked("e", json!({})).await;
    for number in 0..7 {
        worker.send_event(if number % 2 == 0 { "even" } else { "odd" }, json!({"payload": number})).await;
    }
    let page = async |query: &str| worker.get(&format!("/v1/executions/e/events?{query}")).await;
    let numbers = |page: &Value| -> Vec<u64> {
        page["events"].as_array().unwrap().iter().map(|event| event["payload"].as_u64().unwrap()).collect()
    };
    let first = page("limit=3").await;
    assert_eq!((numbers(&first), &first["counts"]), (vec![0, 1, 2], &json!({"even": 4, "odd": 3})));
    // An event that is taken meanwhile doesn't shift the pages.
    let turn = worker.take("e").await;
    let taken = worker.taken("even");
    worker.suspend(turn, vec![taken], None).await;
    let cursor = first["cursor"].as_str().unwrap();
    let second = page(&format!("limit=3&cursor={cursor}")).await;
    assert_eq!(numbers(&second), [3, 4, 5]);
    let last = page(&format!("cursor={}", second["cursor"].as_str().unwrap())).await;
    assert_eq!((numbers(&last), &last["cursor"]), (vec![6], &Value::Null));
    for wrong in ["cursor=nonsense", "cursor=7.0", "limit=0", "limit=501", "page=2"] {
        let path = format!("/v1/executions/e/events?{wrong}");
        let (status, problem) = worker.caller.send(Method::GET, &path, None).await;
        assert_eq!(status.as_u16(), 400, "{problem}");
    }
}
