//! Messages of tasks that have ended, and messages for other workers: however many there are, claims find work.

use tickover_core::duration::Millis;
use tickover_core::task::command::Start;
use tickover_core::task::hint::Hint;
use tickover_core::timeout::LifeTimeout;
use tickover_service::claim::{ClaimRequest, Delivered, Isolation};
use tickover_service::lease::LeaseToken;
use tickover_service::ports::{Outgoing, Queue as _};
use tickover_tests::scene::{Scene, claim_request, queue_name, request, task_id};

/// A queue that holds the messages of so many cancelled tasks, because a cancel can't find them.
async fn with_ended_messages(count: u32) -> Scene {
    let scene = Scene::in_memory();
    for number in 0..count {
        let id = format!("dead-{number}");
        let task = scene.service.schedule(request("work", Some(&id), None)).await.unwrap().task;
        scene.service.cancel(&task_id(&id), false).await.unwrap();
        let message = Outgoing::again(Hint::of(&task).body().unwrap(), Millis::ZERO);
        scene.queue.send(&queue_name("work"), &[message]).await.unwrap();
    }
    scene
}

#[tokio::test]
async fn a_queue_in_the_process_does_not_count_messages_of_ended_tasks() {
    let scene = Scene::in_memory();
    let work = queue_name("work");
    for id in ["cancelled", "timed-out", "completed", "waiting"] {
        let mut wanted = request("work", Some(id), None);
        if id == "timed-out" {
            wanted.timeouts.schedule_to_close =
                Some(LifeTimeout { after: Millis::from_secs(30), is_error: true });
        }
        scene.service.schedule(wanted).await.unwrap();
    }
    scene.service.cancel(&task_id("cancelled"), false).await.unwrap();
    let claimed = scene.service.claim_by_id(&task_id("completed"), &claim_request(1)).await.unwrap().unwrap();
    scene.service.complete(&task_id("completed"), &claimed.token, None).await.unwrap();
    scene.clock.advance(Millis::from_secs(30));
    scene.tick().await.unwrap();
    let depth = scene.queue.depth(&work).await.unwrap();
    assert_eq!((depth.visible, depth.in_flight, depth.delayed), (1, 0, 0));
    assert_eq!(scene.claim("work").await.unwrap().unwrap().task.id, task_id("waiting"));
}

#[tokio::test]
async fn a_claim_finds_work_behind_twenty_thousand_messages_of_ended_tasks() {
    for max in [1, 10] {
        let scene = with_ended_messages(20_000).await;
        scene.service.schedule(request("work", Some("live"), None)).await.unwrap();
        let wait = Millis::from_secs(20);
        let asked = ClaimRequest { wait, ..claim_request(max) };
        let claimed = scene.service.claim(&queue_name("work"), &asked).await.unwrap();
        assert_eq!(claimed.len(), 1, "a claim for {max}");
        assert_eq!(claimed[0].task.id, task_id("live"));
        let depth = scene.queue.depth(&queue_name("work")).await.unwrap();
        assert_eq!((depth.visible, depth.in_flight), (0, 1), "the messages of ended tasks are deleted");
    }
}

#[tokio::test]
async fn a_claim_without_a_wait_finds_work_too_and_returns_the_surplus() {
    let scene = with_ended_messages(2_000).await;
    for number in 0..30 {
        scene.service.schedule(request("work", Some(&format!("live-{number}")), None)).await.unwrap();
    }
    assert!(scene.claim("work").await.unwrap().is_some());
    let depth = scene.queue.depth(&queue_name("work")).await.unwrap();
    assert_eq!((depth.visible, depth.in_flight), (29, 1), "the rest is visible at once");
}

#[tokio::test]
async fn the_message_of_a_task_leased_for_days_is_no_dead_letter_and_a_lost_worker_is_replaced() {
    let scene = Scene::in_memory();
    let work = queue_name("work");
    scene.service.schedule(request("work", Some("long"), None)).await.unwrap();
    let held = scene.claim("work").await.unwrap().unwrap();
    let receipt = LeaseToken::decode(&held.token).unwrap().receipt.unwrap();
    // A message can't be hidden for longer than 12 hours: from then on, its worker can't extend that.
    scene.queue.change_visibility(&work, &receipt, Millis::ZERO).await.unwrap();
    for _ in 0..6_000 {
        scene.clock.advance(Millis::from_secs(20));
        scene.service.heartbeat(&task_id("long"), &held.token, None).await.unwrap();
        assert!(scene.claim("work").await.unwrap().is_none(), "a worker has it");
    }
    let mut receives = 0;
    for _ in 0..7 {
        scene.clock.advance(Millis::from_secs(10));
        if let Some(taken_over) = scene.claim("work").await.unwrap() {
            assert_eq!(taken_over.task.losses, 1);
            let receipt = LeaseToken::decode(&taken_over.token).unwrap().receipt.unwrap();
            scene.queue.change_visibility(&work, &receipt, Millis::ZERO).await.unwrap();
            let shown = scene.queue.receive(&work, 1, Millis::ZERO, Millis::ZERO).await.unwrap();
            receives = shown[0].receive_count;
            break;
        }
    }
    assert!((1..40).contains(&receives), "received {receives} times, and taken over within a minute");
}

#[tokio::test]
async fn work_of_an_unknown_kind_is_left_to_other_workers_until_its_start_timeout() {
    let scene = Scene::in_memory();
    let work = queue_name("work");
    let mut strange = request("work", Some("strange"), None);
    strange.start = Start::After(Millis::ZERO);
    scene.service.schedule(strange).await.unwrap();
    let before = scene.service.describe(&task_id("strange")).await.unwrap().task;
    let mut waits = 0;
    for _ in 0..3_600 {
        let offered = scene.service.work_apart(&work, &claim_request(10), &|_| false).await.unwrap();
        assert!(offered.work.is_empty() && offered.suspects.is_empty());
        scene.clock.advance(Millis::from_secs(1));
        waits += u32::from(scene.queue.depth(&work).await.unwrap().visible > 0);
    }
    assert!(waits < 80, "it is received {waits} times in an hour");
    assert_eq!(scene.service.describe(&task_id("strange")).await.unwrap().task, before, "it wasn't claimed");
    scene.clock.advance(Millis::from_secs(60));
    let offered = scene.service.work_apart(&work, &claim_request(10), &|_| true).await.unwrap();
    assert_eq!(offered.work.len(), 1);
}

#[tokio::test]
async fn a_message_that_a_function_leaves_to_others_often_is_replaced_before_it_is_a_dead_letter() {
    let scene = Scene::in_memory();
    let work = queue_name("work");
    scene.service.schedule(request("work", Some("a"), None)).await.unwrap();
    scene.service.claim(&work, &claim_request(1)).await.unwrap();
    scene.clock.advance(Millis::from_secs(60));
    let shown = scene.queue.receive(&work, 1, Millis::from_secs(360), Millis::ZERO).await.unwrap().remove(0);
    let held = scene.service.claim_by_id(&task_id("a"), &claim_request(1)).await.unwrap();
    assert!(held.is_some());
    let seldom = Delivered { body: &shown.body, receipt: Some(&shown.receipt), receives: 2 };
    assert!(scene.service.claim_hinted(seldom, &claim_request(1), Isolation::Shared).await.is_err());
    // It becomes visible when the lease ends, and not when the queue's visibility timeout ends.
    scene.clock.advance(Millis::from_secs(60));
    assert_eq!(scene.queue.depth(&work).await.unwrap().visible, 1);
    let often = Delivered { receives: 50, ..seldom };
    assert!(scene.service.leave_to_others(often).await.is_ok(), "a new message replaces it");
    assert!(scene.service.leave_to_others(seldom).await.is_err());
}
