//! Requests: an event whose sender asks for an answer.

use axum::http::Method;
use serde_json::{Value, json};
use tickover_core::execution::journal::{Entry, Happened};
use tickover_service::executions::StartedTurn;

use crate::worker::{Worker, completed, name, payload};

impl Worker {
    /// Sends an event and asks for its answer.
    async fn ask(&self, wait: &str, body: Value) -> (u16, Value) {
        let path = format!("/v1/executions/e/events/add?answer={wait}");
        let (status, answer) = self.caller.send(Method::POST, &path, Some(&body)).await;
        (status.as_u16(), answer)
    }

    /// The answer to the event with this id.
    fn answered(&self, event: &str, answer: &Value) -> Entry {
        self.entry(Happened::Captured { name: name(&format!("answer:{event}")), value: payload(answer) })
    }
}

#[tokio::test]
async fn a_request_is_answered_in_time_or_later_by_its_id_or_told_that_it_never_will() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let turn = worker.take("e").await;
    let (status, sent) = worker.ask("1s", json!({"payload": 7})).await;
    assert_eq!((status, &sent["pending"], sent.get("answer")), (202, &json!(1), None));
    let id = sent["event_id"].as_str().expect("an id").to_owned();
    assert_eq!(worker.ask("0s", json!({"event_id": "b"})).await.0, 202);

    // Only what is written counts, and only for its own id.
    let entries = vec![worker.taken("add"), worker.answered(&id, &json!(null))];
    let execution = worker.record(&turn, entries).await.expect("a record");
    let (status, sent) = worker.ask("20s", json!({"event_id": id})).await;
    let expected = json!({"duplicate": true, "pending": 1, "event_id": id, "answer": null});
    assert_eq!((status, &sent), (200, &expected));
    let (status, sent) = worker.ask("1s", json!({"event_id": "b"})).await;
    assert_eq!((status, sent), (202, json!({"duplicate": true, "pending": 1, "event_id": "b"})));

    worker.close(StartedTurn { execution, ..turn }, vec![], completed(&json!(1))).await;
    let (status, problem) = worker.ask("20s", json!({"event_id": "b"})).await;
    assert_eq!((status, &problem["code"]), (409, &json!("unanswered")));
    assert_eq!(worker.ask("0s", json!({"event_id": id})).await.0, 200, "answers stay");
    let (status, problem) = worker.ask("21s", json!({})).await;
    assert_eq!((status, &problem["field"]), (400, &json!("answer")));
}
