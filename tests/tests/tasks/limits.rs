//! Concurrency limits by key, with whole services: who runs, who waits, and what happens to places when processes die.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]

use std::num::NonZeroU16;
use std::sync::Arc;

use tickover_core::duration::Millis;
use tickover_core::flow::{Concurrency, FlowRequest, Priority};
use tickover_core::id::FlowKey;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::{Failure, Status};
use tickover_core::timeout::{AttemptTimeout, OnTimeout};
use tickover_service::claim::ClaimedTask;
use tickover_service::gates::LimitView;
use tickover_service::memory::MemoryStore;
use tickover_service::ports::Store;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_tests::scene::{Scene, queue_name, request, task_id};

fn key(text: &str) -> FlowKey {
    FlowKey::parse(text).unwrap()
}

fn limited(id: &str, keys: &[(&str, u16)]) -> ScheduleRequest {
    let one =
        |(text, limit): &(&str, u16)| Concurrency { key: key(text), limit: NonZeroU16::new(*limit).unwrap() };
    let flow = FlowRequest { concurrency: keys.iter().map(one).collect(), ..FlowRequest::default() };
    ScheduleRequest { flow, ..request("work", Some(id), None) }
}

struct World {
    scene: Scene,
    store: Arc<dyn Store>,
}

impl World {
    async fn with(requests: impl IntoIterator<Item = ScheduleRequest>) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let scene = Scene::over(store.clone());
        let world = Self { scene, store };
        for request in requests {
            world.schedule(request).await;
        }
        world
    }

    async fn schedule(&self, request: ScheduleRequest) {
        self.scene.service.schedule(request).await.unwrap();
        // So that their order is that of their instants.
        self.scene.clock.advance(Millis::new(1));
    }

    async fn claim(&self) -> Option<ClaimedTask> {
        self.scene.claim("work").await.unwrap()
    }

    async fn claims(&self) -> ClaimedTask {
        self.claim().await.expect("a task that may start")
    }

    /// Claims as many as there are.
    async fn claim_all(&self) -> Vec<String> {
        let mut ids = vec![];
        while let Some(claimed) = self.claim().await {
            ids.push(claimed.task.id.to_string());
        }
        ids
    }

    async fn complete(&self, claimed: &ClaimedTask) {
        self.scene.service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
    }

    async fn view(&self, text: &str) -> LimitView {
        self.scene.service.limit(&key(text)).await.unwrap()
    }

    async fn holders(&self, text: &str) -> Vec<String> {
        self.view(text).await.holders.into_iter().map(|one| one.owner.to_string()).collect()
    }

    fn pass(&self, seconds: u64) {
        self.scene.clock.advance(Millis::from_secs(seconds));
    }

    async fn tick(&self) {
        self.scene.tick().await.unwrap();
    }

    async fn status(&self, id: &str) -> Status {
        self.store.task(&task_id(id)).await.unwrap().unwrap().status()
    }
}

#[tokio::test]
async fn no_more_than_the_limit_run_at_once_and_who_finishes_promotes_the_next_at_once() {
    let world = World::with((0..5).map(|nth| limited(&format!("t{nth}"), &[("customer-7", 2)]))).await;
    let (first, second) = (world.claims().await, world.claims().await);
    assert!(world.claim().await.is_none());
    assert_eq!(world.view("customer-7").await.waiting.len(), 3);
    world.complete(&first).await;
    let third = world.claims().await;
    assert_eq!(third.task.id.as_str(), "t2");
    assert!(world.claim().await.is_none());
    world.complete(&second).await;
    world.complete(&third).await;
    assert_eq!(world.claim_all().await, ["t3", "t4"]);
}

#[tokio::test]
async fn a_limit_holds_over_all_queues() {
    let other = ScheduleRequest { queue: queue_name("other"), ..limited("b", &[("k", 1)]) };
    let world = World::with([limited("a", &[("k", 1)]), other]).await;
    let first = world.claims().await;
    assert!(world.scene.claim("other").await.unwrap().is_none());
    world.complete(&first).await;
    assert!(world.scene.claim("other").await.unwrap().is_some());
}

#[tokio::test]
async fn those_who_wait_are_promoted_by_priority_and_then_by_time() {
    let with = |id: &str, priority| {
        let request = limited(id, &[("k", 1)]);
        ScheduleRequest { flow: FlowRequest { priority, ..request.flow }, ..request }
    };
    let requests = [
        with("first", Priority::Normal),
        with("low", Priority::Low),
        with("normal", Priority::Normal),
        with("later", Priority::Normal),
        with("high", Priority::High),
    ];
    let world = Box::pin(World::with(requests)).await;
    let mut order = vec![];
    let mut claimed = world.claims().await;
    assert!(world.claim().await.is_none());
    loop {
        order.push(claimed.task.id.to_string());
        world.complete(&claimed).await;
        match world.claim().await {
            Some(next) => claimed = next,
            None => break,
        }
    }
    // The queue gives out the high one first, and the gate calls the others.
    assert_eq!(order, ["high", "first", "normal", "later", "low"]);
}

#[tokio::test]
async fn a_task_needs_a_place_at_each_of_its_keys_and_keeps_none_while_it_waits() {
    let both = [("a", 5), ("b", 1)];
    let world =
        World::with([limited("one", &both), limited("two", &both), limited("three", &[("a", 5)])]).await;
    let first = world.claims().await;
    assert_eq!(world.claim_all().await, ["three"]);
    assert_eq!((world.holders("a").await.len(), world.holders("b").await), (2, vec!["one".to_owned()]));
    world.complete(&first).await;
    assert_eq!(world.claim_all().await, ["two"]);
}

#[tokio::test]
async fn every_way_out_of_an_attempt_gives_its_place_up() {
    let long = RetryPolicy::fixed(1, Millis::from_secs(300));
    let timeout = AttemptTimeout { after: Millis::from_secs(20), on_timeout: OnTimeout::Retry };
    for way in ["complete", "fail", "retry", "release", "cancel", "time out"] {
        let mut first = limited("first", &[("k", 1)]);
        if way == "retry" {
            first.retry = long.clone();
        }
        if way == "time out" {
            first.timeouts.start_to_close = Some(timeout);
        }
        let world = World::with([first]).await;
        let claimed = world.claims().await;
        world.schedule(limited("next", &[("k", 1)])).await;
        assert!(world.claim().await.is_none(), "{way}");
        let (service, id, lease) = (&world.scene.service, &claimed.task.id, &claimed.token);
        match way {
            "complete" => drop(service.complete(id, lease, None).await.unwrap()),
            "fail" | "retry" => drop(service.fail(id, lease, Failure::new("x", ""), true).await.unwrap()),
            "release" => drop(service.release(id, lease).await.unwrap()),
            "cancel" => drop(service.cancel(id, true).await.unwrap()),
            _ => {
                world.pass(20);
                world.scene.fire().await;
            }
        }
        assert_eq!(world.holders("k").await, ["next"], "{way}");
        assert_eq!(world.claims().await.task.id.as_str(), "next", "{way}");
    }
}

#[tokio::test]
async fn a_worker_that_dies_frees_its_place_when_its_lease_ends() {
    let world = World::with([limited("lost", &[("k", 1)])]).await;
    world.claims().await;
    world.schedule(limited("next", &[("k", 1)])).await;
    assert!(world.claim().await.is_none());
    // Its message is gone too: nothing but the tick is left.
    world.pass(61);
    world.scene.lose_messages(&queue_name("work")).await;
    for _ in 0..2 {
        world.pass(30);
        world.tick().await;
    }
    assert_eq!(world.claims().await.task.id.as_str(), "next");
}

#[tokio::test]
async fn a_lost_workers_task_is_taken_over_in_the_same_place() {
    let world = World::with([limited("lost", &[("k", 1)])]).await;
    let lost = world.claims().await;
    world.schedule(limited("next", &[("k", 1)])).await;
    assert!(world.claim().await.is_none());
    world.pass(61);
    let taken_over = world.claims().await;
    assert_eq!(taken_over.task.id, lost.task.id);
    assert_eq!(world.holders("k").await, ["lost"]);
    // What the lost worker reports late frees nothing.
    assert!(world.scene.service.complete(&lost.task.id, &lost.token, None).await.is_err());
    assert_eq!(world.holders("k").await, ["lost"]);
    world.complete(&taken_over).await;
    assert_eq!(world.claims().await.task.id.as_str(), "next");
}

#[tokio::test]
async fn a_heartbeat_extends_the_place_before_the_lease_and_is_refused_once_another_has_the_place() {
    let world = World::with([limited("slow", &[("k", 1)]), limited("next", &[("k", 1)])]).await;
    let slow = world.claims().await;
    let service = &world.scene.service;
    for _ in 0..5 {
        world.pass(50);
        let renewed = service.heartbeat(&slow.task.id, &slow.token, None).await.unwrap();
        assert!(world.view("k").await.holders[0].until > Some(renewed.lease_expires_at));
        assert!(world.claim().await.is_none());
    }
    // It falls silent, its message is lost, and its place goes to another task.
    world.scene.lose_messages(&queue_name("work")).await;
    world.pass(75);
    world.tick().await;
    assert_eq!(world.claims().await.task.id.as_str(), "next");
    assert!(service.heartbeat(&slow.task.id, &slow.token, None).await.is_err());
    // The work may be done all the same.
    world.complete(&slow).await;
    assert_eq!(world.holders("k").await, ["next"]);
}

#[tokio::test]
async fn a_task_that_is_cancelled_while_it_waits_leaves_the_line() {
    let world = World::with(["a", "b", "c"].map(|id| limited(id, &[("k", 1)]))).await;
    let first = world.claims().await;
    assert!(world.claim().await.is_none());
    world.scene.service.cancel(&task_id("b"), false).await.unwrap();
    assert_eq!(world.view("k").await.waiting, [task_id("c").into()]);
    world.complete(&first).await;
    assert_eq!(world.claims().await.task.id.as_str(), "c");
}

#[tokio::test]
async fn deadlines_and_schedule_to_start_go_on_while_a_task_waits() {
    let mut late = limited("late", &[("k", 1)]);
    late.timeouts.schedule_to_start =
        Some(AttemptTimeout { after: Millis::from_secs(30), on_timeout: OnTimeout::Terminal });
    let world = World::with([limited("a", &[("k", 1)]), late]).await;
    world.claims().await;
    assert!(world.claim().await.is_none());
    world.pass(30);
    world.scene.fire().await;
    assert_eq!(world.status("late").await, Status::TimedOut);
    assert_eq!(world.view("k").await.waiting, []);
}

#[tokio::test]
async fn a_place_whose_hint_was_lost_is_offered_once_more_by_the_tick() {
    let world = World::with(["a", "b", "c"].map(|id| limited(id, &[("k", 1)]))).await;
    let first = world.claims().await;
    assert!(world.claim().await.is_none());
    world.complete(&first).await;
    world.scene.lose_messages(&queue_name("work")).await;
    assert_eq!(world.holders("k").await, ["b"]);
    world.pass(61);
    world.tick().await;
    let next = world.claims().await;
    assert_eq!(next.task.id.as_str(), "b");
    world.complete(&next).await;
    assert_eq!(world.claims().await.task.id.as_str(), "c");
}

#[tokio::test]
async fn a_crash_between_the_place_and_the_lease_leaves_nothing_for_longer_than_the_lease() {
    let world = World::with(["a", "b"].map(|id| limited(id, &[("k", 1)]))).await;
    let first = world.claims().await;
    world.complete(&first).await;
    // As if another process had taken the place of a task whose claim never came.
    let lost = world.claims().await;
    world.scene.service.release(&lost.task.id, &lost.token).await.unwrap();
    let again = world.claims().await;
    assert_eq!((again.task.id, world.holders("k").await), (lost.task.id, vec!["b".to_owned()]));
}

#[tokio::test]
async fn many_more_wait_than_the_record_has_room_for_and_all_run_in_order_and_within_the_limit() {
    let count = 60;
    let world = World::with((0..count).map(|nth| limited(&format!("task-{nth:032}"), &[("k", 3)]))).await;
    let mut running = vec![world.claims().await, world.claims().await, world.claims().await];
    assert!(world.claim().await.is_none());
    assert_eq!(world.view("k").await.waiting.len(), count - 3);
    let mut order = vec![];
    while !running.is_empty() {
        let done = running.remove(0);
        world.complete(&done).await;
        order.push(done.task.id.to_string());
        running.extend(world.claim().await);
        assert!(running.len() <= 3);
        assert!(world.claim().await.is_none());
    }
    assert_eq!(order.len(), count);
    assert_eq!((world.view("k").await.waiting, world.holders("k").await), (vec![], Vec::<String>::new()));
}

#[tokio::test]
async fn a_limit_that_an_operator_sets_counts_from_the_next_place_on() {
    let world = World::with((0..4).map(|nth| limited(&format!("t{nth}"), &[("k", 1)]))).await;
    let first = world.claims().await;
    assert!(world.claim().await.is_none());
    let service = &world.scene.service;
    let view = service.set_limit(&key("k"), NonZeroU16::new(3)).await.unwrap();
    assert!(view.pinned);
    assert_eq!(world.claim_all().await, ["t1", "t2"]);
    let view = service.set_limit(&key("k"), None).await.unwrap();
    assert_eq!((view.limit, view.pinned), (NonZeroU16::new(1), false));
    world.complete(&first).await;
    assert!(world.claim().await.is_none(), "two still run");
}

#[tokio::test]
async fn an_operator_takes_a_place_away_and_the_next_gets_it() {
    let world = World::with(["a", "b"].map(|id| limited(id, &[("k", 1)]))).await;
    world.claims().await;
    assert!(world.claim().await.is_none());
    let service = &world.scene.service;
    let view = service.release_place(&key("k"), &task_id("a").into()).await.unwrap();
    assert_eq!(view.holders[0].owner, task_id("b").into());
    assert_eq!(world.claims().await.task.id.as_str(), "b");
    // Twice is no different from once.
    assert_eq!(service.release_place(&key("k"), &task_id("a").into()).await.unwrap().holders.len(), 1);
    assert_eq!(
        service.release_place(&key("other"), &task_id("a").into()).await.unwrap(),
        LimitView { key: "other".to_owned(), ..LimitView::default() }
    );
}

#[tokio::test]
async fn a_retry_by_an_operator_needs_a_place_again() {
    let world = World::with([limited("a", &[("k", 1)])]).await;
    let first = world.claims().await;
    world.scene.service.fail(&first.task.id, &first.token, Failure::new("x", ""), false).await.unwrap();
    world.schedule(limited("b", &[("k", 1)])).await;
    let second = world.claims().await;
    world.scene.service.retry(&first.task.id).await.unwrap();
    assert!(world.claim().await.is_none());
    world.complete(&second).await;
    assert_eq!(world.claims().await.task.id.as_str(), "a");
}
