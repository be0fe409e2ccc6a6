//! Reads of the ticks' record that are older than the message that leads to them.

use super::*;
use crate::executions::tests::scene::Scene;

#[tokio::test]
async fn a_sweep_goes_on_whose_first_reads_are_from_before_its_token() {
    let scene = Scene::new();
    let before = scene.store.tick_record().await.unwrap();
    let token = scene.service.replace_token(0, None).await.unwrap().unwrap();
    scene.read_ticks_as(before.as_ref(), 3);
    let stop_at = scene.now().plus(Millis::from_secs(50));
    let sweep = Sweep { shard: 0, since: Some(token) };
    assert!(scene.service.continue_sweep(sweep, stop_at).await.unwrap().is_some());
    // It has ended now: a repetition finds nothing to do.
    assert!(scene.service.continue_sweep(sweep, stop_at).await.unwrap().is_none());
}
