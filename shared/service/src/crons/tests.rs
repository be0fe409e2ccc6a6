//! Crons over a store in memory whose calls take time.

use tickover_core::cron::plan::{Interval, Missed, Overlap, Plan, When};
use tickover_core::duration::Millis;
use tickover_core::id::CronId;
use tickover_core::payload::Json;

use super::{CronRequest, CronWork};
use crate::executions::tests::scene::Scene;
use crate::gates::tests::one;

#[tokio::test]
async fn a_cron_that_is_always_due_takes_no_more_time_than_there_is() {
    let scene = Scene::new();
    let id = CronId::parse("each-second").unwrap();
    let plan = Plan {
        when: When::Every(Interval::new(Millis::from_secs(1)).unwrap()),
        overlap: Overlap::AllowAll,
        missed: Missed::Skip,
        jitter: Millis::ZERO,
        max_runs: None,
    };
    let given = Json::parse(r#"{"queue": "jobs", "kind": "sync"}"#).unwrap();
    let work = CronWork::Task(Box::new(one()), given);
    let request = CronRequest { id: Some(id.clone()), work, template: None, plan, paused: None };
    scene.service.create_cron(request).await.unwrap();
    scene.advance(1);
    // One pass takes longer than the time to the next occurrence.
    scene.slow_store(1_000);
    let began = scene.now();
    scene.service.process_cron(&id, began.plus(Millis::from_secs(5))).await.unwrap();
    assert!(scene.now().since(began) < Millis::from_secs(20), "{}", scene.now().since(began));
    scene.slow_store(0);
    let left = scene.store.cron(&id).await.unwrap().unwrap();
    assert!(left.is_due(scene.now()), "what is left stays due: {left:?}");
    scene.tick().await.unwrap();
    let after = scene.store.cron(&id).await.unwrap().unwrap();
    assert!(after.version > left.version && !after.is_due(scene.now()));
}
