//! A queue in the process, with the semantics of SQS.
//!
//! Its messages are lost when it is dropped. Unlike SQS it counts milliseconds, never loses or doubles a message by
//! itself, and keeps messages for ever unless a [`MessageLimits`] is set.

mod backlog;
mod messages;
mod refill;
mod steady;
mod visible;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::{Incarnation, QueueName};
use tickover_core::lane::Lane;
use tickover_core::limits::{LEASE_RANGE, QUEUE_DELAY_MAX, RECEIVE_MAX, WAIT_MAX};
use tickover_core::time::{Timestamp, earliest};
use tokio::sync::Notify;

pub use self::backlog::{Backlog, Choice, Ready};
pub use self::messages::MessageLimits;
use self::messages::{Delivery, Messages, is_in_backlog};
use self::refill::Refill;
use self::steady::SteadyTime;
use crate::ports::{
    ClassDepth, Clock, Depth, Outgoing, Queue, QueueError, QueueTraits, Received, StoreError,
};

/// A task with a hint starts no later than this, a clock's error included, unless the clock was set back.
const AHEAD_MAX: Millis = QUEUE_DELAY_MAX.saturating_add(Millis::from_secs(60));

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
    time: SteadyTime,
    opens: bool,
    mortality: MessageLimits,
    /// Where hints of tasks are found that aren't here.
    bounded: Option<Bounded>,
    /// Part of every receipt: a receipt from before a restart must not match a current message.
    started_at: Timestamp,
    /// Counts messages across all queues, so that no receipt fits a message of another queue.
    next_id: AtomicU64,
    queues: RwLock<BTreeMap<QueueName, Arc<QueueState>>>,
}

/// A store that finds pending tasks, and how many messages a queue over it keeps.
#[derive(Clone)]
struct Bounded {
    backlog: Arc<dyn Backlog>,
    /// Of visible ones, and of delayed ones. Hints of turns are all kept.
    kept_max: u64,
}

/// One queue.
struct QueueState {
    held: Mutex<Held>,
    /// Notified when a message becomes visible, or will be visible earlier than before.
    changed: Notify,
}

/// What a queue holds.
struct Held {
    messages: Messages,
    /// From this instant on, the backlog may have tasks whose hints aren't among the messages.
    missing_from: Option<Timestamp>,
    /// With so many visible messages or fewer, more are read from the backlog.
    refill_at: u64,
    /// The last lane that was read, if there are more lanes than are read at once.
    cursor: Option<Lane>,
}

impl MemoryQueue {
    /// Queues with this clock.
    pub fn new(clock: Arc<dyn Clock>, queues: Queues) -> Self {
        Self::mortal(clock, queues, MessageLimits::default())
    }

    /// The same, whose messages expire as those of SQS do.
    pub fn mortal(clock: Arc<dyn Clock>, queues: Queues, mortality: MessageLimits) -> Self {
        let (opens, names) = match queues {
            Queues::Fixed(names) => (false, names),
            Queues::OnOpen => (true, Vec::new()),
        };
        let queues = names
            .into_iter()
            .chain([QueueName::timers()])
            .map(|name| (name, QueueState::new(mortality)))
            .collect();
        let time = SteadyTime::new(clock);
        let started_at = time.now();
        let next_id = AtomicU64::new(0);
        Self { time, opens, mortality, bounded: None, started_at, next_id, queues: RwLock::new(queues) }
    }

    /// Queues that each keep at most `kept_max` messages and find the hints of further tasks in the backlog. All queues
    /// that the backlog knows are open.
    pub fn over(backlog: Arc<dyn Backlog>, kept_max: u64, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let own = Self::new(clock, Queues::OnOpen);
        let names = backlog.queues()?.into_iter().map(|name| (name, QueueState::over_a_backlog()));
        // No hint that was sent is delayed for longer.
        let ahead = backlog.latest()?.filter(|latest| latest.since(own.time.now()) > AHEAD_MAX);
        if let Some(latest) = ahead {
            own.time.begin_after(latest);
        }
        own.queues.write().unwrap_or_else(PoisonError::into_inner).extend(names);
        Ok(Self { bounded: Some(Bounded { backlog, kept_max }), ..own })
    }

    /// When the next hidden message is visible, in any queue, by the clock.
    pub fn next_visible_at(&self) -> Option<Timestamp> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        let next =
            queues.values().filter_map(|queue_state| queue_state.lock().messages.next_visible_at()).min();
        next.map(|at| self.time.on_the_clock(at))
    }

    /// Sends a queue's dead letters again, as new messages. Returns how many there were.
    pub fn redrive(&self, queue: &QueueName) -> Result<usize, QueueError> {
        let queue_state = self.queue_state(queue)?;
        let now = self.time.now();
        let mut held = queue_state.lock();
        let dead = held.messages.take_dead();
        let count = dead.len();
        for message in dead {
            held.messages.push(now, self.next_id(), message, now);
        }
        drop(held);
        queue_state.changed.notify_waiters();
        Ok(count)
    }

    fn queue_state(&self, queue: &QueueName) -> Result<Arc<QueueState>, QueueError> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.get(queue).cloned().ok_or_else(|| QueueError::Unknown { queue: queue.to_string() })
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

    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Receives visible messages; if there are none, says when to try again.
    fn try_receive(
        &self,
        queue: &QueueName,
        queue_state: &QueueState,
        max: usize,
        visibility: Millis,
    ) -> Result<Result<Vec<Received>, Option<Timestamp>>, QueueError> {
        let mut held = queue_state.lock();
        let now = self.time.now();
        self.refill(queue, &mut held, now)?;
        let taken = held.messages.take(now, max, now.plus(visibility));
        if taken.is_empty() {
            return Ok(Err(earliest([held.messages.next_visible_at(), held.missing_from])));
        }
        let received = |(delivery, body): (Delivery, String)| Received {
            body,
            receipt: self.receipt(delivery),
            receive_count: delivery.receives,
        };
        Ok(Ok(taken.into_iter().map(received).collect()))
    }

    /// Reads further hints from the backlog, if it may have some and enough of those that are kept are gone.
    fn refill(&self, queue: &QueueName, held: &mut Held, now: Timestamp) -> Result<(), QueueError> {
        let Some(bounded) = &self.bounded else { return Ok(()) };
        let depth = held.messages.depth(now);
        let is_enough = depth.visible > 0 && depth.visible > held.refill_at;
        if held.missing_from.is_none_or(|at| at > now) || is_enough {
            return Ok(());
        }
        let mut seen = BTreeSet::new();
        let visible = loop {
            let before = seen.len();
            let mut refill = Refill::begin(&*bounded.backlog, bounded.kept_max, queue, held, now)?;
            while let Some(lane) = refill.next_lane() {
                seen.insert(lane);
                for (body, at) in refill.read(&*bounded.backlog, queue, lane, held)? {
                    held.messages.push(now, self.next_id(), (body, lane), at);
                }
            }
            (held.missing_from, held.cursor) = refill.end();
            let visible = held.messages.depth(now).visible;
            // The hints of all these lanes may be in flight. Those of further lanes are not.
            if visible > 0 || held.cursor.is_none() || seen.len() == before {
                break visible;
            }
        };
        held.refill_at = match held.missing_from {
            Some(at) if at <= now => bounded.lot_below(visible),
            Some(_) | None => bounded.lot_below(bounded.kept_max),
        };
        Ok(())
    }

    /// Keeps a message, or leaves a task's hint to the backlog where the queue has enough.
    fn keep(&self, held: &mut Held, now: Timestamp, message: &Outgoing) {
        let visible_at = now.plus(message.delay.min(QUEUE_DELAY_MAX));
        let Outgoing { body, lane, .. } = message;
        if let Some(bounded) = &self.bounded {
            let depth = held.messages.depth(now);
            let has_enough = if visible_at <= now {
                let visible = held.messages.visible();
                visible.len_of(*lane) >= bounded.kept_max / visible.lanes_with(*lane)
            } else {
                depth.delayed >= bounded.kept_max
            };
            if has_enough && is_in_backlog(body) {
                held.missing_from = earliest([held.missing_from, Some(visible_at)]);
                held.refill_at = held.refill_at.max(bounded.lot_below(depth.visible));
                return;
            }
        }
        held.messages.push(now, self.next_id(), (body.clone(), *lane), visible_at);
    }
}

impl Bounded {
    /// So many are left of these when it is worth to read more. Small lots: whoever waits for one waits shortly.
    fn lot_below(&self, visible: u64) -> u64 {
        visible.saturating_sub((self.kept_max / 8).max(1))
    }
}

fn unavailable(error: &StoreError) -> QueueError {
    QueueError::Unavailable { reason: error.to_string() }
}

impl QueueState {
    fn new(mortality: MessageLimits) -> Arc<Self> {
        let messages = Messages::mortal(mortality);
        let held = Held { messages, missing_from: None, refill_at: 0, cursor: None };
        Arc::new(Self { held: Mutex::new(held), changed: Notify::new() })
    }

    /// A queue of which the backlog may know more than its messages.
    fn over_a_backlog() -> Arc<Self> {
        let messages = Messages::default();
        let held = Held { messages, missing_from: Some(Timestamp::EPOCH), refill_at: 0, cursor: None };
        Arc::new(Self { held: Mutex::new(held), changed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        // Every operation leaves the messages complete, so they are valid even if the lock is poisoned.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        let queue_state = self.queue_state(queue)?;
        {
            let mut held = queue_state.lock();
            let now = self.time.now();
            for message in messages {
                self.keep(&mut held, now, message);
            }
        }
        // All waiting receivers: a delayed message changes how long each of them may sleep.
        queue_state.changed.notify_waiters();
        Ok(vec![Ok(()); messages.len()])
    }

    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        let queue_state = self.queue_state(queue)?;
        let max = max.clamp(1, RECEIVE_MAX);
        let visibility = visibility.min(LEASE_RANGE.1);
        let give_up_at = self.time.now().plus(wait.min(WAIT_MAX));
        loop {
            // Registered before the attempt to receive: a message that is sent in between still ends the wait.
            let changed = queue_state.changed.notified();
            let retry_at = match self.try_receive(queue, &queue_state, max, visibility)? {
                Ok(received) => return Ok(received),
                Err(next) => next.map_or(give_up_at, |instant| instant.min(give_up_at)),
            };
            if self.time.now() >= give_up_at {
                return Ok(Vec::new());
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = self.time.sleep_until(retry_at) => {}
            }
        }
    }

    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError> {
        let queue_state = self.queue_state(queue)?;
        if let Ok(delivery) = self.delivery(receipt) {
            queue_state.lock().messages.remove(self.time.now(), delivery);
        }
        Ok(())
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError> {
        let queue_state = self.queue_state(queue)?;
        let delivery = self.delivery(receipt)?;
        {
            let mut held = queue_state.lock();
            let now = self.time.now();
            let until = now.plus(visibility.min(LEASE_RANGE.1));
            held.messages.hide(now, delivery, until).map_err(|messages::Stale| QueueError::StaleReceipt)?;
        }
        queue_state.changed.notify_waiters();
        Ok(())
    }

    fn forget(&self, queue: &QueueName, of: Incarnation) {
        if let Ok(queue_state) = self.queue_state(queue) {
            queue_state.lock().messages.forget(self.time.now(), of);
        }
    }

    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError> {
        let queue_state = self.queue_state(queue)?;
        let mut held = queue_state.lock();
        let now = self.time.now();
        let depth = held.messages.depth(now);
        match &self.bounded {
            Some(bounded) if held.missing_from.is_some_and(|at| at <= now) => {
                let ready = bounded.backlog.count(queue, now).map_err(|error| unavailable(&error))?;
                Ok(Depth { visible: depth.visible.max(ready), ..depth })
            }
            Some(_) | None => Ok(depth),
        }
    }

    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError> {
        if self.opens && !self.knows(queue) {
            let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
            // Not replaced: another call may have opened it, and sent messages to it, in between.
            let new = || match &self.bounded {
                Some(_) => QueueState::over_a_backlog(),
                None => QueueState::new(self.mortality),
            };
            queues.entry(queue.clone()).or_insert_with(new);
        }
        Ok(self.knows(queue))
    }

    fn class_of(&self, _receipt: &str) -> Priority {
        Priority::Normal
    }

    fn traits(&self) -> QueueTraits {
        QueueTraits { finds_pending: self.bounded.is_some(), ..QueueTraits::default() }
    }

    fn knows(&self, queue: &QueueName) -> bool {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).contains_key(queue)
    }

    fn names(&self) -> Vec<QueueName> {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    async fn class_depth(&self, queue: &QueueName, _class: Priority) -> Result<ClassDepth, QueueError> {
        Ok(ClassDepth { depth: self.depth(queue).await?, apart: false })
    }

    async fn discover(&self) -> Result<Vec<QueueName>, QueueError> {
        Ok(self.names().into_iter().filter(|name| !name.is_reserved()).collect())
    }
}

#[cfg(test)]
mod tests;
