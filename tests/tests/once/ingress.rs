//! A request that arrives by message is executed once, whatever answers are lost. Its message is acknowledged as soon
//! as the store answers. If an operator redrives the message, which makes it a new one, the request is recognised as
//! done.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::Arc;

use serde_json::{Value, json};
use tickover_api::Problem;
use tickover_core::id::ExecutionId;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::Status;
use tickover_lambda::ingress::{Accepted, Kind};
use tickover_lambda::message;
use tickover_service::claim::ClaimedTask;
use tickover_service::executions::StartRequest;
use tickover_service::memory::MemoryStore;
use tickover_service::ports::Store;
use tickover_tests::faults::AfterEachWrite;
use tickover_tests::scene::{Scene, claim_request, queue_name, request, task_id};

const INGRESS: Accepted = Accepted {
    kinds: &[Kind::Task, Kind::Execution, Kind::Event, Kind::Complete, Kind::Fail],
    without_envelope: None,
};
/// More answers than a delivery has writes: all of them are lost.
const FOR_GOOD: u64 = 1_000;

/// The kind of a request.
#[derive(Clone, Copy, Debug)]
enum Asked {
    TaskWithId,
    TaskWithKey,
    Execution,
    Event,
    Complete,
    Fail,
}

const ALL: [Asked; 6] =
    [Asked::TaskWithId, Asked::TaskWithKey, Asked::Execution, Asked::Event, Asked::Complete, Asked::Fail];

/// The state before the message arrives: its store, and the body of the message.
async fn before(asked: Asked) -> (Arc<dyn Store>, Value) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let scene = Scene::over(Arc::clone(&store));
    let large = "x".repeat(10_000);
    let (kind, body) = match asked {
        Asked::TaskWithId => ("task", json!({"queue": "work", "kind": "k", "id": "t", "input": large})),
        Asked::TaskWithKey => {
            ("task", json!({"queue": "work", "kind": "k", "idempotency_key": "order-7", "input": large}))
        }
        Asked::Execution => {
            ("execution", json!({"workflow": "orders", "id": "order-7", "queue": "work", "input": large}))
        }
        Asked::Event => {
            let id = ExecutionId::parse("order-7").ok();
            let workflow = tickover_core::id::WorkflowName::parse("orders").unwrap();
            let start = StartRequest { id, ..StartRequest::new(workflow, queue_name("work")) };
            scene.service.start(start).await.unwrap();
            ("event", json!({"id": "order-7", "name": "shipped", "event_id": "e-1", "payload": large}))
        }
        Asked::Complete => {
            let lease = running(&scene).await.token;
            ("complete", json!({"id": "t", "lease": lease, "output": large}))
        }
        Asked::Fail => {
            let lease = running(&scene).await.token;
            let error = json!({"code": "smtp", "message": "no route"});
            ("fail", json!({"id": "t", "lease": lease, "error": error}))
        }
    };
    (store, json!({"v": 1, "type": kind, "body": body}))
}

async fn running(scene: &Scene) -> ClaimedTask {
    let mut request = request("work", Some("t"), None);
    request.retry = RetryPolicy::fixed(3, tickover_core::duration::Millis::ZERO);
    scene.service.schedule(request).await.unwrap();
    scene.claim("work").await.unwrap().unwrap()
}

async fn deliver(scene: &Scene, id: &str, body: &Value) -> Result<(), Problem> {
    let message = json!({"messageId": id, "body": body.to_string()});
    message::take(&scene.service, &INGRESS, serde_json::from_value(message).unwrap()).await
}

/// How often the request was executed, as a caller can see it.
async fn done(asked: Asked, scene: &Scene) -> usize {
    let service = &scene.service;
    match asked {
        Asked::TaskWithId | Asked::TaskWithKey => {
            let found = service.claim(&queue_name("work"), &claim_request(10)).await.unwrap();
            for task in &found {
                service.complete(&task.task.id, &task.token, None).await.unwrap();
            }
            found.len()
        }
        Asked::Execution => {
            let found = service.next_work(&queue_name("work"), &claim_request(10)).await.unwrap();
            found.len()
        }
        Asked::Event => {
            let id = ExecutionId::parse("order-7").unwrap();
            let described = service.execution(&id).await.unwrap();
            usize::try_from(described.unwrap().execution.pending_events).unwrap()
        }
        Asked::Complete => {
            let task = service.describe(&task_id("t")).await.unwrap().task;
            assert_eq!(task.status(), Status::Completed);
            task.history.len()
        }
        Asked::Fail => {
            let task = service.describe(&task_id("t")).await.unwrap().task;
            assert_eq!(task.status(), Status::Pending, "it has attempts left");
            task.history.len()
        }
    }
}

/// Delivers a message while these answers are lost, until it is acknowledged; returns how many writes its first
/// delivery had. Then the message is redriven.
async fn story(asked: Asked, lost: std::ops::Range<u64>) -> u64 {
    let (store, body) = before(asked).await;
    let is_short = lost.end.saturating_sub(lost.start) <= 1;
    let losing = Arc::new(AfterEachWrite::losing(Arc::clone(&store), lost.clone()));
    let deaf = Scene::over(losing.clone() as Arc<dyn Store>);
    let healthy = Scene::over(store);

    let first = deliver(&deaf, "m-1", &body).await;
    let writes = losing.writes();
    assert!(first.is_ok() || !is_short, "{asked:?}, {lost:?}: the service repeats a write by itself");
    if let Err(problem) = first {
        assert!(problem.is_retryable(), "{asked:?}, {lost:?}: {}", problem.code());
        let again = deliver(&healthy, "m-1", &body).await;
        assert!(again.is_ok(), "{asked:?}, {lost:?}: {:?}", again.err().map(|problem| problem.code()));
    }

    // Its deletion failed again and again, or an operator redrove all messages: a new id, and the same body.
    let redriven = deliver(&healthy, "m-2", &body).await;
    assert!(redriven.is_ok(), "{asked:?}, {lost:?}: {:?}", redriven.err().map(|problem| problem.code()));
    // Hints of calls with lost answers are in the other scene's queue; each leads to the same record.
    let found = done(asked, &healthy).await + if is_queued(asked) { done(asked, &deaf).await } else { 0 };
    assert_eq!(found, 1, "{asked:?}, {lost:?}: done once");

    // And once more when the work is over.
    let late = deliver(&healthy, "m-3", &body).await;
    assert!(late.is_ok(), "{asked:?}, {lost:?}: {:?}", late.err().map(|problem| problem.code()));
    let more = if is_queued(asked) { done(asked, &healthy).await } else { 0 };
    assert_eq!(more, 0, "{asked:?}, {lost:?}: what was done isn't done again");
    writes
}

const fn is_queued(asked: Asked) -> bool {
    match asked {
        Asked::TaskWithId | Asked::TaskWithKey | Asked::Execution => true,
        Asked::Event | Asked::Complete | Asked::Fail => false,
    }
}

#[tokio::test]
async fn a_committed_request_is_acknowledged_or_recognised_whichever_answers_are_lost() {
    for asked in ALL {
        let writes = story(asked, 0..0).await;
        assert!(writes >= 1, "{asked:?}");
        for number in 0..writes {
            story(asked, number..number + 1).await;
            story(asked, number..number + FOR_GOOD).await;
        }
    }
}

/// Why senders should give an id: the one that is derived from the message changes with a redrive.
#[tokio::test]
async fn a_task_without_an_id_is_the_same_for_each_delivery_and_another_one_after_a_redrive() {
    let scene = Scene::in_memory();
    let body = json!({"v": 1, "type": "task", "body": {"queue": "work", "kind": "k"}});
    for id in ["m-1", "m-1", "m-2"] {
        assert!(deliver(&scene, id, &body).await.is_ok());
    }
    let found = scene.service.claim(&queue_name("work"), &claim_request(10)).await.unwrap();
    assert_eq!(found.len(), 2);
}
