//! The queues as one process sees them: slow, unreliable, and with all the irregularities that SQS allows.

use std::sync::Arc;

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_service::ports::{ClassDepth, Depth, Outgoing, Queue, QueueError, QueueTraits, Received};
use tickover_sqs::split_receipt;

use super::aws::HOPS_MAX;
use super::bugs::{self, Bug};
use super::classes::{self, Classes};
use super::gate::{Gate, Refusal, RemoteService};
use super::history::{Fate, Fault, Note, What};

/// How late a message arrives at most.
const LATE_MAX_MS: u64 = 900_000;

/// A process's queues.
pub struct SimQueue(pub Arc<Gate>, pub Classes);

/// A call to a queue, until its answer is there. If its caller doesn't wait so long, that is noted.
struct Awaited<'a> {
    gate: &'a Gate,
    is_answered: bool,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.gate.world.abandons(self.gate.actor);
        }
    }
}

impl SimQueue {
    fn refused(&self) -> Result<(), QueueError> {
        match self.0.refusal() {
            None => Ok(()),
            Some(Refusal::Unavailable) => Err(unavailable()),
            Some(Refusal::Throttled) => Err(QueueError::Throttled),
        }
    }

    /// Fails if the queue is removed or unreachable.
    async fn reached(&self, queue: &QueueName) -> Result<(), QueueError> {
        if self.0.world.is_removed(queue) {
            return Err(QueueError::Unknown { queue: queue.to_string() });
        }
        if self.0.wait_if_unreachable(RemoteService::Queues).await {
            Err(unavailable())
        } else {
            self.refused()
        }
    }

    async fn call<T>(
        &self,
        queue: &QueueName,
        call: impl Future<Output = Result<T, QueueError>>,
    ) -> Result<T, QueueError> {
        let mut awaited = Awaited { gate: &self.0, is_answered: false };
        let answer = self.answer(queue, call).await;
        awaited.is_answered = true;
        answer
    }

    async fn answer<T>(
        &self,
        queue: &QueueName,
        call: impl Future<Output = Result<T, QueueError>>,
    ) -> Result<T, QueueError> {
        self.0.pass().await;
        self.reached(queue).await?;
        let answer = call.await;
        self.0.pass().await;
        if self.0.loses_answer() { Err(unavailable()) } else { answer }
    }

    fn note(&self, queue: &QueueName, fate: Fate, body: &str) {
        let what = What::Message { queue: queue.clone(), fate, note: Note::of(body) };
        self.0.world.note(self.0.actor, what);
    }

    async fn deliver(&self, queue: &QueueName, message: &Outgoing) -> Result<(), QueueError> {
        let gate = &self.0;
        let is_lost = gate.world.hardship.sleeps_lost && bugs::is_for_a_sleep(gate.actor, message);
        if is_lost || gate.fault_happens(|faults| faults.drop) {
            self.note(queue, Fate::Dropped, &message.body);
            return Ok(());
        }
        let hops = gate.world.aws.hop(gate.actor, &Note::of(&message.body));
        // The template allows the loop for every function that is part of one.
        if hops > HOPS_MAX && gate.world.bug == Some(Bug::LoopsNotAllowed) {
            gate.world.fault(gate.actor, Fault::LoopStopped(hops));
            self.note(queue, Fate::Dropped, &message.body);
            return Ok(());
        }
        let late = gate.fault_happens(|faults| faults.delay);
        let by = if late { gate.dice.millis(1, LATE_MAX_MS) } else { Millis::ZERO };
        // SQS counts whole seconds; fractions are cut off.
        let delay = Millis::from_secs(message.delay.as_secs_floor()).saturating_add(by);
        self.note(queue, Fate::Sent(delay), &message.body);
        self.enqueue(queue, &message.body, delay).await?;
        if gate.fault_happens(|faults| faults.duplicate) {
            let delay = delay.saturating_add(gate.dice.millis(0, LATE_MAX_MS));
            self.note(queue, Fate::Duplicated(delay), &message.body);
            self.enqueue(queue, &message.body, delay).await?;
        }
        Ok(())
    }

    async fn enqueue(&self, queue: &QueueName, body: &str, delay: Millis) -> Result<(), QueueError> {
        let message = Outgoing::again(body, delay);
        let there = classes::place(&self.0.world, queue, message.lane.priority);
        self.0.world.messages.send(&there, &[message]).await.map(drop)
    }

    async fn hide(&self, queue: &QueueName, receipt: &str, visibility: Millis) -> Result<(), QueueError> {
        let (there, receipt) = classes::there(&self.0.world, queue, receipt);
        self.0.world.messages.change_visibility(&there, receipt, visibility).await
    }

    /// Deletes a message, and records that if it was there: after it was received again, an older receipt has no effect.
    async fn remove(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError> {
        let world = &self.0.world;
        let (there, of_class) = classes::there(world, queue, receipt);
        let before = world.messages.depth(&there).await?;
        world.messages.delete(&there, of_class).await?;
        if world.messages.depth(&there).await? != before
            && let Some(body) = world.aws.delete(receipt)
        {
            self.note(queue, Fate::Deleted, &body);
        }
        Ok(())
    }

    /// Records who received what, and makes some of the messages visible to others as well: visibility timeouts aren't
    /// strict.
    async fn record_received(&self, queue: &QueueName, received: &[Received]) -> Result<(), QueueError> {
        for message in received {
            self.0.world.aws.receive(message);
            self.note(queue, Fate::Received, &message.body);
            if self.0.fault_happens(|faults| faults.shown) {
                self.note(queue, Fate::Shown, &message.body);
                self.hide(queue, &message.receipt, Millis::ZERO).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Queue for SimQueue {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        for message in messages {
            self.0.sends(queue, &message.body);
        }
        if bugs::forgets(&self.0.world, self.0.actor, messages) {
            return Ok(messages.iter().map(|_| Ok(())).collect());
        }
        if self.0.world.is_removed(queue) {
            for message in messages {
                self.note(queue, Fate::Refused, &message.body);
            }
        }
        let send = async {
            let mut results = Vec::new();
            for message in messages {
                results.push(match self.refused() {
                    Ok(()) => self.deliver(queue, message).await,
                    Err(error) => Err(error),
                });
            }
            Ok(results)
        };
        let answer = self.call(queue, send).await;
        if bugs::gives_up(&self.0, &answer).await {
            return Ok(messages.iter().map(|_| Ok(())).collect());
        }
        answer
    }

    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        self.0.pass().await;
        self.reached(queue).await?;
        let received = self.1.receive(&self.0.world, queue, max, visibility, wait).await?;
        self.record_received(queue, &received).await?;
        for message in received.iter().filter(|one| bugs::is_lost_with_its_worker(&self.0.world, one)) {
            self.remove(queue, &message.receipt).await?;
        }
        self.0.pass().await;
        if !received.is_empty() && self.0.loses_answer() {
            for message in &received {
                self.note(queue, Fate::NeverReceived, &message.body);
            }
            return Err(unavailable());
        }
        Ok(received)
    }

    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError> {
        // In other runs, the messages would only be received again and again.
        if self.0.world.bug == Some(Bug::MessagesNotDeleted) && self.0.world.hardship.mortality.is_some() {
            return Ok(());
        }
        self.call(queue, self.remove(queue, receipt)).await
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError> {
        self.call(queue, self.hide(queue, receipt, visibility)).await
    }

    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError> {
        if self.0.fault_happens(|faults| faults.wrong_depth) {
            self.0.world.fault(self.0.actor, Fault::WrongDepth);
            return Ok(Depth::default());
        }
        let depth = self.call(queue, classes::depth(&self.0.world, queue)).await?;
        // A busy queue always reports at least one message.
        let always = u64::from(self.0.world.is_busy());
        Ok(Depth { visible: depth.visible + always, ..depth })
    }

    async fn class_depth(&self, queue: &QueueName, class: Priority) -> Result<ClassDepth, QueueError> {
        if !self.0.world.has_classes {
            return Ok(ClassDepth { depth: self.depth(queue).await?, apart: false });
        }
        if self.0.fault_happens(|faults| faults.wrong_depth) {
            self.0.world.fault(self.0.actor, Fault::WrongDepth);
            let apart = classes::place(&self.0.world, queue, class) != *queue;
            return Ok(ClassDepth { depth: Depth::default(), apart });
        }
        let there = self.call(queue, classes::class_depth(&self.0.world, queue, class)).await?;
        let always = u64::from(self.0.world.is_busy());
        let depth = Depth { visible: there.depth.visible + always, ..there.depth };
        Ok(ClassDepth { depth, ..there })
    }

    fn class_of(&self, receipt: &str) -> Priority {
        split_receipt(receipt).0
    }

    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError> {
        if self.0.world.is_removed(queue) {
            return Ok(false);
        }
        self.call(queue, self.0.world.messages.open(queue)).await
    }

    fn traits(&self) -> QueueTraits {
        QueueTraits { counts_seconds: true, ..QueueTraits::default() }
    }

    fn knows(&self, queue: &QueueName) -> bool {
        self.0.world.messages.knows(queue) && !self.0.world.is_removed(queue)
    }

    fn names(&self) -> Vec<QueueName> {
        let names = self.0.world.messages.names().into_iter();
        names.filter(|name| !self.0.world.is_removed(name) && !classes::is_class_queue(name)).collect()
    }

    async fn discover(&self) -> Result<Vec<QueueName>, QueueError> {
        Ok(self.names().into_iter().filter(|name| !name.is_reserved()).collect())
    }
}

fn unavailable() -> QueueError {
    QueueError::Unavailable { reason: "no answer".to_owned() }
}
