//! The messages behind claims: what each leads to, and what becomes of it then.

use futures::future::{join, join_all};
use tickover_core::command::HintedRecord;
use tickover_core::decision::ClaimReply;
use tickover_core::duration::Millis;
use tickover_core::execution::message::TurnHint;
use tickover_core::hint::Hint;
use tickover_core::id::QueueName;
use tickover_core::limits::QUEUE_DELAY_MAX;
use tickover_core::task::{State, Task};
use tickover_core::time::Timestamp;

use super::{ClaimRequest, ClaimedTask, WAITED_OUT};
use crate::error::ServiceError;
use crate::executions::Work;
use crate::ports::{Outgoing, Received};
use crate::service::Service;
use crate::telemetry::field;

/// How soon a message shows again whose task couldn't be claimed for now.
const SHOWN_AGAIN: Millis = Millis::from_secs(1);

impl Service {
    /// What messages received together lead to: tasks, and turns if they are wanted.
    pub(super) async fn work_messages(
        &self,
        queue: &QueueName,
        messages: &[Received],
        request: &ClaimRequest,
        turns: bool,
    ) -> (Vec<Work>, Option<ServiceError>) {
        let (of_turns, of_tasks): (Vec<_>, Vec<_>) =
            messages.iter().partition(|message| TurnHint::is_one(&message.body));
        let hinted = parse_turns(queue, &of_turns);
        let patient = of_tasks.is_empty();
        let take_turns = async {
            if turns && !hinted.is_empty() {
                return self.take_turns(queue, hinted, request, patient).await;
            }
            self.leave_turns(queue, hinted).await;
            (vec![], None)
        };
        // Neither waits for the other.
        let claim_tasks = self.claim_messages(queue, &of_tasks, request);
        let ((taken, trouble), (tasks, problem)) = join(take_turns, claim_tasks).await;
        let turns = taken.into_iter().map(|turn| Work::Turn(Box::new(turn)));
        let tasks = tasks.into_iter().map(|task| Work::Task(Box::new(task)));
        (turns.chain(tasks).collect(), problem.or(trouble))
    }

    /// What messages received together lead to. Those that start within a second are only waited for if nothing
    /// else came: work in hand is handed out at once, and they go back to the queue.
    async fn claim_messages(
        &self,
        queue: &QueueName,
        messages: &[&Received],
        request: &ClaimRequest,
    ) -> (Vec<ClaimedTask>, Option<ServiceError>) {
        let mut hinted = parse_hints(queue, messages);
        hinted.sort_unstable_by_key(|(hint, _)| available_at(&hint.task));
        let (mut tasks, mut trouble) = (Vec::new(), None);
        let mut ready = self.now();
        while tasks.is_empty() && !hinted.is_empty() {
            let (soon, now): (Vec<_>, Vec<_>) = hinted.into_iter().partition(|(hint, _)| {
                let left = available_at(&hint.task).since(ready);
                !left.is_zero() && left <= WAITED_OUT
            });
            let claims =
                now.into_iter().map(|(hint, message)| self.claim_message(queue, hint, message, request));
            for claimed in join_all(claims).await {
                match claimed {
                    Ok(claimed) => tasks.extend(claimed),
                    Err(error) => trouble = Some(error),
                }
            }
            hinted = soon;
            if let (true, Some((first, _))) = (tasks.is_empty(), hinted.first()) {
                let first = available_at(&first.task);
                self.ports.clock.sleep_until(first).await;
                // A clock that jumps back must not have it waited for twice.
                ready = self.now().max(first);
            }
        }
        for (hint, message) in hinted {
            let left = available_at(&hint.task).since(self.now());
            if let Err(error) = self.send_again(queue, message, left).await {
                tracing::debug!({ field::QUEUE_NAME } = %queue, %error, "message not sent again");
                self.show_again(queue, message, left).await;
            }
        }
        (tasks, trouble)
    }

    /// What a hint leads to. One that can't be dealt with for now shows again soon.
    async fn claim_message(
        &self,
        queue: &QueueName,
        hint: Hint,
        message: &Received,
        request: &ClaimRequest,
    ) -> Result<Option<ClaimedTask>, ServiceError> {
        let id = hint.task.id.clone();
        let claimed = self.claim_hint(queue, hint, message, request).await;
        if let Err(error) = &claimed {
            tracing::warn!({ field::TASK_ID } = %id, { field::QUEUE_NAME } = %queue, %error, "claim failed");
            // A record that can't be read won't be readable soon: its message stays hidden for the lease.
            if !matches!(error, ServiceError::Corrupt { .. }) {
                // Longer each time, or an outage would spend the receives it has before the dead-letter queue.
                let times = 1 << message.receive_count.saturating_sub(1).min(6);
                let after = SHOWN_AGAIN.saturating_mul(times).min(request.lease);
                self.show_again(queue, message, after).await;
            }
        }
        claimed
    }

    /// Changes how long a message that nobody of ours holds stays hidden. If that fails, it shows again later.
    pub(crate) async fn show_again(&self, queue: &QueueName, message: &Received, after: Millis) {
        if let Err(error) = self.ports.queue.change_visibility(queue, &message.receipt, after).await {
            tracing::debug!({ field::QUEUE_NAME } = %queue, %error, "message not shown again");
        }
    }

    async fn claim_hint(
        &self,
        queue: &QueueName,
        hint: Hint,
        message: &Received,
        request: &ClaimRequest,
    ) -> Result<Option<ClaimedTask>, ServiceError> {
        let (incarnation, arrived) = (hint.task.incarnation, arrives_at(&hint.task));
        let hinted = HintedRecord { incarnation, version: hint.task.version };
        let (driven, reply) = self.take(hint.task, Some(hinted), request).await?;
        self.note_received(queue, arrived).await;
        // The record may have gone, and its id may be in use by another task by now: not this message's.
        let Some(task) = driven.task.filter(|task| task.incarnation == incarnation) else {
            self.delete_message(queue, &message.receipt).await;
            return Ok(None);
        };
        match reply {
            ClaimReply::Claimed => {
                let (id, lease) = (task.id.clone(), task.running().map(|running| running.lease));
                let handed_over = self.hand_over(task, Some(message.receipt.clone())).await;
                if let (Err(error), Some(lease)) = (&handed_over, lease)
                    && self.give_back(&id, lease, error).await
                {
                    self.delete_message(queue, &message.receipt).await;
                }
                handed_over.map(Some)
            }
            ClaimReply::Held => {
                // Received for our lease; if the holder dies, it is theirs that it should come back with.
                let left =
                    task.running().map_or(Millis::ZERO, |held| held.lease_expires_at.since(self.now()));
                if left < request.lease {
                    self.show_again(queue, message, left).await;
                }
                Ok(None)
            }
            ClaimReply::Spent => {
                self.tell_of_ended(&task).await?;
                self.delete_message(queue, &message.receipt).await;
                Ok(None)
            }
            ClaimReply::Early { available_at } => {
                self.send_again(queue, message, available_at.since(self.now())).await?;
                Ok(None)
            }
        }
    }

    /// A message of a task that has ended: whoever ended it may have died before telling its parent.
    pub(crate) async fn tell_of_ended(&self, task: &Task) -> Result<(), ServiceError> {
        match (&task.parent, task.ended()) {
            (Some(parent), Some(ended)) => self.tell_again(parent, ended.ended_at).await,
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// A fresh message instead of a hidden one: its receive count starts anew.
    pub(crate) async fn send_again(
        &self,
        queue: &QueueName,
        message: &Received,
        after: Millis,
    ) -> Result<(), ServiceError> {
        let again = Outgoing { body: message.body.clone(), delay: after.min(QUEUE_DELAY_MAX) };
        let sent = self.ports.queue.send(queue, &[again]).await?;
        if sent.iter().all(Result::is_ok) {
            self.delete_message(queue, &message.receipt).await;
        }
        Ok(())
    }

    /// Deletes a message that is done with. If that fails it comes back, and leads to nothing then.
    pub(crate) async fn delete_message(&self, queue: &QueueName, receipt: &str) {
        if let Err(error) = self.ports.queue.delete(queue, receipt).await {
            tracing::warn!({ field::QUEUE_NAME } = %queue, %error, "message not deleted");
        }
    }
}

/// The hints among the messages, each with its message. What isn't one is left alone: in the end it reaches the
/// dead-letter queue, where somebody can look at it.
fn parse_hints<'a>(queue: &QueueName, messages: &[&'a Received]) -> Vec<(Hint, &'a Received)> {
    let parsed = messages.iter().map(|message| (Hint::parse(&message.body), *message));
    parsed
        .filter_map(|(hint, message)| match hint {
            Ok(hint) => Some((hint, message)),
            Err(error) => {
                tracing::error!({ field::QUEUE_NAME } = %queue, %error, "malformed hint");
                None
            }
        })
        .collect()
}

/// The same for turns.
fn parse_turns<'a>(queue: &QueueName, messages: &[&'a Received]) -> Vec<(TurnHint, &'a Received)> {
    let parsed = messages.iter().map(|message| (TurnHint::parse(&message.body), *message));
    parsed
        .filter_map(|(hint, message)| match hint {
            Ok(hint) => Some((hint, message)),
            Err(error) => {
                tracing::error!({ field::QUEUE_NAME } = %queue, %error, "malformed hint of a turn");
                None
            }
        })
        .collect()
}

/// When the hint of this record was to arrive.
pub(super) fn arrives_at(task: &Task) -> Timestamp {
    let needed_at = match &task.state {
        State::Pending(pending) => pending.available_at,
        State::Running(running) => running.claimed_at,
        State::Ended(ended) => ended.ended_at,
    };
    task.hinted_at.map_or(needed_at, |again| again.max(needed_at))
}

pub(super) fn available_at(task: &Task) -> Timestamp {
    match &task.state {
        State::Pending(pending) => pending.available_at,
        State::Running(running) => running.claimed_at,
        State::Ended(ended) => ended.ended_at,
    }
}
