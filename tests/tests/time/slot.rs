//! A slot with more instants than one tick sends timers for, and with more timers than fit one message each.

use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::task::Status;
use tickover_core::timer::Wake;
use tickover_service::claim::Delivered;
use tickover_service::ports::{Queue as _, TaskFilter};
use tickover_service::timers::Fired;
use tickover_tests::faulty_queue::{FaultyQueue, QueueFault};
use tickover_tests::scene::Scene;

use super::{after, tick_of, with_deadline};

/// So many deadlines a second, from 205 s on: too far ahead for their writes to send timers.
async fn deadlines(scene: &Scene, seconds: u64, each: u64) {
    for number in 0..seconds * each {
        let asked = with_deadline(&format!("t{number}"), 205 + number / each);
        scene.service.schedule(asked).await.unwrap();
    }
}

async fn timed_out(scene: &Scene) -> usize {
    let filter = TaskFilter { statuses: vec![Status::TimedOut], ..TaskFilter::default() };
    let (mut count, mut cursor) = (0, None);
    loop {
        let page = scene.service.list(&filter, 1_000, cursor.as_deref()).await.unwrap();
        count += page.items.len();
        cursor = page.next;
        if cursor.is_none() {
            return count;
        }
    }
}

/// The next message of the queue of timers, which is deleted.
async fn next(scene: &Scene) -> String {
    let timers = QueueName::timers();
    let message = scene.queue.receive(&timers, 1, Millis::from_secs(60), Millis::ZERO).await;
    let message = message.unwrap().pop().unwrap();
    scene.queue.delete(&timers, &message.receipt).await.unwrap();
    message.body
}

#[tokio::test]
async fn the_rest_of_a_slot_is_sent_by_messages_that_continue_where_the_tick_stopped() {
    let (scene, _) = FaultyQueue::scene(1);
    deadlines(&scene, 30, 100).await;
    assert_eq!(tick_of(&scene, 1, 0).await.timers, 1_000);
    let mut body = next(&scene).await;
    // No time at all: the message is sent on as it is.
    let fired = scene.service.fire(Delivered::first(&body), scene.service.now()).await.unwrap();
    assert_eq!(fired, Fired::HandedOver { timers: 0 });
    body = next(&scene).await;
    let fired = scene.service.fire(Delivered::first(&body), after(110)).await.unwrap();
    assert_eq!(
        fired,
        Fired::HandedOver { timers: 2_000 },
        "the timers that the tick hasn't sent, none twice"
    );
    assert_eq!(tick_of(&scene, 1, 5).await.timers, 0, "the same tick again");
    for second in 205..235 {
        scene.clock.advance(after(second).since(scene.service.now()));
        scene.fire().await;
    }
    assert_eq!(timed_out(&scene).await, 3_000);
    assert!(scene.service.now() <= after(236));
}

#[tokio::test]
async fn a_rest_message_that_cannot_be_read_or_sent_is_received_again() {
    let (scene, queue) = FaultyQueue::scene(1);
    deadlines(&scene, 30, 100).await;
    tick_of(&scene, 1, 0).await;
    let body = next(&scene).await;
    queue.set_fault(Some(QueueFault::Fails));
    assert!(scene.service.fire(Delivered::first(&body), after(110)).await.unwrap_err().is_retryable());
    queue.set_fault(None);
    assert_eq!(
        scene.service.fire(Delivered::first(&body), after(110)).await.unwrap(),
        Fired::HandedOver { timers: 2_000 }
    );
}

#[tokio::test]
async fn a_tick_that_cannot_send_leaves_its_slot_to_the_next_one() {
    let (scene, queue) = FaultyQueue::scene(4);
    deadlines(&scene, 20, 10).await;
    queue.set_fault(Some(QueueFault::Hangs));
    assert_eq!(tick_of(&scene, 1, 0).await.timers, 0);
    queue.set_fault(None);
    assert_eq!(tick_of(&scene, 1, 30).await.timers, 200);
    assert_eq!(tick_of(&scene, 2, 0).await.timers, 0, "no timer is sent twice");
}

#[tokio::test]
async fn ten_messages_carry_five_hundred_timers_of_one_second_and_fire_in_that_second() {
    let (scene, _) = FaultyQueue::scene(1);
    deadlines(&scene, 1, 1_000).await;
    assert_eq!(tick_of(&scene, 1, 0).await.timers, 1_000);
    assert_eq!(scene.timers().await, 20);
    scene.clock.advance(after(205).since(scene.service.now()));
    for _ in 0..10 {
        let body = next(&scene).await;
        assert!(matches!(Wake::parse(&body), Ok(Wake::Timers(timers)) if timers.len() == 50));
        let fired = scene.service.fire(Delivered::first(&body), after(250)).await.unwrap();
        assert_eq!(fired, Fired::Together { timed_out: 50, others: 0 });
    }
    assert_eq!((timed_out(&scene).await, scene.service.now()), (500, after(205)));
}

#[tokio::test]
async fn timers_of_one_message_are_each_on_time_and_a_repetition_has_no_effect() {
    let (scene, _) = FaultyQueue::scene(1);
    for (id, ms) in [("a", 205_000), ("b", 205_400), ("c", 205_900)] {
        let mut asked = with_deadline(id, 1);
        asked.timeouts.schedule_to_close =
            Some(tickover_core::timeout::LifeTimeout { after: Millis::new(ms), is_error: true });
        scene.service.schedule(asked).await.unwrap();
    }
    assert_eq!(tick_of(&scene, 1, 0).await.timers, 3);
    assert_eq!(scene.timers().await, 1);
    scene.clock.advance(after(205).since(scene.service.now()));
    let body = next(&scene).await;
    let fired = scene.service.fire(Delivered::first(&body), after(250)).await.unwrap();
    assert_eq!(fired, Fired::Together { timed_out: 3, others: 0 });
    for (id, ms) in [("a", 205_000), ("b", 205_400), ("c", 205_900)] {
        let task = scene.service.describe(&tickover_tests::scene::task_id(id)).await.unwrap().task;
        assert!(task.ended().unwrap().ended_at >= after(0).plus(Millis::new(ms)), "{id} was early");
    }
    assert_eq!(scene.service.now(), after(205).plus(Millis::new(900)));
    let fired = scene.service.fire(Delivered::first(&body), after(250)).await.unwrap();
    assert_eq!(fired, Fired::Together { timed_out: 0, others: 3 });
}
