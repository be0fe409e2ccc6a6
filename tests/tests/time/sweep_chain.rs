//! A shard's backlog has one sweep, however often the sweep's time limit ends and its message is repeated.

use std::sync::Arc;

use tickover_core::command::Context;
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::limits::Limits;
use tickover_core::task::command::Command;
use tickover_core::task::decision::Decision;
use tickover_core::task::{Status, Task};
use tickover_core::timer::Wake;
use tickover_service::memory::{MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{Outgoing, Queue as _, Received, TaskFilter};
use tickover_service::system::SystemIds;
use tickover_service::timers::Fired;
use tickover_service::{Ports, Rules, Service};
use tickover_tests::scene::{LeapClock, Scene};

use super::{after, tick_of, with_deadline};

/// How long each decision takes.
const DECISION: Millis = Millis::new(20);

/// The rules, with a delay for each decision.
struct Slow(Arc<LeapClock>);

impl Rules for Slow {
    fn decide_task(&self, task: Option<&Task>, command: &Command, context: &Context<'_>) -> Decision {
        if matches!(command, Command::Due(_)) {
            self.0.advance(DECISION);
        }
        tickover_core::task::decide(task, command, context)
    }
}

fn slow_scene() -> Scene {
    let clock = Arc::new(LeapClock::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let store = Arc::new(MemoryStore::new());
    let ports = Ports { store, queue: queue.clone(), clock: clock.clone(), ids: Arc::new(SystemIds) };
    let service = Service::new(ports, Limits { due_shards: 1, ..Limits::default() });
    Scene { service: service.with_rules(Arc::new(Slow(clock.clone()))), clock, queue }
}

async fn expired(scene: &Scene, count: usize) {
    for number in 0..count {
        scene.service.schedule(with_deadline(&format!("t{number}"), 5)).await.unwrap();
    }
    scene.clock.advance(Millis::from_secs(5));
    scene.lose_messages(&QueueName::timers()).await;
}

async fn left(scene: &Scene) -> usize {
    let filter = TaskFilter { statuses: vec![Status::Pending], ..TaskFilter::default() };
    scene.service.list(&filter, 100_000, None).await.unwrap().items.len()
}

/// All sweeps that are in the queue now. They stay hidden until they are deleted.
async fn sweeps(scene: &Scene) -> Vec<Received> {
    let mut all = Vec::new();
    loop {
        let timers = QueueName::timers();
        let some = scene.queue.receive(&timers, 10, Millis::from_secs(600), Millis::ZERO).await.unwrap();
        if some.is_empty() {
            return all;
        }
        all.extend(
            some.into_iter().filter(|message| matches!(Wake::parse(&message.body), Ok(Wake::Sweep(_)))),
        );
    }
}

/// Processes these messages, one after the other, each with time for so many decisions. Those that fail become visible
/// again. Returns how many of them worked.
async fn deal_with(scene: &Scene, messages: Vec<Received>, decisions: u64) -> usize {
    let (timers, mut at_work) = (QueueName::timers(), 0);
    for message in messages {
        let stop_at = scene.service.now().plus(DECISION.saturating_mul(decisions));
        if let Ok(fired) = scene.service.fire(&message, stop_at).await {
            at_work += usize::from(matches!(fired, Fired::Swept(_)));
            scene.queue.delete(&timers, &message.receipt).await.unwrap();
        } else {
            at_work += 1;
            scene.queue.change_visibility(&timers, &message.receipt, Millis::ZERO).await.unwrap();
        }
    }
    at_work
}

#[tokio::test]
async fn a_sweep_whose_time_limit_ends_inside_a_page_continues_as_one_sweep() {
    let scene = slow_scene();
    expired(&scene, 2_000).await;
    scene.service.tick(after(0), scene.service.now().plus(Millis::from_secs(50))).await.unwrap();
    let mut rounds = 0;
    while left(&scene).await > 0 {
        let messages = sweeps(&scene).await;
        assert_eq!(messages.len(), 1, "round {rounds}");
        // Far less than a page, and never a whole number of batches.
        assert_eq!(deal_with(&scene, messages, 110).await, 1);
        rounds += 1;
        assert!(rounds < 50, "{} left", left(&scene).await);
    }
    assert!(rounds > 8, "{rounds}");
    // One more message may be needed to find that nothing is left.
    let rest = sweeps(&scene).await;
    deal_with(&scene, rest, 1_000).await;
    assert_eq!(sweeps(&scene).await.len(), 0);
}

#[tokio::test]
async fn repeated_messages_and_ticks_in_between_do_not_become_further_sweeps() {
    let scene = slow_scene();
    expired(&scene, 9_000).await;
    let mut minute = 1;
    for round in 0..30 {
        if round % 2 == 0 {
            // The tick has little time as well, and its shard is being swept.
            let stop_at = scene.service.now().plus(DECISION.saturating_mul(60));
            scene.service.tick(after(minute * 60), stop_at).await.unwrap();
            minute += 1;
        }
        let mut messages = sweeps(&scene).await;
        assert!(messages.len() <= 1 + usize::from(round % 3 == 0), "round {round}: {}", messages.len());
        if round % 3 == 0 {
            // Each is delivered twice: of the two, one continues the shard's sweep.
            for message in messages.clone() {
                let again = Outgoing::again(message.body, Millis::ZERO);
                scene.queue.send(&QueueName::timers(), &[again]).await.unwrap();
            }
            messages.extend(sweeps(&scene).await);
        }
        assert!(deal_with(&scene, messages, 110).await <= 1, "round {round}");
        scene.clock.advance(Millis::from_secs(20));
    }
    let messages = sweeps(&scene).await;
    assert_eq!(messages.len(), 1);
    deal_with(&scene, messages, 100_000).await;
    assert_eq!((left(&scene).await, sweeps(&scene).await.len()), (0, 0));
}

#[tokio::test]
async fn a_dead_sweep_is_replaced_after_five_minutes_and_has_no_effect_afterwards() {
    let scene = slow_scene();
    expired(&scene, 12_000).await;
    let budget = || DECISION.saturating_mul(600);
    let tick = async |minute: u64| {
        tick_of(&scene, minute, 0).await;
    };
    scene.service.tick(after(0), scene.service.now().plus(budget())).await.unwrap();
    let dead = sweeps(&scene).await;
    assert_eq!(dead.len(), 1);
    scene.clock.advance(Millis::from_secs(299));
    scene.service.tick(after(300), scene.service.now().plus(budget())).await.unwrap();
    let second = sweeps(&scene).await;
    assert_eq!(second.len(), 1, "a tick started another sweep");
    assert_eq!(deal_with(&scene, dead, 100).await, 0, "too late: another sweep owns the shard");
    assert_eq!(deal_with(&scene, second, 100_000).await, 1);
    tick(20).await;
    assert_eq!((left(&scene).await, sweeps(&scene).await.len()), (0, 0));
}
