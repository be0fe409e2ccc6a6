//! Queues whose workers didn't come when they were called.

use super::{limit, needing, on};
use crate::executions::tests::scene::Scene;

#[tokio::test]
async fn the_first_that_comes_from_a_queue_that_was_called_in_vain_has_the_others_called() {
    let scene = Scene::new();
    let two = || needing(&[limit("customer", 2)]);
    for _ in 0..2 {
        scene.add(two()).await;
    }
    let running = [scene.claims().await.unwrap(), scene.claims().await.unwrap()];
    for _ in 0..3 {
        scene.add(on("late", two())).await;
    }
    for claimed in &running {
        scene.completes(claimed).await;
    }
    while !scene.gate_of("customer").await.holders.is_empty() {
        scene.advance(20);
        scene.tick().await.unwrap();
    }
    let _first = scene.claim_from("late").await.unwrap();
    assert_eq!(scene.gate_of("customer").await.holders.len(), 2);
}
