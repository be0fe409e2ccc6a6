//! A queue in the process, with the semantics of SQS.
//!
//! Its messages are lost when it is dropped. Unlike SQS it counts milliseconds, never loses or doubles a message by
//! itself, and keeps messages for ever unless a [`Mortality`] is set.

mod messages;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::id::{Incarnation, QueueName};
use tickover_core::limits::{CLAIM_MAX, LEASE_RANGE, QUEUE_DELAY_MAX, WAIT_MAX};
use tickover_core::time::Timestamp;
use tokio::sync::Notify;

pub use self::messages::Mortality;
use self::messages::{Delivery, Messages};
use crate::ports::{Clock, Depth, Outgoing, Queue, QueueError, Received};

/// Which queues a [`MemoryQueue`] has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queues {
    /// These, and never any others.
    Fixed(Vec<QueueName>),
    /// Each queue from its first [`Queue::open`] on.
    OnOpen,
}

/// All queues of a process.
pub struct MemoryQueue {
    clock: Arc<dyn Clock>,
    opens: bool,
    mortality: Mortality,
    /// Part of every receipt: a receipt from before a restart must not match a current message.
    started_at: Timestamp,
    /// Counts messages across all queues, so that no receipt fits a message of another queue.
    next_id: AtomicU64,
    lines: RwLock<BTreeMap<QueueName, Arc<Line>>>,
}

/// One queue.
struct Line {
    messages: Mutex<Messages>,
    /// Signals that a message is visible, or will be earlier than expected.
    changed: Notify,
}

impl MemoryQueue {
    /// Queues with this clock.
    pub fn new(clock: Arc<dyn Clock>, queues: Queues) -> Self {
        Self::mortal(clock, queues, Mortality::default())
    }

    /// The same, whose messages expire as those of SQS do.
    pub fn mortal(clock: Arc<dyn Clock>, queues: Queues, mortality: Mortality) -> Self {
        let (opens, names) = match queues {
            Queues::Fixed(names) => (false, names),
            Queues::OnOpen => (true, Vec::new()),
        };
        let lines =
            names.into_iter().chain([QueueName::timers()]).map(|name| (name, Line::new(mortality))).collect();
        let started_at = clock.now();
        Self { clock, opens, mortality, started_at, next_id: AtomicU64::new(0), lines: RwLock::new(lines) }
    }

    /// When the next hidden message is visible, in any queue.
    pub fn next_visible_at(&self) -> Option<Timestamp> {
        let lines = self.lines.read().unwrap_or_else(PoisonError::into_inner);
        lines.values().filter_map(|line| line.lock().next_visible_at()).min()
    }

    /// Sends a queue's dead letters again, as new messages. Returns how many there were.
    pub fn redrive(&self, queue: &QueueName) -> Result<usize, QueueError> {
        let line = self.line(queue)?;
        let now = self.clock.now();
        let mut held = line.lock();
        let dead = held.take_dead();
        let count = dead.len();
        for body in dead {
            held.push(now, self.next_id.fetch_add(1, Ordering::Relaxed), body, now);
        }
        drop(held);
        line.changed.notify_waiters();
        Ok(count)
    }

    fn line(&self, queue: &QueueName) -> Result<Arc<Line>, QueueError> {
        let lines = self.lines.read().unwrap_or_else(PoisonError::into_inner);
        lines.get(queue).cloned().ok_or_else(|| QueueError::Unknown { queue: queue.to_string() })
    }

    fn receipt(&self, delivery: Delivery) -> String {
        format!("{}.{}.{}", self.started_at.as_millis(), delivery.id, delivery.receives)
    }

    fn delivery(&self, receipt: &str) -> Result<Delivery, QueueError> {
        let parse = || {
            let mut parts = receipt.splitn(3, '.');
            let started_at_ms: i64 = parts.next()?.parse().ok()?;
            let id = parts.next()?.parse().ok()?;
            let receives = parts.next()?.parse().ok()?;
            (started_at_ms == self.started_at.as_millis()).then_some(Delivery { id, receives })
        };
        parse().ok_or(QueueError::StaleReceipt)
    }

    /// Receives visible messages; if there are none, returns when to try again.
    fn look(&self, line: &Line, max: usize, visibility: Millis) -> Result<Vec<Received>, Option<Timestamp>> {
        let mut messages = line.lock();
        let now = self.clock.now();
        let taken = messages.take(now, max, now.plus(visibility));
        if taken.is_empty() {
            return Err(messages.next_visible_at());
        }
        Ok(taken
            .into_iter()
            .map(|(delivery, body)| Received {
                body,
                receipt: self.receipt(delivery),
                receive_count: delivery.receives,
            })
            .collect())
    }
}

impl Line {
    fn new(mortality: Mortality) -> Arc<Self> {
        Arc::new(Self { messages: Mutex::new(Messages::mortal(mortality)), changed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Messages> {
        // Every operation leaves the messages complete, so they are valid even if the lock is poisoned.
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        let line = self.line(queue)?;
        {
            let mut held = line.lock();
            let now = self.clock.now();
            for message in messages {
                let id = self.next_id.fetch_add(1, Ordering::Relaxed);
                held.push(now, id, message.body.clone(), now.plus(message.delay.min(QUEUE_DELAY_MAX)));
            }
        }
        // All waiting receivers: a delayed message changes how long each of them may sleep.
        line.changed.notify_waiters();
        Ok(vec![Ok(()); messages.len()])
    }

    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        let line = self.line(queue)?;
        let max = max.clamp(1, CLAIM_MAX);
        let visibility = visibility.min(LEASE_RANGE.1);
        let give_up_at = self.clock.now().plus(wait.min(WAIT_MAX));
        loop {
            // Registered before the attempt to receive: a message that is sent in between still ends the wait.
            let changed = line.changed.notified();
            let look_again_at = match self.look(&line, max, visibility) {
                Ok(received) => return Ok(received),
                Err(next) => next.map_or(give_up_at, |instant| instant.min(give_up_at)),
            };
            if self.clock.now() >= give_up_at {
                return Ok(Vec::new());
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = self.clock.sleep_until(look_again_at) => {}
            }
        }
    }

    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError> {
        let line = self.line(queue)?;
        if let Ok(delivery) = self.delivery(receipt) {
            line.lock().remove(self.clock.now(), delivery);
        }
        Ok(())
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError> {
        let line = self.line(queue)?;
        let delivery = self.delivery(receipt)?;
        {
            let mut messages = line.lock();
            let now = self.clock.now();
            let until = now.plus(visibility.min(LEASE_RANGE.1));
            messages.hide(now, delivery, until).map_err(|messages::Stale| QueueError::StaleReceipt)?;
        }
        line.changed.notify_waiters();
        Ok(())
    }

    fn forget(&self, queue: &QueueName, of: Incarnation) {
        if let Ok(line) = self.line(queue) {
            line.lock().forget(self.clock.now(), of);
        }
    }

    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError> {
        let line = self.line(queue)?;
        let depth = line.lock().depth(self.clock.now());
        Ok(depth)
    }

    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError> {
        if self.opens && !self.knows(queue) {
            let mut lines = self.lines.write().unwrap_or_else(PoisonError::into_inner);
            // Not replaced: another call may have opened it, and sent messages to it, in between.
            lines.entry(queue.clone()).or_insert_with(|| Line::new(self.mortality));
        }
        Ok(self.knows(queue))
    }

    fn knows(&self, queue: &QueueName) -> bool {
        self.lines.read().unwrap_or_else(PoisonError::into_inner).contains_key(queue)
    }

    fn names(&self) -> Vec<QueueName> {
        self.lines.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
