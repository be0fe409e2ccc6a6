//! A system whose queue is lost with its process starts again, and finds what the last process could tell nobody.

use tickover_core::duration::Millis;

use super::mortal::NEVER;
use super::remote_id;
use super::scene::{Scene, id, name};
use crate::claim::ClaimRequest;

#[tokio::test]
async fn a_system_that_starts_wakes_whoever_waits_for_a_step_that_has_ended_and_nobody_else() {
    let scene = Scene::new();
    let turn = scene.started("e", None).await;
    let entries = scene.start_remote(&turn.execution, 2).await;
    scene.wait(&turn, entries, true).await;
    scene.service.hint_all().await.unwrap();
    assert_eq!(scene.execution("e").await.wakes, 0, "none of its steps has ended");
    let step = remote_id(&scene.execution("e").await, &name("label[0]"));
    let request = ClaimRequest {
        worker: None,
        max: 1,
        lease: Millis::from_secs(3_600),
        wait: Millis::ZERO,
        provides: vec![],
    };
    let claimed = scene.service.claim_by_id(&step, &request).await.unwrap().unwrap();
    scene.crash_after(1);
    let _ = scene.service.complete(&step, &claimed.token, None).await;
    scene.crash_after(NEVER);
    assert_eq!(scene.execution("e").await.wakes, 0, "nothing has notified it");
    scene.service.hint_all().await.unwrap();
    let turn = scene.turn().await.unwrap();
    assert_eq!(turn.execution.id, id("e"));
}
