//! Claims of tasks that belong together: of one kind and one tenant, after a wait for more of them.
//!
//! The messages are gathered first, and claimed together at the end of the wait. So a task has no lease while it waits,
//! and all leases last from the moment in which the caller gets the tasks. Messages of other tasks go back to their queue
//! at once, with no write.

use tickover_core::batch::{BatchKey, fill_max};
use tickover_core::duration::Millis;
use tickover_core::execution::message::TurnHint;
use tickover_core::id::QueueName;

use super::messages::{RECEIVES_MAX, is_ready, parse_hints, parse_turns, unknown_after};
use super::{ClaimRequest, ClaimedTask, WAITED_OUT, Wanted};
use crate::error::ServiceError;
use crate::executions::Work;
use crate::ports::Received;
use crate::queues::provides::fulfils;
use crate::service::Service;
use crate::telemetry::field;
use crate::waits;

/// The pause after a receive that returned messages of other tasks, or none. They are visible again at once, and the
/// next receive would return the same ones.
const PAUSE: Millis = Millis::new(500);

/// What the tasks of a claim have in common, and how long it waits for more of them. The default is nothing, and no wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// Whether all have the kind and the fairness key of the first one.
    pub same_key: bool,
    /// How long after the first task to wait for others: at most 20 s, and at most half of the lease.
    pub fill: Millis,
}

/// What a receive brought.
struct Sifted {
    /// Messages of the tasks that are wanted.
    fit: Vec<Received>,
    /// Whether one of those tasks can start now.
    is_ready: bool,
    /// Whether there were other messages.
    has_others: bool,
}

impl Together {
    fn is_plain(self) -> bool {
        self == Self::default()
    }
}

impl Service {
    /// Claims tasks from a queue, as many as there are up to `max`, that belong together.
    pub async fn claim_together(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        together: Together,
    ) -> Result<Vec<ClaimedTask>, ServiceError> {
        let wanted = Wanted { together, ..Wanted::of(request, false) };
        let task = |work| match work {
            Work::Task(task) => Some(*task),
            Work::Turn(_) => None,
        };
        Ok(self.find_work(queue, wanted).await?.work.into_iter().filter_map(task).collect())
    }

    /// Of these messages, those of tasks that belong together, and those that come until there are enough of them or the
    /// time to fill is over. All others are given back at once.
    pub(super) async fn gather(
        &self,
        queue: &QueueName,
        messages: Vec<Received>,
        wanted: Wanted<'_>,
    ) -> Result<Vec<Received>, ServiceError> {
        if messages.is_empty() || wanted.together.is_plain() {
            return Ok(messages);
        }
        let (request, mut key) = (wanted.request, None);
        let Sifted { mut fit, is_ready, has_others } = self.sift(queue, messages, wanted, &mut key).await;
        // A longer wait than this would make the messages visible to others before they are claimed.
        let fill = wanted.together.fill.min(fill_max(request.lease));
        let until = self.now().plus(if is_ready { fill } else { Millis::ZERO });
        let mut pauses = has_others;
        loop {
            let left = self.left(until, fill);
            if left.is_zero() || fit.len() >= request.max || waits::are_over() {
                break;
            }
            if pauses {
                self.wait_until(self.now().plus(left.min(PAUSE))).await;
                pauses = false;
                continue;
            }
            let free = request.max - fit.len();
            let more = match self.receive(queue, free, request.lease, left).await {
                Ok(more) => more,
                Err(error) => {
                    tracing::debug!({ field::QUEUE_NAME } = %queue, %error, "no more tasks for the batch");
                    break;
                }
            };
            pauses = more.is_empty();
            let sifted = self.sift(queue, more, wanted, &mut key).await;
            pauses |= sifted.has_others;
            fit.extend(sifted.fit);
        }
        if !fill.is_zero() && self.is_paused(queue).await? {
            self.give_back_messages(queue, &fit.iter().collect::<Vec<_>>()).await;
            return Ok(Vec::new());
        }
        Ok(fit)
    }

    /// Selects messages. The first task that can start determines the key.
    async fn sift(
        &self,
        queue: &QueueName,
        messages: Vec<Received>,
        wanted: Wanted<'_>,
        key: &mut Option<BatchKey>,
    ) -> Sifted {
        let (of_turns, of_tasks): (Vec<_>, Vec<_>) =
            messages.iter().partition(|message| TurnHint::is_turn_hint(&message.body));
        let has_turns = !of_turns.is_empty();
        self.leave_turns(queue, parse_turns(queue, &of_turns)).await;
        let (hints, foreign): (Vec<_>, Vec<_>) = parse_hints(queue, &of_tasks)
            .into_iter()
            .partition(|(hint, _)| fulfils(&wanted.request.provides, &hint.task));
        for (_, message) in &foreign {
            self.put_back(queue, message, unknown_after(message.receive_count)).await;
        }
        let soon = self.now().plus(WAITED_OUT);
        let ready = hints.iter().find(|(hint, _)| is_ready(&hint.task, soon));
        if key.is_none() {
            *key = ready.or(hints.first()).map(|(hint, _)| self.rules.batch_key(&hint.task));
        }
        let is_ready = ready.is_some();
        let (fit, others): (Vec<_>, Vec<_>) = hints.into_iter().partition(|(hint, _)| {
            !wanted.together.same_key
                || key.as_ref().is_some_and(|key| *key == self.rules.batch_key(&hint.task))
        });
        let others: Vec<&Received> = others.into_iter().map(|(_, message)| message).collect();
        self.give_back_messages(queue, &others).await;
        Sifted {
            fit: fit.into_iter().map(|(_, message)| message.clone()).collect(),
            is_ready,
            has_others: has_turns || !foreign.is_empty() || !others.is_empty(),
        }
    }

    /// Makes messages visible to others at once. A message that was received often is replaced by a fresh one: each
    /// receive brings it nearer to the dead-letter queue.
    pub(super) async fn give_back_messages(&self, queue: &QueueName, messages: &[&Received]) {
        let (often, rest): (Vec<_>, Vec<_>) =
            messages.iter().copied().partition(|message| message.receive_count > RECEIVES_MAX);
        self.set_visibilities(queue, &rest, Millis::ZERO).await;
        for message in often {
            self.put_back(queue, message, Millis::ZERO).await;
        }
    }
}

#[cfg(test)]
mod tests;
