//! Many records that are due at once.

use std::sync::{Arc, Mutex};

use tickover_core::command::Context;
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::limits::Limits;
use tickover_core::task::command::Command;
use tickover_core::task::decision::Decision;
use tickover_core::task::{Status, Task};
use tickover_service::memory::{MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{Queue as _, Store, TaskFilter};
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Rules, Service};
use tickover_tests::meter::Meter;
use tickover_tests::scene::{LeapClock, Scene};

use super::{after, tick_of, with_deadline};

/// A scene whose due index has so many shards.
fn sharded(due_shards: u16, store: &Arc<dyn Store>, clock: &Arc<LeapClock>) -> Scene {
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let (store, ids) = (Arc::clone(store), Arc::new(SystemIds));
    let ports = Ports { store, queue: queue.clone(), clock: clock.clone(), ids };
    let limits = Limits { due_shards, ..Limits::default() };
    Scene { service: Service::new(ports, limits), clock: clock.clone(), queue }
}

fn alone(due_shards: u16) -> Scene {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    sharded(due_shards, &store, &Arc::default())
}

async fn expired(scene: &Scene, count: usize) {
    for number in 0..count {
        scene.service.schedule(with_deadline(&format!("t{number}"), 5)).await.unwrap();
    }
    scene.clock.advance(Millis::from_secs(5));
    scene.lose_messages(&QueueName::timers()).await;
}

async fn timed_out(scene: &Scene) -> usize {
    let filter = TaskFilter { statuses: vec![Status::TimedOut], ..TaskFilter::default() };
    scene.service.list(&filter, 10_000, None).await.unwrap().items.len()
}

#[tokio::test]
async fn messages_continue_a_backlog_beyond_a_ticks_share_at_once() {
    let scene = alone(1);
    expired(&scene, 1_200).await;
    let report = tick_of(&scene, 1, 0).await;
    assert_eq!((report.timed_out, report.fanned_out, report.out_of_time), (500, 1, false));
    // The next tick leaves the shards to these messages for a while, and processes its own share meanwhile.
    assert_eq!(scene.timers().await, 1);
    assert_eq!(scene.fire().await, 1);
    assert_eq!(timed_out(&scene).await, 1_200);
    assert_eq!(tick_of(&scene, 2, 0).await.looked_at, 0);
}

#[tokio::test]
async fn a_shard_that_is_being_swept_gets_no_second_sweep() {
    let scene = alone(1);
    expired(&scene, 1_800).await;
    assert_eq!(tick_of(&scene, 1, 0).await.fanned_out, 1);
    let report = tick_of(&scene, 2, 0).await;
    assert_eq!(
        (report.fanned_out, report.timed_out),
        (0, 1_300),
        "the rest, within the tick's own time limit"
    );
    assert_eq!(scene.timers().await, 1);
}

#[tokio::test]
async fn a_sweep_whose_time_limit_ends_sends_its_rest_by_message() {
    let scene = alone(1);
    expired(&scene, 700).await;
    tick_of(&scene, 1, 0).await;
    let message = scene.queue.receive(&QueueName::timers(), 1, Millis::from_secs(60), Millis::ZERO).await;
    let message = message.unwrap().pop().unwrap();
    // No time at all: nothing is done, and the message fails and so stays in the queue.
    let now = scene.service.now();
    assert!(scene.service.fire(&message, now).await.unwrap_err().is_retryable());
    assert_eq!(timed_out(&scene).await, 500);
    scene.service.fire(&message, now.plus(Millis::from_secs(1))).await.unwrap();
    assert_eq!(timed_out(&scene).await, 700);
}

#[tokio::test]
async fn after_an_hour_without_ticks_one_tick_processes_the_backlog() {
    let scene = alone(16);
    for number in 0..600_u64 {
        scene.service.schedule(with_deadline(&format!("t{number}"), 300 + number * 6)).await.unwrap();
    }
    scene.clock.advance(Millis::from_secs(300 + 3_599));
    // No timer was ever sent: each deadline was too far ahead for its write to send one.
    assert_eq!(scene.fire().await, 0);
    assert_eq!(tick_of(&scene, 65, 0).await.timed_out, 600);
}

/// The rules, with a list of the tasks that the tick decided on, in order.
#[derive(Default)]
struct Noting(Mutex<Vec<String>>);

impl Noting {
    fn noted(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Rules for Noting {
    fn decide_task(&self, task: Option<&Task>, command: &Command, context: &Context<'_>) -> Decision {
        if let (Some(task), Command::Due(_)) = (task, command) {
            self.0.lock().unwrap().push(task.id.to_string());
        }
        tickover_core::task::decide(task, command, context)
    }
}

/// A shard with so many tasks, most of which were not scheduled in the order of their deadlines. All deadlines have
/// passed. Returns the tasks in the order of their deadlines.
async fn mixed(noting: &Arc<Noting>, count: u64) -> (Scene, Vec<String>) {
    let scene = alone(1);
    let scene = Scene { service: scene.service.with_rules(noting.clone()), ..scene };
    for number in 0..count {
        let seconds = 5 + number * 37 % 100;
        scene.service.schedule(with_deadline(&format!("at-{seconds:03}-{number}"), seconds)).await.unwrap();
    }
    scene.clock.advance(Millis::from_secs(200));
    scene.lose_messages(&QueueName::timers()).await;
    let all = scene.service.list(&TaskFilter::default(), 10_000, None).await.unwrap().items;
    let mut ids: Vec<String> = all.iter().map(|task| task.id.to_string()).collect();
    ids.sort();
    (scene, ids)
}

#[tokio::test]
async fn a_shard_is_swept_in_the_order_of_the_deadlines() {
    let noting = Arc::<Noting>::default();
    let (scene, in_order) = mixed(&noting, 25).await;
    assert_eq!(tick_of(&scene, 4, 0).await.timed_out, 25);
    assert_eq!(noting.noted(), in_order);

    // Of many, a tick takes the earliest 500.
    let noting = Arc::<Noting>::default();
    let (scene, in_order) = mixed(&noting, 700).await;
    assert_eq!(tick_of(&scene, 4, 0).await.timed_out, 500);
    let mut first = noting.noted();
    first.sort();
    assert_eq!(first.len(), 500);
    // Tasks with the same deadline have no order.
    let deadline = |id: &String| id[..6].to_owned();
    assert!(first.iter().map(deadline).eq(in_order[..500].iter().map(deadline)));
}

#[tokio::test]
async fn a_tick_sends_timers_before_it_processes_a_backlog() {
    let scene = alone(1);
    scene.service.schedule(with_deadline("soon", 250)).await.unwrap();
    expired(&scene, 700).await;
    let report = tick_of(&scene, 2, 0).await;
    assert_eq!((report.timers, report.timed_out, report.fanned_out), (1, 500, 1));
}

#[tokio::test]
async fn two_ticks_at_once_waste_little_and_end_each_task_once() {
    let meter = Meter::new().await.unwrap();
    expired(&meter.scene, 1_000).await;
    let now = meter.scene.service.now();
    let (one, other) =
        futures::join!(meter.scene.service.tick(now, after(60)), meter.scene.service.tick(now, after(60)));
    assert_eq!(one.unwrap().timed_out + other.unwrap().timed_out, 1_000);
    let failed = meter.store.usage().failed_conditions;
    assert!(failed < 100, "{failed} failed conditions for 1,000 records");
}

#[tokio::test]
async fn the_index_grows_by_shards_while_tasks_of_fewer_are_live() {
    let (store, clock): (Arc<dyn Store>, Arc<LeapClock>) = (Arc::new(MemoryStore::new()), Arc::default());
    let (few, many) = (sharded(2, &store, &clock), sharded(32, &store, &clock));
    for number in 0..50 {
        few.service.schedule(with_deadline(&format!("old{number}"), 600)).await.unwrap();
        many.service.schedule(with_deadline(&format!("new{number}"), 600)).await.unwrap();
    }
    clock.advance(Millis::from_secs(600));
    assert_eq!(many.tick().await.unwrap().timed_out, 100);
    assert_eq!(few.tick().await.unwrap().looked_at, 0);
}
