//! Lost hints of queues whose priorities wait apart from each other: that one class flows says nothing about the others.

use tickover_core::duration::Millis;
use tickover_core::flow::{FlowRequest, Priority};
use tickover_core::id::{QueueName, WorkflowName};
use tickover_core::lane::Lane;
use tickover_service::claim::{Delivered, Hinted, Isolation};
use tickover_service::executions::StartRequest;
use tickover_service::ports::Queue as _;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_sqs::receipt_of;
use tickover_tests::class_queue::ClassQueue;
use tickover_tests::scene::{Scene, claim_request, queue_name, request, task_id};

use super::tick_of;

fn of(id: &str, priority: Priority) -> ScheduleRequest {
    ScheduleRequest {
        flow: FlowRequest { priority, ..FlowRequest::default() },
        ..request("work", Some(id), None)
    }
}

/// Schedules a normal task and completes the first that is received from the normal queue, as an event source does that
/// has it alone.
async fn flow(scene: &Scene, id: &str) {
    flow_at(scene, &queue_name("work"), Priority::Normal, id).await;
}

/// The same for a class and its queue.
async fn flow_at(scene: &Scene, there: &QueueName, class: Priority, id: &str) {
    let service = &scene.service;
    service.schedule(of(id, class)).await.unwrap();
    let received = scene.queue.receive(there, 1, Millis::from_secs(60), Millis::ZERO).await.unwrap();
    let receipt = receipt_of(class, received[0].receipt.clone());
    let delivered = Delivered { body: &received[0].body, receipt: Some(&receipt), receives: 1 };
    let hinted = service.claim_hinted(delivered, &claim_request(1), Isolation::Alone).await.unwrap();
    scene.queue.delete(there, &received[0].receipt).await.unwrap();
    if let Hinted::Taken(task) = hinted {
        service.complete(&task.task.id, &task.token, None).await.unwrap();
    }
}

async fn messages(scene: &Scene, queues: &ClassQueue, class: Priority) -> u64 {
    let there = queues.of(&queue_name("work"), class);
    scene.queue.open(&there).await.unwrap();
    scene.queue.depth(&there).await.unwrap().visible
}

#[tokio::test]
async fn a_backlog_of_low_priority_gets_no_further_hints_while_normal_work_flows() {
    let (scene, queues) = ClassQueue::scene();
    for number in 0..20 {
        scene.service.schedule(of(&format!("low-{number}"), Priority::Low)).await.unwrap();
    }
    for minute in 1..=60 {
        flow(&scene, &format!("n{minute}")).await;
        tick_of(&scene, minute, 0).await;
        scene.fire().await;
    }
    assert_eq!(messages(&scene, &queues, Priority::Low).await, 20);
    assert_eq!(messages(&scene, &queues, Priority::Normal).await, 0);
}

#[tokio::test]
async fn a_lost_hint_of_high_priority_is_found_while_normal_work_waits_and_flows() {
    let (scene, queues) = ClassQueue::scene();
    scene.service.schedule(of("high", Priority::High)).await.unwrap();
    scene.lose_messages(&queues.of(&queue_name("work"), Priority::High)).await;
    scene.service.schedule(of("waits", Priority::Normal)).await.unwrap();
    for minute in 1..=13 {
        flow(&scene, &format!("n{minute}")).await;
        tick_of(&scene, minute, 0).await;
        scene.fire().await;
    }
    assert_eq!(messages(&scene, &queues, Priority::High).await, 1);
}

#[tokio::test]
async fn a_lost_hint_in_a_class_queue_that_is_never_empty_is_found_because_others_of_its_class_flow() {
    let (scene, queues) = ClassQueue::scene();
    let high = queues.of(&queue_name("work"), Priority::High);
    scene.service.schedule(of("lost", Priority::High)).await.unwrap();
    scene.lose_messages(&high).await;
    scene.service.schedule(of("waits", Priority::High)).await.unwrap();
    for minute in 1..=15 {
        flow_at(&scene, &high, Priority::High, &format!("h{minute}")).await;
        tick_of(&scene, minute, 0).await;
        scene.fire().await;
    }
    let task = scene.service.describe(&task_id("lost")).await.unwrap().task;
    assert!(task.ended().is_some() || task.hinted_at.is_some(), "{:?}", task.state);
}

#[tokio::test]
async fn a_turn_that_is_received_from_a_class_queue_moves_the_watermark_of_its_class_alone() {
    let (scene, queues) = ClassQueue::scene();
    let work = queue_name("work");
    let request = StartRequest {
        lane: Lane { priority: Priority::Low, tenant: None },
        ..StartRequest::new(WorkflowName::parse("orders").unwrap(), work.clone())
    };
    scene.service.start(request).await.unwrap();
    let low = queues.of(&work, Priority::Low);
    let received = scene.queue.receive(&low, 1, Millis::from_secs(60), Millis::ZERO).await.unwrap();
    let receipt = receipt_of(Priority::Low, received[0].receipt.clone());
    let delivered = Delivered { body: &received[0].body, receipt: Some(&receipt), receives: 1 };
    let started =
        scene.service.start_turn_among(delivered, &claim_request(1), Isolation::Alone).await.unwrap();
    assert!(matches!(started, Hinted::Taken(_)));
    let records = scene.service.remembered_queues().await.unwrap();
    let marked: Vec<_> = records.iter().flat_map(|record| record.marks.keys()).collect();
    assert_eq!(marked, [&Priority::Low]);
}

#[tokio::test]
async fn work_whose_class_queues_are_deleted_is_hinted_again_in_the_queue_that_is_left() {
    for backlog in [0, 1] {
        let (scene, queues) = ClassQueue::scene();
        for (id, priority) in [("high", Priority::High), ("low", Priority::Low)] {
            scene.service.schedule(of(id, priority)).await.unwrap();
        }
        queues.set(false);
        for number in 0..backlog {
            scene.service.schedule(of(&format!("b{number}"), Priority::Normal)).await.unwrap();
        }
        let mut minute = 0;
        while minute < 15 {
            minute += 1;
            flow(&scene, &format!("n{minute}")).await;
            tick_of(&scene, minute, 0).await;
            scene.fire().await;
        }
        // Of ten that are received, one is a low one.
        for number in 0..10 {
            flow(&scene, &format!("m{number}")).await;
        }
        for id in ["high", "low"] {
            let task = scene.service.describe(&task_id(id)).await.unwrap();
            assert!(task.task.ended().is_some(), "{id} with a backlog of {backlog}: {:?}", task.task.state);
        }
    }
}

#[tokio::test]
async fn a_lease_whose_class_queue_is_deleted_is_kept_and_its_task_completed() {
    let (scene, queues) = ClassQueue::scene();
    scene.service.schedule(of("high", Priority::High)).await.unwrap();
    let claimed = scene.claim("work").await.unwrap().unwrap();
    assert_eq!(claimed.task.id.as_str(), "high");
    queues.set(false);
    scene.service.heartbeat(&claimed.task.id, &claimed.token, None).await.unwrap();
    scene.service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
}
