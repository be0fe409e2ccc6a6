//! Limits and rates that are divided among several records of a key.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::num::{NonZeroU16, NonZeroU32};

use tickover_core::duration::Millis;
use tickover_core::flow::{Concurrency, FlowRequest, Rate, Shards};
use tickover_core::id::FlowKey;
use tickover_core::task::State;
use tickover_service::claim::ClaimedTask;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_tests::scene::{Scene, request, task_id};

fn key() -> FlowKey {
    FlowKey::parse("smtp").unwrap()
}

fn shards(count: u8) -> Shards {
    Shards::new(count).unwrap()
}

fn limited(nth: usize, limit: u16, count: u8) -> ScheduleRequest {
    let concurrency =
        vec![Concurrency { key: key(), limit: NonZeroU16::new(limit).unwrap(), shards: shards(count) }];
    let flow = FlowRequest { concurrency, ..FlowRequest::default() };
    ScheduleRequest { flow, ..request("work", Some(&format!("t{nth}")), None) }
}

async fn scheduled(scene: &Scene, requests: Vec<ScheduleRequest>) {
    for some in requests.chunks(100) {
        for one in scene.service.schedule_batch(some.to_vec()).await.unwrap() {
            one.unwrap();
        }
    }
}

/// Claims until no task can start.
async fn claim_all(scene: &Scene, running: &mut Vec<ClaimedTask>) {
    while let Some(claimed) = scene.claim("work").await.unwrap() {
        running.push(claimed);
    }
}

#[tokio::test]
async fn no_more_than_the_limit_run_at_once_over_all_shards_and_no_place_stays_empty() {
    let scene = Scene::in_memory();
    scheduled(&scene, (0..300).map(|nth| limited(nth, 20, 10)).collect()).await;
    let (mut running, mut done) = (vec![], 0);
    claim_all(&scene, &mut running).await;
    // Thirty tasks for the two places of each shard: none of them stays empty.
    assert_eq!(running.len(), 20);
    let view = scene.service.limit(&key()).await.unwrap();
    assert_eq!((view.limit, view.shards.get(), view.pinned), (NonZeroU16::new(20), 10, false));
    assert_eq!((view.holders.len(), view.waiting.len(), view.more), (20, 280, false));
    while let Some(claimed) = running.pop() {
        scene.service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
        done += 1;
        claim_all(&scene, &mut running).await;
        assert!(running.len() <= 20);
    }
    assert_eq!(done, 300);
    assert_eq!(scene.service.limit(&key()).await.unwrap().holders, []);
}

#[tokio::test]
async fn a_task_waits_at_one_shard_and_its_answer_has_the_figures_of_that() {
    let scene = Scene::in_memory();
    scheduled(&scene, (0..60).map(|nth| limited(nth, 3, 3)).collect()).await;
    let mut running = vec![];
    claim_all(&scene, &mut running).await;
    let mut waiting = 0;
    for nth in 0..60 {
        let described = scene.service.describe(&task_id(&format!("t{nth}"))).await.unwrap();
        let Some(waits_at) = described.waits_at else { continue };
        let limit = waits_at.limit;
        assert_eq!((limit.key.as_str(), limit.shards.get()), ("smtp", 3));
        assert_eq!((limit.limit, limit.holders.len()), (NonZeroU16::new(1), 1));
        assert!(waits_at.position.is_some());
        waiting += 1;
    }
    assert_eq!((running.len(), waiting), (3, 57));
}

#[tokio::test]
async fn a_batch_takes_the_shards_of_its_rate_in_turn_and_a_start_is_given_back_to_its_shard() {
    let scene = Scene::in_memory();
    let whole = |count: u32| NonZeroU32::new(count).unwrap();
    let rate = Rate {
        key: key(),
        limit: whole(10),
        per: Millis::from_secs(1),
        burst: whole(10),
        shards: shards(10),
    };
    let flow = FlowRequest { rate: Some(rate), ..FlowRequest::default() };
    let paced = |nth: usize| ScheduleRequest {
        flow: flow.clone(),
        ..request("work", Some(&format!("t{nth}")), None)
    };
    scheduled(&scene, (0..30).map(paced).collect()).await;
    let now = scene.service.now();
    let mut starts = vec![];
    for nth in 0..30 {
        let described = scene.service.describe(&task_id(&format!("t{nth}"))).await.unwrap();
        let State::Pending(pending) = &described.task.state else { panic!("{:?}", described.task) };
        starts.push(pending.available_at.since(now).as_u64());
    }
    // Each shard allows one start a second.
    let expected: Vec<u64> = (0..30_u64).map(|nth| nth / 10 * 1_000).collect();
    assert_eq!(starts, expected);
    let (pace, next) = scene.service.limit(&key()).await.unwrap().rate.unwrap();
    assert_eq!((pace.limit, pace.burst, next), (whole(10), whole(10), now.plus(Millis::from_secs(3))));
    scene.service.cancel(&task_id("t29"), true).await.unwrap();
    let (_, next) = scene.service.limit(&key()).await.unwrap().rate.unwrap();
    assert_eq!(next, now.plus(Millis::from_secs(2)), "the start of the cancelled task");
}

#[tokio::test]
async fn an_operators_limit_is_spread_over_the_shards_and_a_place_is_taken_away_wherever_it_is() {
    let scene = Scene::in_memory();
    scheduled(&scene, (0..200).map(|nth| limited(nth, 10, 10)).collect()).await;
    let mut running = vec![];
    claim_all(&scene, &mut running).await;
    assert_eq!(running.len(), 10);
    let service = &scene.service;
    let view = service.set_limit(&key(), NonZeroU16::new(25), None).await.unwrap();
    assert_eq!((view.limit, view.shards.get(), view.pinned), (NonZeroU16::new(25), 10, true));
    claim_all(&scene, &mut running).await;
    assert_eq!(running.len(), 25);
    let refused = service.set_limit(&key(), NonZeroU16::new(9), None).await.unwrap_err().to_string();
    assert!(refused.contains("at least the number of the key's shards, 10"), "{refused}");

    for claimed in &running {
        let owner = claimed.task.id.clone().into();
        let view = service.release_place(&key(), &owner).await.unwrap();
        assert!(view.holders.iter().all(|one| one.owner != owner));
        // The next of the line has it.
        assert_eq!(view.holders.len(), 25);
    }
    let view = service.set_limit(&key(), None, None).await.unwrap();
    assert_eq!((view.limit, view.pinned), (NonZeroU16::new(10), false));
}

#[tokio::test]
async fn an_operators_limit_counts_before_the_first_task_comes_if_it_names_the_shards() {
    let scene = Scene::in_memory();
    let service = &scene.service;
    let view = service.set_limit(&key(), NonZeroU16::new(5), Some(shards(5))).await.unwrap();
    assert_eq!((view.limit, view.shards.get(), view.pinned), (NonZeroU16::new(5), 5, true));
    scheduled(&scene, (0..100).map(|nth| limited(nth, 50, 5)).collect()).await;
    let mut running = vec![];
    claim_all(&scene, &mut running).await;
    assert_eq!(running.len(), 5);
    // Not in fewer than the requests have: the others would keep their own limits.
    let view = service.set_limit(&key(), NonZeroU16::new(7), Some(shards(2))).await.unwrap();
    assert_eq!((view.limit, view.shards.get()), (NonZeroU16::new(7), 5));
    let view = service.set_limit(&key(), NonZeroU16::new(8), Some(shards(6))).await.unwrap();
    assert_eq!((view.limit, view.shards.get()), (NonZeroU16::new(8), 6));
    // Given back, it is again as the requests ask.
    let view = service.set_limit(&key(), None, None).await.unwrap();
    assert_eq!((view.limit, view.shards.get(), view.pinned), (NonZeroU16::new(50), 5, false));
}
