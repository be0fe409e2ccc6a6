//! Starts to the millisecond, from a queue that counts whole seconds.

use tickover_core::duration::Millis;
use tickover_core::task::command::Start;
use tickover_service::claim::ClaimRequest;
use tickover_service::ports::{Outgoing, Queue as _};
use tickover_tests::scene::{Scene, claim_request, queue_name, request};

use super::after;

/// Tasks that start in so many milliseconds. Their messages are already visible, because SQS rounds down.
async fn arriving_early(starts_ms: &[u64]) -> Scene {
    let scene = Scene::in_memory();
    let work = queue_name("work");
    for start_ms in starts_ms {
        let mut asked = request("work", Some(&format!("in-{start_ms}")), None);
        asked.start = Start::After(Millis::new(*start_ms));
        scene.service.schedule(asked).await.unwrap();
    }
    scene.clock.advance(Millis::from_secs(60));
    let messages = scene.queue.receive(&work, 10, Millis::from_secs(60), Millis::ZERO).await.unwrap();
    assert_eq!(messages.len(), starts_ms.len());
    for message in messages {
        scene.queue.send(&work, &[Outgoing::again(message.body, Millis::ZERO)]).await.unwrap();
        scene.queue.delete(&work, &message.receipt).await.unwrap();
    }
    scene.clock.set_back(Millis::from_secs(60));
    scene
}

async fn claim_ten(scene: &Scene) -> Vec<String> {
    let request = ClaimRequest { wait: Millis::from_secs(1), ..claim_request(10) };
    let claimed = scene.service.claim(&queue_name("work"), &request).await.unwrap();
    claimed.into_iter().map(|task| task.task.id.to_string()).collect()
}

#[tokio::test]
async fn a_start_within_the_second_is_waited_for_and_not_a_millisecond_longer() {
    let scene = arriving_early(&[600]).await;
    assert_eq!(claim_ten(&scene).await, ["in-600"]);
    assert_eq!(scene.service.now(), after(0).plus(Millis::new(600)));
}

#[tokio::test]
async fn ready_work_is_returned_without_a_wait_for_later_starts() {
    let scene = arriving_early(&[0, 400, 900]).await;
    assert_eq!(claim_ten(&scene).await, ["in-0"]);
    assert_eq!(scene.service.now(), after(0));
    // The others went back to the queue as new messages, each delayed until its own start.
    assert_eq!(claim_ten(&scene).await, ["in-400"]);
    assert_eq!(scene.service.now(), after(0).plus(Millis::new(400)));
    assert_eq!(claim_ten(&scene).await, ["in-900"]);
    assert_eq!(scene.service.now(), after(0).plus(Millis::new(900)));
}
