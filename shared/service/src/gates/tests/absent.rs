//! Queues whose workers didn't come when they were called.

use tickover_core::command::Isolation;
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::id::{Capability, TaskId};

use super::{gate_id, limit, needing, on, one, queue, request};
use crate::claim::{ClaimRequest, Hinted};
use crate::executions::RemoteStep;
use crate::executions::tests::scene::{Scene, id, remote_step};
use crate::ports::Queue as _;
use crate::tasks::schedule::ScheduleRequest;

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

#[tokio::test]
async fn steps_of_a_paused_execution_keep_nobody_behind_them_from_a_place() {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    let turn = scene.started("e", None).await;
    let steps = (0..6).map(|number| RemoteStep { flow: one().flow, ..remote_step(number) }).collect();
    let names = scene.service.start_remote(&turn.execution, steps).await.all().unwrap();
    let at = scene.now();
    let entries = names.into_iter().map(|name| Entry { at, what: Happened::Remote { name } }).collect();
    scene.suspend(&turn, entries).await;
    scene.service.pause(&id("e")).await.unwrap();
    scene.advance(1);
    let behind = scene.add(on("work", one())).await;
    assert_eq!(scene.line_of("customer").await.len(), 7);
    scene.completes(&running).await;
    // Each step comes, and is put aside. The one behind them is called at once, and not with the next tick.
    let mut next = None;
    for _ in 0..7 {
        next = next.or(scene.claim_from("work").await);
    }
    assert_eq!(next.map(|claimed| claimed.task.id), Some(behind));
    assert_eq!((scene.line_of("customer").await.len(), scene.gate_of("customer").await.absent.len()), (1, 0));
}

#[tokio::test]
async fn one_whose_worker_is_back_while_another_key_is_full_comes_when_that_is_free() {
    // Whichever of the two keys comes first.
    for scarce in ["customer", "a", "b", "c", "d"] {
        let scene = Scene::new();
        scene.add(needing(&[limit(scarce, 1)])).await;
        let running = scene.claims().await.unwrap();
        let both = on("both", needing(&[limit(scarce, 1), limit("smtp", 2)]));
        let double = scene.add(both).await;
        scene.completes(&running).await;
        for _ in 0..4 {
            scene.advance(60);
            scene.tick().await.unwrap();
        }
        for _ in 0..2 {
            scene.add(needing(&[limit("smtp", 2)])).await;
        }
        let full = [scene.claims().await.unwrap(), scene.claims().await.unwrap()];
        for _ in 0..5 {
            assert!(scene.claim_from("both").await.is_none());
        }
        scene.completes(&full[0]).await;
        assert_eq!(scene.claim_from("both").await.unwrap().task.id, double, "{scarce}");
    }
}

#[tokio::test]
async fn a_queue_that_was_called_in_vain_before_its_pause_comes_when_it_is_resumed() {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    let waits = scene.add(on("night", one())).await;
    scene.completes(&running).await;
    for _ in 0..5 {
        scene.advance(60);
        scene.tick().await.unwrap();
    }
    let night = queue("night");
    scene.service.pause_queue(&night, true).await.unwrap();
    let hidden = Millis::from_secs(60);
    let received = scene.queue.receive(&night, 10, hidden, Millis::ZERO).await.unwrap();
    assert!(!received.is_empty());
    for message in &received {
        // As a function does.
        let claim = scene.service.claim_hinted(message.into(), &request(), Isolation::Alone).await.unwrap();
        assert!(matches!(claim, Hinted::Spent));
        scene.queue.delete(&night, &message.receipt).await.unwrap();
    }
    scene.service.pause_queue(&night, false).await.unwrap();
    assert_eq!(scene.claim_from("night").await.unwrap().task.id, waits);
}

#[tokio::test]
async fn those_that_no_worker_of_their_queue_can_take_let_the_others_of_it_come() {
    let scene = Scene::new();
    let gpu = || Capability::parse("gpu").unwrap();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    for _ in 0..3 {
        let mut requires = one();
        requires.flow.requires = vec![gpu()];
        scene.add(requires).await;
    }
    scene.advance(1);
    let first = scene.add(one()).await;
    scene.advance(1);
    let others = [first, scene.add(one()).await];
    scene.completes(&running).await;
    assert!(scene.claims().await.is_none());
    scene.advance(60);
    scene.tick().await.unwrap();
    for id in &others {
        let next = scene.claims().await.unwrap();
        assert_eq!(next.task.id, *id);
        scene.completes(&next).await;
    }
    // Their worker comes after all.
    scene.advance(60);
    scene.tick().await.unwrap();
    let able = ClaimRequest { provides: vec![gpu()], ..request() };
    assert_eq!(scene.service.claim(&queue("jobs"), &able).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_look_at_many_lines_that_had_to_stop_goes_on_where_it_was() {
    let scene = Scene::new();
    let names: Vec<String> = (0..20).map(|number| format!("customer {number}")).collect();
    let of = |name: &str| -> ScheduleRequest { needing(&[limit(name, 1)]) };
    for name in &names {
        scene.add(of(name)).await;
        let _lost = scene.claims().await.unwrap();
        scene.add(of(name)).await;
    }
    // Their places have ended by themselves: whoever looks at a line calls the one that waits.
    scene.advance(120);
    for _ in 0..20 {
        scene.slow(100);
        let is_whole = scene.service.patrol_lines(scene.now().plus(Millis::from_secs(1))).await.unwrap();
        scene.slow(0);
        assert!(!is_whole, "so few can be looked at in a second");
    }
    for name in &names {
        let holders = scene.gate_of(name).await.holders;
        assert!(holders.iter().any(tickover_core::gate::Holder::is_called), "{name}");
    }
    assert!(scene.service.patrol_lines(scene.now().plus(Millis::from_secs(60))).await.unwrap());
}

/// Two of the queue `night` wait for a place, and the first was called so often in vain that nobody calls the queue now.
async fn night_is_absent() -> (Scene, [TaskId; 2]) {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    let first = scene.add(on("night", one())).await;
    scene.advance(1);
    let second = scene.add(on("night", one())).await;
    scene.completes(&running).await;
    for _ in 0..8 {
        scene.advance(60);
        scene.tick().await.unwrap();
    }
    let absent = scene.gate_of("customer").await.absent;
    assert!(absent.first().is_some_and(|one| one.until > scene.now()), "{absent:?}");
    (scene, [first, second])
}

#[tokio::test]
async fn if_the_one_that_was_called_in_vain_has_ended_the_next_comes_when_its_workers_are_back() {
    let (scene, [first, second]) = night_is_absent().await;
    scene.service.cancel(&first, false).await.unwrap();
    let mut came = None;
    for _ in 0..3 {
        came = came.or(scene.claim_from("night").await);
    }
    assert_eq!(came.map(|claimed| claimed.task.id), Some(second));
}

#[tokio::test]
async fn one_that_comes_without_having_waited_shows_that_its_queue_has_workers() {
    let (scene, waiting) = night_is_absent().await;
    for message in
        scene.queue.receive(&queue("night"), 10, Millis::from_secs(60), Millis::ZERO).await.unwrap()
    {
        scene.queue.delete(&queue("night"), &message.receipt).await.unwrap();
    }
    let late = scene.add(on("night", one())).await;
    let claimed = scene.claim_from("night").await.unwrap();
    assert_eq!(claimed.task.id, late);
    scene.completes(&claimed).await;
    let next = scene.claim_from("night").await.unwrap();
    assert!(waiting.contains(&next.task.id));
}

#[tokio::test]
async fn a_key_that_cannot_be_read_keeps_no_tick_from_the_lines_behind_it() {
    let scene = Scene::new();
    let names: Vec<String> = (0..8).map(|number| format!("customer {number}")).collect();
    for name in &names {
        scene.add(needing(&[limit(name, 1)])).await;
        let _lost = scene.claims().await.unwrap();
        scene.add(needing(&[limit(name, 1)])).await;
    }
    // Their places end by themselves.
    scene.advance(120);
    scene.make_record_unreadable(gate_id(&names[0]));
    assert!(scene.tick().await.is_err(), "it says that something is wrong");
    for name in &names[1..] {
        let holders = scene.gate_of(name).await.holders;
        assert!(holders.iter().any(tickover_core::gate::Holder::is_called), "{name}");
    }
    let (listed, _) = scene.service.full_keys().await.unwrap();
    assert!(listed.iter().all(|limit| limit.key != names[0]));
}
