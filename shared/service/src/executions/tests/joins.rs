//! Joins: the end of the last remote step of several tells their execution, and no other does.

use tickover_core::duration::Millis;
use tickover_core::execution::Slot;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::id::Nonce;
use tickover_core::payload::Json;

use super::scene::{Scene, queue, remote_step};
use crate::claim::ClaimRequest;
use crate::executions::RemoteStep;

#[tokio::test]
async fn a_step_that_is_refused_keeps_its_join_from_nothing_and_tells_its_execution_once_it_is_mended() {
    let scene = Scene::new();
    let turn = scene.started("e", None).await;
    let slot = |place| Some(Slot { label: Nonce::from_bytes([7; 8]), item: 0, place, of: 3 });
    let step = |nth: u16| RemoteStep { slot: slot(nth), ..remote_step(nth.into()) };
    let too_large = Json::string(&"x".repeat(400 * 1024));
    let refused = RemoteStep { input: Some(too_large), ..step(2) };
    let begun = scene.service.start_remote(&turn.execution, vec![step(0), step(1), refused]).await;
    assert_eq!((begun.names.len(), begun.refused.len()), (2, 1));
    let at = scene.now();
    let entries = begun.names.into_iter().map(|name| Entry { at, what: Happened::Remote { name } });
    scene.wait(&turn, entries.collect(), true).await;
    let completes = async || {
        let request = ClaimRequest {
            worker: None,
            max: 1,
            lease: Millis::from_secs(60),
            wait: Millis::ZERO,
            provides: vec![],
        };
        let claimed = scene.service.claim(&queue(), &request).await.unwrap().pop().unwrap();
        scene.service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
    };
    completes().await;
    assert_eq!(scene.execution("e").await.wakes, 0);
    completes().await;
    assert_eq!(scene.execution("e").await.wakes, 1);
    // The code is mended, and an operator has the step run again.
    let turn = scene.turn().await.unwrap();
    let names = scene.service.start_remote(&turn.execution, vec![step(2)]).await.all().unwrap();
    let entries = names.into_iter().map(|name| Entry { at, what: Happened::Remote { name } });
    scene.wait(&turn, entries.collect(), true).await;
    completes().await;
    assert_eq!(scene.execution("e").await.wakes, 2);
}
