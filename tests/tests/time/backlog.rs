//! Hints: a lost one is found, and the search for it doesn't multiply a long backlog.

use tickover_core::duration::Millis;
use tickover_service::ports::Queue as _;
use tickover_tests::scene::{Scene, queue_name, request};

use super::tick_of;

const WAITING: u64 = 10_000;

#[tokio::test]
async fn ten_thousand_pending_tasks_without_a_worker_get_almost_no_further_hints() {
    let scene = Scene::in_memory();
    let ids: Vec<String> = (0..WAITING).map(|number| format!("t{number}")).collect();
    for some in ids.chunks(100) {
        let requests = some.iter().map(|id| request("work", Some(id), None)).collect();
        scene.service.schedule_batch(requests).await.unwrap();
    }
    for minute in 1..=30 {
        tick_of(&scene, minute, 0).await;
        // A tick with more work than its share has passed the rest on by messages.
        scene.fire().await;
    }
    let depth = scene.queue.depth(&queue_name("work")).await.unwrap();
    assert!(depth.visible >= WAITING);
    assert!(depth.visible < WAITING * 105 / 100, "{} hints for {WAITING} tasks", depth.visible);
}

#[tokio::test]
async fn the_hint_that_a_crash_lost_is_found_at_the_backstop_when_its_queue_is_empty() {
    let scene = Scene::in_memory();
    scene.service.schedule(request("work", Some("a"), None)).await.unwrap();
    scene.lose_messages(&queue_name("work")).await;
    for minute in 1..=12 {
        tick_of(&scene, minute, 0).await;
    }
    assert_eq!(scene.claim("work").await.unwrap().unwrap().task.id.as_str(), "a");
    assert!(scene.service.now() < super::after(13 * 60));
}

#[tokio::test]
async fn the_hint_that_a_crash_lost_is_found_in_a_busy_queue_once_later_ones_were_claimed() {
    let scene = Scene::in_memory();
    scene.service.schedule(request("work", Some("lost"), None)).await.unwrap();
    scene.lose_messages(&queue_name("work")).await;
    let mut claimed = Vec::new();
    for minute in 1..=60 {
        // The queue is never empty, and its tasks are claimed all the time.
        for number in 0..3 {
            let id = format!("t{minute}-{number}");
            scene.service.schedule(request("work", Some(&id), None)).await.unwrap();
        }
        while claimed.len() < minute * 3 - 2 {
            let task = scene.claim("work").await.unwrap().unwrap();
            scene.service.complete(&task.task.id, &task.token, None).await.unwrap();
            claimed.push(task.task.id.to_string());
        }
        tick_of(&scene, u64::try_from(minute).unwrap(), 0).await;
        scene.clock.advance(Millis::from_secs(1));
    }
    assert!(claimed.contains(&"lost".to_owned()), "{claimed:?}");
}
