use futures::future::{join, join_all};

use super::*;
use crate::memory::ManualClock;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const NO_WAIT: Millis = Millis::ZERO;

fn name(text: &str) -> QueueName {
    QueueName::parse(text).unwrap()
}

fn message(body: &str, delay_ms: u64) -> Outgoing {
    Outgoing { body: body.to_owned(), delay: Millis::new(delay_ms) }
}

fn fixture() -> (Arc<ManualClock>, MemoryQueue, QueueName) {
    let clock = Arc::new(ManualClock::new(START));
    let queue = MemoryQueue::new(Arc::<ManualClock>::clone(&clock), Queues::Fixed(vec![name("work")]));
    (clock, queue, name("work"))
}

#[tokio::test]
async fn a_wait_ends_to_the_millisecond_when_a_delay_or_a_visibility_does() {
    let (clock, queue, work) = fixture();
    queue.send(&work, &[message("a", 1_234)]).await.unwrap();
    let wait = Millis::from_secs(20);
    let first = clock.drive(queue.receive(&work, 10, Millis::new(777), wait)).await.unwrap();
    assert_eq!((first.len(), clock.now()), (1, START.plus(Millis::new(1_234))));
    let again = clock.drive(queue.receive(&work, 10, Millis::new(777), wait)).await.unwrap();
    assert_eq!((again.len(), clock.now()), (1, START.plus(Millis::new(1_234 + 777))));
}

#[tokio::test]
async fn a_wait_for_nothing_takes_as_long_as_asked_and_at_most_twenty_seconds() {
    let (clock, queue, work) = fixture();
    for (asked, taken) in [(1_500, 1_500), (60_000, 20_000)] {
        let started_at = clock.now();
        let received = clock.drive(queue.receive(&work, 1, Millis::ZERO, Millis::new(asked))).await.unwrap();
        assert_eq!((received, clock.now()), (Vec::new(), started_at.plus(Millis::new(taken))));
    }
}

#[tokio::test]
async fn an_earlier_message_and_a_shortened_visibility_end_waits_already_begun() {
    let (clock, queue, work) = fixture();
    let day = Millis::from_secs(86_400);
    queue.send(&work, &[message("held", 0)]).await.unwrap();
    let held = queue.receive(&work, 1, day, NO_WAIT).await.unwrap().remove(0);
    let waiters = join_all((0..2).map(|_| queue.receive(&work, 1, day, Millis::from_secs(20))));
    let others = async {
        clock.sleep_until(START.plus(Millis::new(100))).await;
        queue.send(&work, &[message("delayed", 900)]).await.unwrap();
        clock.sleep_until(START.plus(Millis::new(200))).await;
        queue.change_visibility(&work, &held.receipt, Millis::new(300)).await.unwrap();
    };
    let (received, ()) = clock.drive(join(waiters, others)).await;
    let mut bodies: Vec<_> = received.into_iter().flatten().flatten().map(|received| received.body).collect();
    bodies.sort();
    assert_eq!(bodies, ["delayed", "held"]);
    assert_eq!(clock.now(), START.plus(Millis::new(1_000)));
}

#[tokio::test]
async fn a_receipt_is_stale_for_another_receiver_queue_or_process() {
    let (clock, queue, work) = fixture();
    queue.send(&work, &[message("a", 0)]).await.unwrap();
    let first = queue.receive(&work, 1, Millis::new(10), NO_WAIT).await.unwrap().remove(0);
    clock.advance(Millis::new(10));
    let second = queue.receive(&work, 1, Millis::new(10), NO_WAIT).await.unwrap().remove(0);
    assert_ne!(first.receipt, second.receipt);
    let extended = queue.change_visibility(&work, &first.receipt, Millis::new(10)).await;
    assert!(matches!(extended, Err(QueueError::StaleReceipt)), "{extended:?}");

    let later: Arc<ManualClock> = Arc::new(ManualClock::new(START.plus(Millis::new(1))));
    let restarted = MemoryQueue::new(later, Queues::Fixed(vec![name("work")]));
    restarted.send(&work, &[message("b", 0)]).await.unwrap();
    restarted.receive(&work, 1, Millis::new(10), NO_WAIT).await.unwrap();
    restarted.delete(&work, &first.receipt).await.unwrap();
    assert!(!restarted.depth(&work).await.unwrap().is_empty());
}

#[tokio::test]
async fn fixed_queues_are_all_there_is_and_others_appear_when_opened() {
    let (clock, fixed, work) = fixture();
    let other = name("other");
    assert!(!fixed.open(&other).await.unwrap());
    assert!(!fixed.knows(&other));
    assert_eq!(fixed.names(), [QueueName::timers(), work]);

    let opening = MemoryQueue::new(clock, Queues::OnOpen);
    let unopened = opening.receive(&other, 1, Millis::ZERO, NO_WAIT).await;
    assert!(matches!(unopened, Err(QueueError::Unknown { .. })), "{unopened:?}");
    assert!(opening.open(&other).await.unwrap());
    opening.send(&other, &[message("a", 0)]).await.unwrap();
    assert!(opening.open(&other).await.unwrap());
    assert_eq!(opening.depth(&other).await.unwrap().visible, 1, "opening again keeps the messages");
    assert_eq!(opening.names(), [QueueName::timers(), other]);
}

#[tokio::test]
async fn a_backlog_of_a_hundred_thousand_is_received_completely() {
    let (_, queue, work) = fixture();
    let backlog: Vec<_> = (0..100_000).map(|n| message(&n.to_string(), 0)).collect();
    queue.send(&work, &backlog).await.unwrap();
    let mut drained = 0;
    loop {
        let received = queue.receive(&work, 10, Millis::from_secs(60), NO_WAIT).await.unwrap();
        for message in &received {
            assert_eq!(message.body, drained.to_string(), "in the order in which they were sent");
            queue.delete(&work, &message.receipt).await.unwrap();
            drained += 1;
        }
        if received.is_empty() {
            break;
        }
    }
    assert_eq!(drained, 100_000);
    assert!(queue.depth(&work).await.unwrap().is_empty());
}
