//! No turn of a paused queue starts, whichever worker receives the message.

use axum::http::StatusCode;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::execution::message::TurnHint;
use tickover_service::ports::Queue as _;
use tickover_tests::scene::{claim_request, queue_name};

use crate::worker::{Worker, completed};

#[tokio::test]
async fn a_turn_of_a_paused_queue_is_parked_and_gets_its_message_when_the_queue_is_resumed() {
    let worker = Worker::default();
    let scene = &worker.caller.scene;
    let queue = queue_name("workflows");
    worker.start("e", json!({"execution_timeout": "1h"})).await;
    assert_eq!(worker.caller.post("/v1/queues/workflows/pause", json!({})).await.0, StatusCode::OK);
    worker.caller.pass(10).await;
    // As on Lambda: the queue's poller receives the message, and it is deleted where no turn started.
    let hidden = Millis::from_secs(60);
    let mut messages = scene.queue.receive(&queue, 10, hidden, Millis::ZERO).await.unwrap();
    let message = messages.pop().expect("the hint");
    let taken = scene.service.start_turn(&message.body, &claim_request(1)).await.unwrap();
    assert!(taken.is_none(), "a turn of a paused queue");
    scene.queue.delete(&queue, &message.receipt).await.unwrap();
    assert_eq!(worker.seen("e").await["status"], "pending");
    for _ in 0..10 {
        worker.caller.pass(180).await;
        scene.tick().await.unwrap();
        assert!(scene.queue.depth(&queue).await.unwrap().is_empty(), "nothing is sent while it is paused");
    }
    assert_eq!(worker.caller.post("/v1/queues/workflows/resume", json!({})).await.0, StatusCode::OK);
    worker.caller.pass(10).await;
    scene.fire().await;
    let turn = worker.take("e").await;
    worker.close(turn, vec![], completed(&json!(1))).await;
}

#[tokio::test]
async fn a_message_without_work_is_deleted_in_spite_of_a_pause() {
    let worker = Worker::default();
    let scene = &worker.caller.scene;
    worker.start("e", json!({})).await;
    let turn = worker.take("e").await;
    let body = TurnHint::of(&turn.execution).body().unwrap();
    worker.close(turn, vec![], completed(&json!(1))).await;
    assert_eq!(worker.caller.post("/v1/queues/workflows/pause", json!({})).await.0, StatusCode::OK);
    worker.caller.pass(10).await;
    assert!(scene.service.start_turn(&body, &claim_request(1)).await.unwrap().is_none());
    let depth = scene.queue.depth(&queue_name("workflows")).await.unwrap();
    assert_eq!(depth.visible + depth.delayed + depth.in_flight, 0);
}
