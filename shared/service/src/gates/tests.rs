//! Lines over a store in memory: what stands ahead of one that could come, and processes that die between two writes.

mod absent;
mod served;
mod shared;
mod sizes;
mod twice;

use std::num::NonZeroU16;
use std::pin::pin;

use tickover_core::decision::Write;
use tickover_core::duration::Millis;
use tickover_core::flow::{Concurrency, Debounce, FlowRequest, Priority};
use tickover_core::gate::line::{enter, home};
use tickover_core::gate::{Gate, Waiter};
use tickover_core::id::{FlowKey, GateId, Incarnation, QueueName, TaskId, TaskKind};
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::task::{Status, Task};
use tickover_core::timeout::{AttemptTimeout, OnTimeout, Timeouts};

use crate::claim::{ClaimRequest, ClaimedTask};
use crate::executions::tests::mortal::NEVER;
use crate::executions::tests::scene::Scene;
use crate::flow::gate_digest;
use crate::ports::{Depth, Queue as _};
use crate::tasks::schedule::{Asked, ScheduleRequest};

const LEASE_S: u64 = 60;

fn queue(name: &str) -> QueueName {
    QueueName::parse(name).unwrap()
}

fn key(name: &str) -> FlowKey {
    FlowKey::parse(name).unwrap()
}

fn gate_id(name: &str) -> GateId {
    GateId::from(&gate_digest(&key(name)))
}

fn limit(name: &str, limit: u16) -> Concurrency {
    Concurrency { key: key(name), limit: NonZeroU16::new(limit).unwrap() }
}

fn needing(limits: &[Concurrency]) -> ScheduleRequest {
    ScheduleRequest {
        asked: Asked::default(),
        id: None,
        idempotency_key: None,
        queue: queue("jobs"),
        kind: TaskKind::parse("sync").unwrap(),
        input: None,
        labels: None,
        retry: RetryPolicy::fixed(5, Millis::from_secs(30)),
        flow: FlowRequest { concurrency: limits.to_vec(), ..FlowRequest::default() },
        timeouts: Timeouts::default(),
        start: Start::After(Millis::ZERO),
        trace: None,
    }
}

/// A task of a key of which one runs at a time.
pub(crate) fn one() -> ScheduleRequest {
    needing(&[limit("customer", 1)])
}

/// A worker asks for one task.
fn request() -> ClaimRequest {
    let (lease, wait) = (Millis::from_secs(LEASE_S), Millis::ZERO);
    ClaimRequest { worker: None, max: 1, lease, wait, provides: vec![] }
}

fn on(name: &str, request: ScheduleRequest) -> ScheduleRequest {
    ScheduleRequest { queue: queue(name), ..request }
}

impl Scene {
    async fn add(&self, request: ScheduleRequest) -> TaskId {
        self.service.schedule(request).await.unwrap().task.id
    }

    async fn claim_from(&self, name: &str) -> Option<ClaimedTask> {
        self.service.claim(&queue(name), &request()).await.unwrap().pop()
    }

    async fn claims(&self) -> Option<ClaimedTask> {
        self.claim_from("jobs").await
    }

    async fn completes(&self, claimed: &ClaimedTask) {
        self.service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
    }

    async fn found(&self, id: &TaskId) -> Task {
        self.store.task(id).await.unwrap().unwrap()
    }

    async fn gate_of(&self, name: &str) -> Gate {
        self.store.gate(&gate_id(name)).await.unwrap().unwrap()
    }

    async fn line_of(&self, name: &str) -> Vec<Waiter> {
        self.store.waiters(&gate_id(name), "", 10_000).await.unwrap()
    }

    async fn messages(&self, name: &str) -> u64 {
        let Depth { visible, in_flight, delayed } =
            self.service.describe_queue(&queue(name)).await.unwrap().depth;
        visible + in_flight + delayed
    }
}

#[tokio::test]
async fn whoever_finds_no_place_waits_without_a_message_and_comes_when_one_is_free() {
    let scene = Scene::new();
    let first = scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    assert_eq!(running.task.id, first);
    let second = scene.add(one()).await;
    scene.advance(1);
    let third = scene.add(one()).await;
    assert!(scene.found(&second).await.parked.in_line().is_some());
    assert_eq!((scene.messages("jobs").await, scene.line_of("customer").await.len()), (1, 2));
    assert!(scene.claims().await.is_none());
    scene.completes(&running).await;
    let next = scene.claims().await.unwrap();
    assert_eq!(next.task.id, second);
    assert!(scene.claims().await.is_none());
    scene.completes(&next).await;
    let last = scene.claims().await.unwrap();
    assert_eq!(last.task.id, third);
    scene.completes(&last).await;
    assert_eq!((scene.messages("jobs").await, scene.line_of("customer").await.len()), (0, 0));
    assert_eq!(scene.gate_of("customer").await.holders, []);
}

#[tokio::test]
async fn a_claim_that_finds_no_place_puts_its_task_in_the_line() {
    let scene = Scene::new();
    let (first, second) = (scene.add(one()).await, scene.add(one()).await);
    // Nobody had a place when they were scheduled, so both have messages.
    assert_eq!(scene.messages("jobs").await, 2);
    let running = scene.claims().await.unwrap();
    assert_eq!(running.task.id, first);
    assert!(scene.claims().await.is_none());
    assert!(scene.found(&second).await.parked.in_line().is_some());
    assert_eq!(scene.messages("jobs").await, 1);
    scene.completes(&running).await;
    assert_eq!(scene.claims().await.unwrap().task.id, second);
}

#[tokio::test]
async fn a_worker_that_is_lost_with_its_message_is_found_by_the_line_from_which_its_task_came() {
    let scene = Scene::new();
    scene.add(one()).await;
    let first = scene.claims().await.unwrap();
    let second = scene.add(one()).await;
    scene.completes(&first).await;
    assert_eq!(scene.claims().await.unwrap().task.id, second);
    assert_eq!(scene.line_of("customer").await.len(), 1, "it stays there while it runs");
    assert_eq!(scene.gate_of("customer").await.holders.len(), 1);
    // Its lease is over, and its message is lost.
    scene.advance(LEASE_S);
    let jobs = queue("jobs");
    let lost = scene.queue.receive(&jobs, 10, Millis::from_secs(60), Millis::ZERO).await.unwrap();
    assert_eq!(lost.len(), 1);
    scene.queue.delete(&jobs, &lost[0].receipt).await.unwrap();
    assert!(scene.claims().await.is_none());
    // Its place ends a few seconds after its lease.
    scene.advance(60);
    scene.tick().await.unwrap();
    let again = scene.claims().await.unwrap();
    assert_eq!((&again.task.id, again.task.losses), (&second, 1));
    scene.completes(&again).await;
    assert_eq!((scene.messages("jobs").await, scene.line_of("customer").await.len()), (0, 0));
    assert_eq!(scene.gate_of("customer").await.holders, []);
}

#[tokio::test]
async fn ten_that_were_lost_together_wait_in_the_line_again_with_one_write_each() {
    let scene = Scene::new();
    let ten = || needing(&[limit("customer", 10)]);
    for _ in 0..10 {
        scene.add(ten()).await;
    }
    let mut running = vec![];
    for _ in 0..10 {
        running.push(scene.claims().await.unwrap());
    }
    for _ in 0..10 {
        scene.add(ten()).await;
    }
    for done in &running {
        scene.completes(done).await;
        assert!(scene.claims().await.is_some(), "it comes from the line");
    }
    scene.advance(LEASE_S);
    let jobs = queue("jobs");
    let lost = scene.queue.receive(&jobs, 100, Millis::from_secs(60), Millis::ZERO).await.unwrap();
    assert_eq!(lost.len(), 10);
    for message in &lost {
        scene.queue.delete(&jobs, &message.receipt).await.unwrap();
    }
    scene.advance(60);
    let writes = scene.writes();
    scene.tick().await.unwrap();
    // Each record once; the key when their places have ended and when they are called; the tick's own record.
    assert!(scene.writes() - writes <= 10 + 4, "{} writes", scene.writes() - writes);
    for _ in 0..10 {
        assert!(scene.claims().await.is_some());
    }
}

#[tokio::test]
async fn whoever_finds_that_a_place_has_ended_by_itself_has_the_next_one_called() {
    let scene = Scene::new();
    let two = || needing(&[limit("customer", 2)]);
    scene.add(two()).await;
    scene.add(two()).await;
    let done = scene.claims().await.unwrap();
    let _lost = scene.claims().await.unwrap();
    scene.add(on("other", two())).await;
    scene.advance(1);
    let next = scene.add(on("third", two())).await;
    scene.advance(LEASE_S - 5);
    // Calls the one of the other queue.
    scene.completes(&done).await;
    // The place of the one that was lost has ended.
    scene.advance(20);
    assert!(scene.claim_from("other").await.is_some());
    // At once, and not with the next tick.
    assert_eq!(scene.claim_from("third").await.unwrap().task.id, next);
}

#[tokio::test]
async fn those_of_a_paused_queue_are_passed_over_and_come_when_it_is_resumed() {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    for _ in 0..30 {
        scene.add(on("night", one())).await;
    }
    let live = scene.add(one()).await;
    scene.service.pause_queue(&queue("night"), true).await.unwrap();
    scene.completes(&running).await;
    let next = scene.claims().await.unwrap();
    assert_eq!(next.task.id, live);
    scene.completes(&next).await;
    assert_eq!(scene.messages("night").await, 0);
    scene.service.pause_queue(&queue("night"), false).await.unwrap();
    // At once, and not with the next tick.
    assert!(scene.claim_from("night").await.is_some());
}

#[tokio::test]
async fn a_queue_whose_workers_are_gone_is_called_in_vain_once_and_then_the_others_come_first() {
    let scene = Scene::new();
    scene.add(on("deaf", needing(&[]))).await;
    let _last = scene.claim_from("deaf").await.unwrap();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    for _ in 0..30 {
        scene.add(on("deaf", one())).await;
    }
    scene.advance(1);
    let first = scene.add(one()).await;
    scene.advance(1);
    let live = [first, scene.add(one()).await];
    scene.completes(&running).await;
    assert!(scene.claims().await.is_none());
    scene.advance(60);
    scene.tick().await.unwrap();
    for id in &live {
        let next = scene.claims().await.unwrap();
        assert_eq!(next.task.id, *id);
        scene.completes(&next).await;
    }
    // Its worker comes after all: the message is there.
    assert!(scene.claim_from("deaf").await.is_some());
}

#[tokio::test]
async fn whoever_needs_two_keys_holds_none_while_it_waits_for_the_other() {
    let scene = Scene::new();
    let both = || needing(&[limit("customer", 1), limit("smtp", 2)]);
    let smtp = || needing(&[limit("smtp", 2)]);
    scene.add(smtp()).await;
    scene.add(smtp()).await;
    let running = [scene.claims().await.unwrap(), scene.claims().await.unwrap()];
    let double = scene.add(both()).await;
    assert!(scene.claims().await.is_none());
    assert_eq!(scene.line_of("customer").await.len(), 1);
    assert_eq!(home(scene.found(&double).await.gates()).unwrap().limit.get(), 1);
    // Others of the scarce key go on.
    let single = scene.add(one()).await;
    let goes_on = scene.claims().await.unwrap();
    assert_eq!(goes_on.task.id, single);
    scene.completes(&running[0]).await;
    assert!(scene.claims().await.is_none());
    scene.completes(&goes_on).await;
    let next = scene.claims().await.unwrap();
    assert_eq!(next.task.id, double);
    scene.completes(&next).await;
    scene.completes(&running[1]).await;
    assert_eq!(
        (scene.gate_of("customer").await.holders, scene.gate_of("smtp").await.holders),
        (vec![], vec![])
    );
}

#[tokio::test]
async fn a_place_of_the_other_key_calls_the_one_that_waits_in_the_line_of_the_scarce_one() {
    let scene = Scene::new();
    scene.add(needing(&[limit("smtp", 2)])).await;
    scene.add(needing(&[limit("smtp", 2)])).await;
    let running = [scene.claims().await.unwrap(), scene.claims().await.unwrap()];
    let double = scene.add(needing(&[limit("customer", 1), limit("smtp", 2)])).await;
    assert!(scene.claims().await.is_none());
    scene.completes(&running[1]).await;
    assert_eq!(scene.claims().await.unwrap().task.id, double);
}

#[tokio::test]
async fn one_that_is_called_and_finds_the_other_key_taken_is_called_again_when_that_is_free() {
    // Whichever of the keys comes first, also if it takes a third one before it finds that out.
    for (nth, scarce) in ["customer", "a", "b", "c", "d"].into_iter().cycle().take(20).enumerate() {
        let scene = Scene::new();
        let third = format!("third-{}", nth / 5);
        let smtp = || needing(&[limit("smtp", 2)]);
        scene.add(smtp()).await;
        scene.add(smtp()).await;
        let running = [scene.claims().await.unwrap(), scene.claims().await.unwrap()];
        let keys = [limit(scarce, 1), limit("smtp", 2), limit(&third, 9)];
        let double = scene.add(on("both", needing(if nth < 5 { &keys[..2] } else { &keys }))).await;
        assert!(scene.claim_from("both").await.is_none());
        scene.completes(&running[0]).await;
        // It was called, so that place is its own. At its other key, a newcomer is faster.
        scene.add(smtp()).await;
        assert!(scene.claims().await.is_none());
        scene.add(needing(&[limit(scarce, 1)])).await;
        let newcomer = scene.claims().await.unwrap();
        assert!(scene.claim_from("both").await.is_none());
        let next = scene.claims().await.unwrap();
        assert_eq!(next.task.gates().len(), 1, "the place goes on");
        scene.completes(&next).await;
        scene.completes(&newcomer).await;
        assert_eq!(scene.claim_from("both").await.unwrap().task.id, double, "{scarce}");
    }
}

#[tokio::test]
async fn a_task_that_raises_the_limit_lets_those_in_the_line_come() {
    let scene = Scene::new();
    scene.add(one()).await;
    let _running = scene.claims().await.unwrap();
    let waits = scene.add(on("other", one())).await;
    scene.advance(1);
    scene.add(needing(&[limit("customer", 3)])).await;
    let _newcomer = scene.claims().await.unwrap();
    assert_eq!(scene.claim_from("other").await.unwrap().task.id, waits);
}

#[tokio::test]
async fn a_task_whose_time_to_start_ends_in_the_line_backs_off_and_comes_again() {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    let after = Millis::from_secs(60);
    let within = AttemptTimeout { after, on_timeout: OnTimeout::Retry };
    let timeouts = Timeouts { schedule_to_start: Some(within), ..Timeouts::default() };
    let waits = scene.add(ScheduleRequest { timeouts, ..one() }).await;
    scene.advance(61);
    scene.service.heartbeat(&running.task.id, &running.token, None).await.unwrap();
    scene.tick().await.unwrap();
    // Its next attempt has a message of its own, and there is a place by then.
    assert_eq!((scene.found(&waits).await.attempt, scene.line_of("customer").await.len()), (1, 0));
    scene.completes(&running).await;
    scene.advance(31);
    let next = scene.claims().await.unwrap();
    assert_eq!((next.task.id, next.task.attempt), (waits, 2));
}

#[tokio::test]
async fn a_burst_that_waits_in_the_line_starts_when_it_is_over() {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    let (wait, at_most) = (Millis::from_secs(10), Millis::from_secs(600));
    let debounce = Some(Debounce { key: key("digest"), wait, at_most });
    let request = || {
        let FlowRequest { concurrency, .. } = one().flow;
        ScheduleRequest {
            flow: FlowRequest { concurrency, debounce: debounce.clone(), ..FlowRequest::default() },
            ..one()
        }
    };
    let burst = scene.add(request()).await;
    scene.advance(11);
    assert!(scene.claims().await.is_none());
    assert_eq!(scene.line_of("customer").await.len(), 1);
    assert_eq!(scene.add(request()).await, burst);
    assert_eq!(scene.line_of("customer").await.len(), 0);
    scene.completes(&running).await;
    scene.advance(11);
    assert_eq!(scene.claims().await.unwrap().task.id, burst);
}

#[tokio::test]
async fn a_task_without_limits_is_found_behind_many_of_a_full_key_which_come_to_the_line_by_one_look() {
    let scene = Scene::new();
    for _ in 0..100 {
        scene.add(one()).await;
    }
    let plain = scene.add(needing(&[])).await;
    let _running = scene.claims().await.unwrap();
    let looks = scene.gate_of("customer").await.version;
    assert_eq!(scene.claims().await.unwrap().task.id, plain);
    assert_eq!(scene.line_of("customer").await.len(), 99);
    assert!(scene.gate_of("customer").await.version - looks <= 2);
    assert_eq!(scene.messages("jobs").await, 2, "those of the two that run");
}

#[tokio::test]
async fn whatever_process_dies_after_whatever_write_all_of_a_line_come_within_two_ticks() {
    let mut deaths = 0;
    for writes in 1..60 {
        let scene = Scene::new();
        let mut ids = vec![];
        scene.crash_after(writes);
        for _ in 0..4 {
            ids.extend(scene.service.schedule(one()).await.ok().map(|one| one.task.id));
        }
        let request = request();
        for _ in 0..8 {
            let Ok(found) = scene.service.claim(&queue("jobs"), &request).await else { break };
            for claimed in found {
                drop(scene.service.complete(&claimed.task.id, &claimed.token, None).await);
            }
        }
        deaths += u64::from(scene.service.claim(&queue("jobs"), &request).await.is_err());
        scene.crash_after(NEVER);
        // What was claimed and not completed is claimed again after its lease.
        for _ in 0..40 {
            scene.advance(30);
            scene.tick().await.unwrap();
            while let Some(claimed) = scene.claims().await {
                scene.completes(&claimed).await;
            }
        }
        for id in ids {
            assert_eq!(scene.found(&id).await.status(), Status::Completed, "after {writes} writes");
        }
        assert_eq!(scene.line_of("customer").await, [], "after {writes} writes");
    }
    assert!(deaths > 10, "{deaths}");
}

#[tokio::test]
async fn a_claim_that_was_frozen_before_its_write_begins_with_no_place_that_was_given_to_another() {
    let scene = Scene::new();
    let frozen = scene.add(one()).await;
    scene.interleave();
    let (name, wait) = (queue("jobs"), Millis::ZERO);
    let request =
        ClaimRequest { worker: None, max: 1, lease: Millis::from_secs(43_200), wait, provides: vec![] };
    let mut claim = pin!(scene.service.claim(&name, &request));
    let gate = gate_id("customer");
    while scene.store.gate(&gate).await.unwrap().is_none() {
        assert!(futures::poll!(claim.as_mut()).is_pending());
    }
    let waits = scene.add(one()).await;
    scene.advance(60);
    scene.tick().await.unwrap();
    let _next = scene.claims().await.unwrap();
    let _late = claim.await.unwrap();
    let running = [scene.found(&frozen).await, scene.found(&waits).await];
    assert_eq!(running.iter().filter(|task| task.running().is_some()).count(), 1, "{running:?}");
}

#[tokio::test]
async fn a_record_that_comes_to_the_line_long_after_its_item_has_its_item_again() {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    let waits = scene.add(one()).await;
    let (gate, item) = scene.found(&waits).await.waiting().item(scene.now()).unwrap();
    let deleted = Write::DeleteWaiter { gate: gate.clone(), waiter: item.clone() };
    scene.store.commit(&[deleted]).await.unwrap();
    scene.advance(20 * 60);
    let asked = scene.found(&waits).await.waiting().asked_limit(&gate).unwrap();
    scene.service.came_to_line(&gate, vec![(item, asked)]).await;
    assert_eq!(scene.line_of("customer").await.len(), 1);
    scene.service.complete(&running.task.id, &running.token, None).await.unwrap();
    assert_eq!(scene.claims().await.unwrap().task.id, waits);
}
