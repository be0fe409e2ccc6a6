use async_trait::async_trait;
use futures::future::join_all;

use super::*;
use crate::memory::{ManualClock, MemoryQueue, Queues};
use tickover_core::time::Timestamp;

/// Queues that fail a moment after a call if their name starts with `away`, and take longer if it starts with `slow`.
struct PartlyAway(MemoryQueue);

impl PartlyAway {
    async fn fails(&self, queue: &QueueName) -> Result<(), QueueError> {
        let moments = if queue.as_str().starts_with("slow") { 3 } else { 1 };
        for _ in 0..moments {
            tokio::task::yield_now().await;
        }
        if queue.as_str().starts_with("away") { Err(unavailable("away")) } else { Ok(()) }
    }
}

#[async_trait]
impl Queue for PartlyAway {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        self.fails(queue).await?;
        self.0.send(queue, messages).await
    }

    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        self.0.receive(queue, max, visibility, wait).await
    }

    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError> {
        self.0.delete(queue, receipt).await
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError> {
        self.0.change_visibility(queue, receipt, visibility).await
    }

    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError> {
        self.fails(queue).await?;
        self.0.depth(queue).await
    }

    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError> {
        self.0.open(queue).await
    }

    fn class_of(&self, receipt: &str) -> Priority {
        self.0.class_of(receipt)
    }

    fn traits(&self) -> QueueTraits {
        self.0.traits()
    }

    fn knows(&self, queue: &QueueName) -> bool {
        self.0.knows(queue)
    }

    fn names(&self) -> Vec<QueueName> {
        self.0.names()
    }

    async fn class_depth(&self, queue: &QueueName, class: Priority) -> Result<ClassDepth, QueueError> {
        self.fails(queue).await?;
        self.0.class_depth(queue, class).await
    }

    async fn discover(&self) -> Result<Vec<QueueName>, QueueError> {
        self.0.discover().await
    }
}

fn queue(name: &str) -> QueueName {
    QueueName::parse(name).unwrap()
}

fn partly_away() -> BriefQueues {
    at(Arc::new(ManualClock::new(Timestamp::from_millis(1_767_225_600_000))))
}

fn at(clock: Arc<ManualClock>) -> BriefQueues {
    let names = ["away", "away-1", "away-2", "away-3", "away-4", "here", "slow"].map(queue).to_vec();
    let inner = Arc::new(PartlyAway(MemoryQueue::new(clock.clone(), Queues::Fixed(names))));
    BriefQueues { inner, clock, failures: Mutex::default() }
}

#[tokio::test]
async fn one_failing_queue_does_not_stop_calls_to_others_however_many_calls_fail() {
    let queues = partly_away();
    let message = || Outgoing::plain("{}", Millis::ZERO);
    let messages = [message()];
    let away = queue("away");
    let sends = join_all((0..64).map(|_| queues.send(&away, &messages))).await;
    assert!(sends.iter().all(Result::is_err));
    assert!(queues.is_given_up(&queue("away")));
    for other in [queue("here"), QueueName::timers()] {
        let sent = queues.send(&other, &[message()]).await.unwrap();
        assert!(sent.iter().all(Result::is_ok), "{other}");
    }
}

#[tokio::test]
async fn failing_queues_do_not_stop_calls_to_a_queue_that_has_answered() {
    let queues = partly_away();
    queues.depth(&queue("here")).await.unwrap();
    for _ in 0..3 {
        for name in ["away", "away-1", "away-2", "away-3", "away-4"] {
            queues.depth(&queue(name)).await.unwrap_err();
        }
    }
    queues.depth(&queue("here")).await.unwrap();
    // Without an answer from any queue, all are given up before each was called twice.
    let queues = partly_away();
    for name in ["away", "away-1", "away-2", "away-3"] {
        queues.depth(&queue(name)).await.unwrap_err();
    }
    assert!(queues.is_given_up(&queue("away-4")));
}

/// A machine that sleeps, or a process that is stopped, isn't a queue that doesn't answer.
#[tokio::test]
async fn a_process_that_stood_still_waits_for_the_answer() {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_767_225_600_000)));
    let (queues, slow) = (at(Arc::clone(&clock)), queue("slow"));
    for _ in 0..FAILURES_OF_ONE {
        let mut sends = queues.depth(&slow);
        assert!(futures::poll!(&mut sends).is_pending());
        clock.advance(Millis::from_secs(60));
        sends.await.unwrap();
    }
    // One that doesn't answer while the process runs is given up.
    for _ in 0..FAILURES_OF_ONE {
        let mut sends = queues.depth(&slow);
        assert!(futures::poll!(&mut sends).is_pending());
        clock.advance(TIMEOUT);
        sends.await.unwrap_err();
    }
    assert!(queues.is_given_up(&slow));
}
