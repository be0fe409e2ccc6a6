//! Paused queues whose messages functions receive: no message is received again and again, and no task is lost.

use tickover_core::duration::Millis;
use tickover_service::claim::{Delivered, Hinted, Isolation};
use tickover_service::ports::{Outgoing, Queue as _};
use tickover_tests::scene::{Scene, claim_request, queue_name, request, task_id};

use super::tick_of;

const HIDDEN: Millis = Millis::from_secs(360);

async fn scheduled(count: u32) -> Scene {
    let scene = Scene::in_memory();
    for number in 0..count {
        scene.service.schedule(request("work", Some(&number.to_string()), None)).await.unwrap();
    }
    scene
}

async fn pause(scene: &Scene, paused: bool) {
    scene.service.pause_queue(&queue_name("work"), paused).await.unwrap();
    // Processes cache for a while what they know of a queue.
    scene.clock.advance(Millis::from_secs(6));
}

/// Invokes a function with all visible messages, and deletes those that it has processed. Returns how many messages
/// there were, and the claimed tasks.
async fn deliver(scene: &Scene) -> (usize, Vec<String>) {
    let (queue, mut count, mut taken) = (queue_name("work"), 0, vec![]);
    loop {
        let messages = scene.queue.receive(&queue, 10, HIDDEN, Millis::ZERO).await.unwrap();
        if messages.is_empty() {
            return (count, taken);
        }
        for message in messages {
            count += 1;
            let (body, receipt) = (message.body.as_str(), Some(message.receipt.as_str()));
            let delivered = Delivered { body, receipt, receives: message.receive_count };
            match scene.service.claim_hinted(delivered, &claim_request(1), Isolation::Shared).await {
                Ok(Hinted::Taken(claimed)) => taken.push(claimed.task.id.to_string()),
                Ok(Hinted::Spent) => scene.queue.delete(&queue, &message.receipt).await.unwrap(),
                Ok(Hinted::Suspect) | Err(_) => {}
            }
        }
    }
}

#[tokio::test]
async fn messages_of_a_paused_queue_are_received_once_and_sent_again_within_a_minute_of_its_resuming() {
    let scene = scheduled(300).await;
    pause(&scene, true).await;
    assert_eq!(deliver(&scene).await, (300, vec![]));
    for minute in 1..=24 * 60 {
        tick_of(&scene, minute, 0).await;
        assert_eq!(deliver(&scene).await, (0, vec![]), "minute {minute}");
    }
    pause(&scene, false).await;
    scene.clock.advance(Millis::from_secs(10));
    scene.fire().await;
    let (count, taken) = deliver(&scene).await;
    assert_eq!((count, taken.len()), (300, 300), "one message each");
}

#[tokio::test]
async fn pausing_and_resuming_again_and_again_multiplies_nothing() {
    let scene = scheduled(50).await;
    for _ in 0..10 {
        pause(&scene, true).await;
        assert_eq!(deliver(&scene).await.1, [""; 0]);
        pause(&scene, false).await;
        // Paused again before the resuming walk begins, and while its messages are in flight.
        pause(&scene, true).await;
        scene.clock.advance(Millis::from_secs(10));
        scene.fire().await;
        pause(&scene, false).await;
        scene.clock.advance(Millis::from_secs(10));
        scene.fire().await;
        let depth = scene.queue.depth(&queue_name("work")).await.unwrap();
        assert_eq!(depth.visible + depth.delayed, 50);
    }
    assert_eq!(deliver(&scene).await.1.len(), 50);
}

#[tokio::test]
async fn tasks_parked_for_long_are_sent_within_three_minutes_if_the_walks_are_lost() {
    let scene = scheduled(1).await;
    let queue = queue_name("work");
    pause(&scene, true).await;
    deliver(&scene).await;
    // Until the tick has moved the task's due slot far ahead.
    for minute in 1..=35 {
        tick_of(&scene, minute, 0).await;
    }
    pause(&scene, false).await;
    scene.clock.advance(Millis::from_secs(10));
    scene.lose_messages(&tickover_core::id::QueueName::timers()).await;
    for minute in 36..=38 {
        tick_of(&scene, minute, 0).await;
        scene.fire().await;
    }
    let depth = scene.queue.depth(&queue).await.unwrap();
    assert_eq!(depth.visible, 1);
    assert_eq!(deliver(&scene).await.1, ["0"]);
}

#[tokio::test]
async fn a_second_message_of_a_parked_task_is_deleted_like_the_first() {
    let scene = scheduled(1).await;
    let queue = queue_name("work");
    let message = scene.queue.receive(&queue, 1, Millis::ZERO, Millis::ZERO).await.unwrap().remove(0);
    let again = Outgoing::again(message.body, Millis::ZERO);
    scene.queue.send(&queue, &[again]).await.unwrap();
    pause(&scene, true).await;
    assert_eq!(deliver(&scene).await.0, 2);
    assert!(scene.queue.depth(&queue).await.unwrap().is_empty());
    let parked = scene.service.describe(&task_id("0")).await.unwrap().task;
    assert!(parked.parked.is_paused() && parked.version == 2, "one write: {parked:?}");
}
