//! Who comes first: those of queues that have workers, those that come while an offer is out in vain, and those whose rate lets
//! them start.

use std::num::NonZeroU32;

use tickover_core::flow::Rate;
use tickover_core::gate::Holder;

use super::*;

#[tokio::test]
async fn forty_queues_without_workers_keep_none_that_has_some_from_a_place() {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    for dead in 0..40 {
        scene.add(on(&format!("dead-{dead}"), one())).await;
    }
    scene.advance(1);
    let first = scene.add(one()).await;
    scene.advance(1);
    let live = [first, scene.add(one()).await];
    scene.completes(&running).await;
    for id in &live {
        let next = scene.claims().await.unwrap();
        assert_eq!(next.task.id, *id);
        scene.completes(&next).await;
    }
    // Now and then one of them is called: its workers may be there and have had nothing to do.
    let dead = scene.line_of("customer").await.len();
    assert_eq!((dead, scene.gate_of("customer").await.holders.len()), (40, 1));
}

#[tokio::test]
async fn who_comes_to_a_line_while_an_offer_is_out_in_vain_is_called_after_five_seconds() {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    for _ in 0..2 {
        scene.add(on("late", one())).await;
    }
    scene.completes(&running).await;
    assert!(scene.gate_of("customer").await.holders.iter().all(Holder::is_called));
    let early = scene.add(one()).await;
    assert!(scene.claims().await.is_none());
    scene.advance(6);
    let later = scene.add(one()).await;
    let next = scene.claims().await.unwrap();
    assert!([early, later].contains(&next.task.id), "{next:?}");
}

#[tokio::test]
async fn a_lower_limit_counts_though_a_backlog_asked_for_more() {
    let scene = Scene::new();
    let three = needing(&[limit("customer", 3)]);
    for _ in 0..8 {
        scene.add(three.clone()).await;
    }
    let mut running = vec![];
    for _ in 0..3 {
        running.push(scene.claims().await.unwrap());
    }
    scene.advance(1);
    scene.add(one()).await;
    for (nth, claimed) in running.iter().enumerate() {
        scene.completes(claimed).await;
        assert_eq!(scene.claims().await.is_some(), nth == 2, "{nth}");
    }
}

#[tokio::test]
async fn a_line_whose_rate_is_used_up_stays_a_line() {
    let scene = Scene::new();
    let whole = |number| NonZeroU32::new(number).unwrap();
    let rate = Rate { key: key("smtp"), limit: whole(1), per: Millis::from_secs(600), burst: whole(1) };
    let flow = FlowRequest { rate: Some(rate), ..one().flow };
    let request = ScheduleRequest { flow, ..one() };
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    let mut waiting = vec![];
    for _ in 0..30 {
        waiting.push(scene.add(request.clone()).await);
        scene.advance(1);
    }
    scene.completes(&running).await;
    for id in &waiting[..3] {
        let mut next = None;
        for _ in 0..11 {
            next = next.or(scene.claims().await);
            if next.is_none() {
                scene.advance(60);
                scene.tick().await.unwrap();
            }
        }
        let next = next.unwrap();
        assert_eq!(next.task.id, *id);
        scene.completes(&next).await;
    }
    assert!(scene.line_of("customer").await.len() >= 26, "{}", scene.line_of("customer").await.len());
}

#[tokio::test]
async fn operators_see_who_waits_though_nobody_has_used_the_key_for_hours_and_whose_worker_was_lost() {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    let waits = scene.add(on("night", one())).await;
    scene.service.pause_queue(&queue("night"), true).await.unwrap();
    scene.completes(&running).await;
    for _ in 0..180 {
        scene.advance(60);
        scene.tick().await.unwrap();
        scene.delete_expired();
    }
    let seen = scene.service.limit(&key("customer")).await.unwrap();
    assert_eq!((seen.waiting, seen.limit.map(NonZeroU16::get)), (vec![waits.into()], Some(1)));
    let (listed, _) = scene.service.full_keys().await.unwrap();
    assert_eq!(listed.len(), 1);
}
