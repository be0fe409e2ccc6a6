//! Reading one execution, and waiting for it.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::execution::Stuck;
use tickover_core::execution::command::ReleaseReason;
use tickover_core::execution::journal::Happened;
use tickover_core::id::WorkflowName;
use tickover_core::limits::{Limits, WAIT_MAX};
use tickover_service::executions::StartRequest;
use tickover_service::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};
use tickover_tests::process::BOUND;
use tickover_tests::scene::{START, queue_name};

use crate::worker::{Worker, completed, name};

#[tokio::test]
async fn waiting_for_a_result_answers_202_until_there_is_one() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let wait = |path: &'static str| worker.caller.send(Method::GET, path, None);
    let before = worker.caller.scene.clock.now();
    let (status, answer) = wait("/v1/executions/e?wait=5s").await;
    assert_eq!((status, &answer["execution"]["status"]), (StatusCode::ACCEPTED, &json!("pending")));
    assert_eq!(worker.caller.scene.clock.now().since(before).as_u64(), 5_000);
    // Without a wait, the answer is an ordinary description.
    assert_eq!(wait("/v1/executions/e").await.0, StatusCode::OK);
    let turn = worker.take("e").await;
    worker.close(turn, vec![], completed(&json!({"receipt": 7}))).await;
    let (status, answer) = wait("/v1/executions/e?wait=20s").await;
    assert_eq!((status, &answer["execution"]["output"]), (StatusCode::OK, &json!({"receipt": 7})));
    assert_eq!(wait("/v1/executions/nobody?wait=1s").await.0, StatusCode::NOT_FOUND);
    assert_eq!(wait("/v1/executions/e?wait=21s").await.0, StatusCode::BAD_REQUEST);
}

/// The clock stands still: no later read can tell the caller of the end.
#[tokio::test]
async fn a_caller_in_the_process_of_the_end_is_told_of_it() {
    let clock = Arc::new(ManualClock::new(START));
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let ports = Ports { store: Arc::new(MemoryStore::new()), queue, clock, ids: Arc::new(SystemIds) };
    let service = Service::new(ports, Limits::default());
    let workflow = WorkflowName::parse("orders").expect("a name");
    let started = service.start(StartRequest::new(workflow, queue_name("work"))).await.expect("a start");
    let id = started.execution.id;
    let both = async { tokio::join!(service.wait_for_execution(&id, WAIT_MAX), service.terminate(&id)) };
    let (waited, terminated) = tokio::time::timeout(BOUND, both).await.expect("nobody told it");
    let execution = waited.expect("an answer").expect("an execution").execution;
    assert_eq!(execution, terminated.expect("an end").0);
}

#[tokio::test]
async fn each_status_of_a_life_says_what_comes_next() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    assert_eq!(worker.seen("e").await["next"], json!({"what": "waits_for_worker"}));
    let turn = worker.take("e").await;
    let seen = worker.seen("e").await;
    assert_eq!((&seen["status"], &seen["worker"]), (&json!("running"), &json!("tester")));
    assert_eq!(seen["next"], json!({"what": "lease_expires", "at": worker.caller.after(60)}));

    let until = worker.caller.scene.clock.now().plus(Millis::from_secs(3_600));
    let sleep = worker.entry(Happened::Until { name: name("settle"), until });
    worker.suspend(turn, vec![sleep], Some(until)).await;
    let seen = worker.seen("e").await;
    assert_eq!((&seen["status"], &seen["wakes_at"]), (&json!("waiting"), &json!(until.to_rfc3339())));
    assert_eq!(seen["next"], json!({"what": "wakes_up", "at": until.to_rfc3339()}));
    let timer = json!({"kind": "timer", "name": "settle", "until": until.to_rfc3339()});
    assert_eq!(seen["waits_for"], json!([timer]));

    worker.operate("e", "pause").await;
    let seen = worker.seen("e").await;
    assert_eq!((&seen["status"], &seen["next"]), (&json!("paused"), &json!({"what": "waits_for_operator"})));
    worker.operate("e", "cancel").await;
    let seen = worker.seen("e").await;
    assert_eq!((&seen["status"], &seen["cause"]), (&json!("cancelled"), &json!({"category": "cancelled"})));
    assert_eq!(seen["next"]["what"], "deleted");
}

#[tokio::test]
async fn a_sleep_ends_at_its_instant_to_the_second_and_not_before() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let turn = worker.take("e").await;
    let until = worker.caller.scene.clock.now().plus(Millis::from_secs(90));
    worker.suspend(turn, vec![], Some(until)).await;
    worker.caller.pass(88).await;
    assert!(worker.try_take().await.is_none());
    worker.caller.pass(2).await;
    worker.take("e").await;
}

#[tokio::test]
async fn an_execution_whose_workflow_no_worker_knows_is_visible_as_stuck_and_tried_again() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let turn = worker.take("e").await;
    let (service, after) = (&worker.caller.scene.service, Millis::from_secs(30));
    let stuck = ReleaseReason::Stuck(Stuck::UnknownWorkflow { tries: 1 });
    service.release_turn(&turn.execution, turn.lease, after, stuck, None).await.unwrap();
    worker.done_with(&turn).await;
    let seen = worker.seen("e").await;
    assert_eq!((&seen["status"], &seen["stuck"]["code"]), (&json!("pending"), &json!("unknown_workflow")));
    assert_eq!(seen["next"], json!({"what": "becomes_available", "at": worker.caller.after(30)}));
    assert!(worker.try_take().await.is_none());
    worker.caller.pass(30).await;
    worker.take("e").await;
}

#[tokio::test]
async fn an_execution_whose_turns_are_lost_again_and_again_ends_as_poisoned() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let mut turns = 0;
    while worker.try_take().await.is_some() {
        turns += 1;
        assert!(turns < 100, "its turns never end");
        // Its worker dies: the message becomes visible again when the lease ends.
        worker.caller.pass(61).await;
    }
    let seen = worker.seen("e").await;
    assert_eq!((turns, &seen["status"], &seen["error"]["code"]), (10, &json!("failed"), &json!("poisoned")));
}
