//! Lost walks, and walks with errors for a long time: each parked record still has its hint within a few minutes.

use tickover_core::id::WorkflowName;

use super::*;
use crate::executions::StartRequest;
use crate::ports::Store;

/// One minute, with a call of the tick and the processing of its messages.
const MINUTE: u64 = 60;
/// How long a pause must last so that the due slots of parked records are moved far ahead.
const LONG_MINUTES: u32 = 35;

impl Scene {
    /// This many tasks, parked long ago.
    async fn parked(shards: u16, count: usize) -> Self {
        let scene = Self::of_shards(shards);
        for number in 0..count {
            scene.schedule(&format!("t-{number}")).await;
        }
        scene.operator.pause_queue(&work(), true).await.unwrap();
        scene.pass(6);
        assert_eq!(scene.deliver().await, 0);
        for _ in 0..LONG_MINUTES {
            scene.minute().await;
            assert_eq!(scene.deliver().await, 0);
        }
        scene
    }

    async fn minute(&self) {
        self.pass(MINUTE);
        self.tick().await;
        self.fire().await;
    }

    async fn tick(&self) {
        let now = self.clock.now();
        self.worker.tick(now, now.plus(Millis::from_secs(50))).await.unwrap();
    }

    async fn resume(&self) {
        self.operator.pause_queue(&work(), false).await.unwrap();
    }

    /// Loses all messages of the timers queue. Returns how many there were.
    async fn lose_walks(&self) -> usize {
        self.pass(10);
        let timers = QueueName::timers();
        let mut lost = 0;
        loop {
            let some = self.queue.receive(&timers, 10, Millis::from_secs(60), Millis::ZERO).await.unwrap();
            if some.is_empty() {
                return lost;
            }
            lost += some.len();
            for message in some {
                self.queue.delete(&timers, &message.receipt).await.unwrap();
            }
        }
    }

    /// Fires the timers that have arrived, with retries inside the calls. Returns the positions from which walks
    /// continue.
    async fn fire_with_retries(&self) -> Vec<Option<Timestamp>> {
        let (timers, mut places) = (QueueName::timers(), vec![]);
        for message in self.queue.receive(&timers, 10, Millis::from_secs(70), Millis::ZERO).await.unwrap() {
            let Ok(Wake::Resume(resume)) = Wake::parse(&message.body) else { panic!("{}", message.body) };
            places.push(resume.from);
            let stop_at = self.clock.now().plus(Millis::from_secs(50));
            self.clock.drive(Box::pin(self.worker.fire(&message, stop_at))).await.unwrap();
            self.queue.delete(&timers, &message.receipt).await.unwrap();
        }
        places
    }

    async fn messages(&self, queue: &QueueName) -> u64 {
        let depth = self.queue.depth(queue).await.unwrap();
        depth.visible + depth.delayed
    }

    async fn record(&self) -> QueueRecord {
        (&*self.store as &dyn Store).queue(&work()).await.unwrap().unwrap()
    }

    /// Minutes until this many tasks are running.
    async fn minutes_until(&self, wanted: usize) -> u32 {
        let mut taken = self.deliver().await;
        let mut minutes = 0;
        while taken < wanted && minutes < 60 {
            self.minute().await;
            taken += self.deliver().await;
            minutes += 1;
        }
        assert_eq!(taken, wanted);
        minutes
    }
}

#[tokio::test]
async fn walks_whose_messages_are_lost_are_restarted_within_three_minutes() {
    let scene = Scene::parked(4, 20).await;
    scene.resume().await;
    assert_eq!(scene.lose_walks().await, 4);
    assert!(scene.minutes_until(20).await <= 3);
    let record = scene.record().await;
    assert_eq!((record.parked, record.resuming), (false, None));
}

#[tokio::test]
async fn an_execution_whose_walk_is_lost_has_its_message_within_three_minutes() {
    let scene = Scene::of_shards(4);
    let workflow = WorkflowName::parse("order").unwrap();
    scene.operator.start(StartRequest::new(workflow, work())).await.unwrap();
    scene.operator.pause_queue(&work(), true).await.unwrap();
    scene.pass(6);
    let request = ClaimRequest {
        worker: None,
        max: 1,
        lease: Millis::from_secs(60),
        wait: Millis::ZERO,
        provides: vec![],
    };
    let hint = scene.queue.receive(&work(), 1, Millis::from_secs(60), Millis::ZERO).await.unwrap().remove(0);
    assert!(scene.worker.start_turn(&hint.body, &request).await.unwrap().is_none());
    scene.queue.delete(&work(), &hint.receipt).await.unwrap();
    for _ in 0..LONG_MINUTES {
        scene.minute().await;
    }
    assert_eq!(scene.messages(&work()).await, 0);
    scene.resume().await;
    assert_eq!(scene.lose_walks().await, 4);
    for _ in 0..3 {
        scene.minute().await;
    }
    assert_eq!(scene.messages(&work()).await, 1);
}

#[tokio::test]
async fn one_lost_walk_of_several_is_restarted_and_the_others_are_not() {
    let scene = Scene::parked(4, 20).await;
    scene.resume().await;
    scene.pass(10);
    let timers = QueueName::timers();
    let lost = scene.queue.receive(&timers, 1, Millis::from_secs(60), Millis::ZERO).await.unwrap().remove(0);
    scene.queue.delete(&timers, &lost.receipt).await.unwrap();
    scene.fire().await;
    assert_eq!(scene.record().await.resuming.unwrap().walks.len(), 1);
    scene.pass(110);
    scene.tick().await;
    assert_eq!(scene.messages(&timers).await, 1);
    scene.fire().await;
    assert_eq!(scene.deliver().await, 20);
}

#[tokio::test]
async fn an_operator_who_dies_before_the_messages_are_sent_leaves_the_walks_to_the_tick() {
    let scene = Scene::parked(4, 20).await;
    let now = scene.clock.now();
    scene.operator.write_queue(&work(), |record| record.resume(now, 4)).await.unwrap();
    assert!(scene.minutes_until(20).await <= 3);
}

#[tokio::test]
async fn a_walk_waits_for_a_throttled_store_and_continues_from_its_position() {
    let scene = Scene::parked(1, 450).await;
    scene.resume().await;
    scene.pass(10);
    // The store fails inside the third page, for a quarter of an hour.
    scene.store.last.store(scene.store.writes.load(Ordering::SeqCst) + 250, Ordering::SeqCst);
    let timers = QueueName::timers();
    let mut places = vec![];
    for _ in 0..60 {
        places.extend(scene.fire_with_retries().await);
        assert_eq!(scene.messages(&timers).await, 1, "there is always exactly one next message");
        scene.pass(15);
    }
    scene.store.last.store(NEVER, Ordering::SeqCst);
    assert!(places.len() > 30, "{}", places.len());
    assert!(places[1].is_some() && places[1..].iter().all(|place| *place == places[1]), "{places:?}");
    assert_eq!(scene.fire_with_retries().await, [places[1]]);
    // One write was done and its answer lost: that task is like any task whose message was lost.
    assert_eq!(scene.messages(&work()).await, 449, "one message each");
    assert!(!scene.record().await.parked);
    assert!(scene.minutes_until(450).await <= 10);
}

#[tokio::test]
async fn an_active_walk_is_not_restarted_and_a_repeated_message_finds_nothing_to_do() {
    let scene = Scene::parked(1, 10).await;
    scene.resume().await;
    let timers = QueueName::timers();
    scene.pass(10);
    let message = scene.queue.receive(&timers, 1, Millis::ZERO, Millis::ZERO).await.unwrap().remove(0);
    scene.pass(49);
    scene.tick().await;
    scene.pass(60);
    scene.tick().await;
    assert_eq!(scene.messages(&timers).await, 1, "the first one");
    scene.fire().await;
    let stop_at = scene.clock.now().plus(Millis::from_secs(50));
    assert_eq!(scene.worker.fire(&message, stop_at).await.unwrap(), Fired::Spent);
    assert_eq!((scene.messages(&work()).await, scene.messages(&timers).await), (10, 0));
    let range = DueRange { shard: 0, from: FIRST, until: LAST };
    let due = scene.store.due(range, 100, None).await.unwrap().items;
    assert!(due.iter().all(|entry| matches!(entry.record, RecordId::Task(_))), "{due:?}");
}

#[tokio::test]
async fn a_queue_paused_again_has_no_walks_and_the_next_resume_starts_new_ones() {
    let scene = Scene::parked(1, 10).await;
    scene.resume().await;
    scene.operator.pause_queue(&work(), true).await.unwrap();
    let record = scene.record().await;
    assert_eq!((record.parked, record.resuming), (true, None));
    scene.pass(10);
    scene.fire().await;
    assert_eq!((scene.messages(&work()).await, scene.record().await.parked), (0, true));
    scene.resume().await;
    assert_eq!(scene.lose_walks().await, 1);
    assert!(scene.minutes_until(10).await <= 3);
}
