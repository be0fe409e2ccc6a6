//! The messages behind claims: what each leads to, and whether it is then deleted or hidden.

use std::collections::HashMap;

use futures::future::{join, join_all};
use tickover_core::duration::Millis;
use tickover_core::execution::message::TurnHint;
use tickover_core::id::QueueName;
use tickover_core::limits::QUEUE_DELAY_MAX;
use tickover_core::task::command::HintedRecord;
use tickover_core::task::decision::ClaimReply;
use tickover_core::task::hint::Hint;
use tickover_core::task::{State, Task};
use tickover_core::time::Timestamp;

use super::{ClaimedTask, Found, REDELIVERY_DELAY, WAITED_BESIDE, WAITED_OUT, Wanted};
use crate::error::ServiceError;
use crate::executions::Work;
use crate::ports::{Outgoing, Received};
use crate::queues::provides::fulfils;
use crate::service::Service;
use crate::telemetry::{execution_of, field, step_of};
use crate::warn_unless_logged;

/// After this many receives, a message that led to nothing yet is replaced by a fresh one. Each receive brings it
/// nearer to the dead-letter queue, and no message can be hidden for longer than 12 hours in all.
pub(super) const RECEIVES_MAX: u32 = 20;
/// How long a fresh message that replaces an old one is hidden at most. It may be the message that notifies a parent of
/// an end, which must be found within 15 minutes.
const FRESH_MAX: Millis = Millis::from_secs(600);
/// The longest time for which a task whose kind isn't known here is left to other workers.
const UNKNOWN_MAX: Millis = Millis::from_secs(60);

/// How long a task of an unknown kind is left to other workers: longer with each receive.
pub(super) fn unknown_after(receives: u32) -> Millis {
    REDELIVERY_DELAY.saturating_mul(1 << receives.saturating_sub(1).min(6)).min(UNKNOWN_MAX)
}

/// The result of a task's message.
enum TaskMessage {
    Claimed(Box<ClaimedTask>),
    /// The task must be claimed by a worker that has no other work in progress.
    Suspect,
    /// No work; the message has been deleted, hidden or replaced.
    Nothing,
}

impl Service {
    /// Processes messages that were received together: tasks, and turns if the caller takes them.
    pub(super) async fn work_messages<'m>(
        &self,
        queue: &QueueName,
        messages: &[&'m Received],
        wanted: Wanted<'_>,
    ) -> Found<'m> {
        let (of_turns, of_tasks): (Vec<_>, Vec<_>) =
            messages.iter().copied().partition(|message| TurnHint::is_turn_hint(&message.body));
        let hinted = parse_turns(queue, &of_turns);
        // A caller with other messages doesn't wait as long for these.
        let for_turns = if of_tasks.is_empty() { wanted.patience } else { Millis::ZERO };
        let for_tasks = if of_turns.is_empty() { wanted.patience } else { WAITED_BESIDE };
        let start_turns = async {
            if wanted.turns && !hinted.is_empty() {
                let wanted = Wanted { patience: for_turns, ..wanted };
                return self.start_turns(queue, hinted, wanted).await;
            }
            self.leave_turns(queue, hinted).await;
            Found::default()
        };
        // Both at the same time.
        let wanted = Wanted { patience: for_tasks, ..wanted };
        let claim_tasks = self.claim_messages(queue, &of_tasks, wanted);
        let (mut turns, tasks) = join(start_turns, claim_tasks).await;
        turns.work.extend(tasks.work);
        turns.suspects.extend(tasks.suspects);
        turns.asks.extend(tasks.asks);
        Found { error: tasks.error.or(turns.error), ..turns }
    }

    /// Processes messages that were received together. Tasks that start within a second are only waited for if no other
    /// message led to work; else the work is returned at once, and these messages go back to the queue.
    async fn claim_messages<'m>(
        &self,
        queue: &QueueName,
        messages: &[&'m Received],
        wanted: Wanted<'_>,
    ) -> Found<'m> {
        let mut hinted = parse_hints(queue, messages);
        hinted.sort_unstable_by_key(|(hint, _)| available_at(&hint.task));
        // The newest of several messages of a task is enough: their claims would only take its places from each other.
        let mut newest = HashMap::new();
        for (Hint { task, .. }, _) in &hinted {
            let version = newest.entry((task.id.clone(), task.incarnation)).or_insert(task.version);
            *version = task.version.max(*version);
        }
        let mut is_newest = |Hint { task, .. }: &Hint| {
            let key = (task.id.clone(), task.incarnation);
            // Only once, if there are two of them.
            newest.get(&key) == Some(&task.version) && newest.remove(&key).is_some()
        };
        let (mut hinted, again): (Vec<_>, Vec<_>) = hinted.into_iter().partition(|(hint, _)| is_newest(hint));
        let again: Vec<&Received> = again.into_iter().map(|(_, message)| message).collect();
        self.set_visibilities(queue, &again, REDELIVERY_DELAY).await;
        let mut found = Found::default();
        let mut ready = self.now();
        while found.work.is_empty() && !hinted.is_empty() {
            let (soon, now): (Vec<_>, Vec<_>) = hinted.into_iter().partition(|(hint, _)| {
                let left = available_at(&hint.task).since(ready);
                !left.is_zero() && left <= WAITED_OUT
            });
            let messages: Vec<&Received> = now.iter().map(|(_, message)| *message).collect();
            let patience = if messages.len() == 1 { wanted.patience } else { WAITED_BESIDE };
            let wanted = Wanted { patience, ..wanted };
            let claims =
                now.into_iter().map(|(hint, message)| self.claim_message(queue, hint, message, wanted));
            for (message, led) in messages.into_iter().zip(join_all(claims).await) {
                match led {
                    Ok(TaskMessage::Claimed(task)) => found.work.push(Work::Task(task)),
                    Ok(TaskMessage::Suspect) => found.suspects.push(message),
                    Ok(TaskMessage::Nothing) => {}
                    Err(error) => found.error = Some(error),
                }
            }
            hinted = soon;
            if let (true, Some((first, _))) = (found.work.is_empty(), hinted.first()) {
                let first = available_at(&first.task);
                self.ports.clock.sleep_until(first).await;
                // If the clock jumps back, the claim doesn't wait for it twice.
                ready = self.now().max(first);
            }
        }
        for (hint, message) in hinted {
            let left = available_at(&hint.task).since(self.now());
            if let Err(error) = self.replace_message(queue, message, left).await {
                tracing::debug!({ field::QUEUE_NAME } = %queue, %error, "message not sent again");
                self.set_visibility(queue, message, left).await;
            }
        }
        found
    }

    /// Processes a hint. After an error the message is visible again soon.
    async fn claim_message(
        &self,
        queue: &QueueName,
        hint: Hint,
        message: &Received,
        wanted: Wanted<'_>,
    ) -> Result<TaskMessage, ServiceError> {
        let is_unknown = wanted.knows.is_some_and(|knows| !knows(hint.task.kind.as_str()));
        if is_unknown && !(message.receive_count > 1 && self.is_over(&hint.task).await) {
            self.leave_unknown(queue, &hint, message).await;
            return Ok(TaskMessage::Nothing);
        }
        if !fulfils(&wanted.request.provides, &hint.task) {
            self.put_back(queue, message, unknown_after(message.receive_count)).await;
            return Ok(TaskMessage::Nothing);
        }
        let (id, parent, request) = (hint.task.id.clone(), hint.task.parent.clone(), wanted.request);
        let claimed = self.claim_hint(queue, hint, message, wanted).await;
        if let Err(error) = &claimed {
            let of = parent.as_ref();
            warn_unless_logged!(
                error; { field::TASK_ID } = %id, { field::EXECUTION_ID } = execution_of(of),
                { field::STEP_NAME } = step_of(of), { field::QUEUE_NAME } = %queue, %error, "claim failed"
            );
            // A record that can't be read won't be readable soon: its message stays hidden for the lease.
            if !matches!(error, ServiceError::Corrupt { .. }) {
                // Longer each time, or an outage would use up the receives that are left before the dead-letter queue.
                let times = 1 << message.receive_count.saturating_sub(1).min(6);
                let after = REDELIVERY_DELAY.saturating_mul(times).min(request.lease);
                self.set_visibility(queue, message, after).await;
            }
        }
        claimed
    }

    /// Whether a message's task has ended, or was deleted, since the message was sent. A task that can't be read now
    /// counts as open.
    pub async fn is_over(&self, hinted: &Task) -> bool {
        match self.load(&hinted.id).await {
            Ok(Some(task)) => task.incarnation != hinted.incarnation || task.ended().is_some(),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// Leaves a task of an unknown kind to other workers. Claimed and released, it would be here again at once, and so
    /// for ever.
    async fn leave_unknown(&self, queue: &QueueName, hint: &Hint, message: &Received) {
        let (id, kind, of) = (&hint.task.id, &hint.task.kind, hint.task.parent.as_ref());
        tracing::warn!(
            { field::TASK_ID } = %id, { field::EXECUTION_ID } = execution_of(of), { field::STEP_NAME } = step_of(of),
            %kind, "no step of this kind here; left to others"
        );
        self.put_back(queue, message, unknown_after(message.receive_count)).await;
    }

    /// Hides a message for a while, or replaces it by a fresh one if it has been received often.
    pub(super) async fn put_back(&self, queue: &QueueName, message: &Received, after: Millis) {
        if message.receive_count > RECEIVES_MAX
            && let Ok(()) = self.replace_message(queue, message, after.min(FRESH_MAX)).await
        {
            return;
        }
        self.set_visibility(queue, message, after).await;
    }

    /// Changes how long a message without a lease stays hidden. If that fails, it is visible again later.
    pub(crate) async fn set_visibility(&self, queue: &QueueName, message: &Received, after: Millis) {
        if let Err(error) = self.ports.queue.change_visibility(queue, &message.receipt, after).await {
            tracing::debug!({ field::QUEUE_NAME } = %queue, %error, "visibility of the message not changed");
        }
    }

    async fn claim_hint(
        &self,
        queue: &QueueName,
        hint: Hint,
        message: &Received,
        wanted: Wanted<'_>,
    ) -> Result<TaskMessage, ServiceError> {
        let (incarnation, arrived) = (hint.task.incarnation, arrives_at(&hint.task));
        let hinted =
            HintedRecord { incarnation, version: hint.task.version, again: message.receive_count > 1 };
        let taken = self.take(hint.task, Some(hinted), wanted.request, wanted.terms()).await?;
        self.note_received(queue, self.class_of(Some(&message.receipt)), arrived).await;
        // The record may have been deleted, and another task may have its id now: that isn't this message's task.
        let is_its = |(task, _): &(Task, _)| task.incarnation == incarnation;
        let Some((task, reply)) = taken.filter(is_its) else {
            self.delete_message(queue, &message.receipt).await;
            return Ok(TaskMessage::Nothing);
        };
        match reply {
            ClaimReply::Claimed => {
                let (id, lease) = (task.id.clone(), task.running().map(|running| running.lease));
                let handed_over = self.claimed_task(task, Some(message.receipt.clone())).await;
                if let (Err(error), Some(lease)) = (&handed_over, lease)
                    && self.give_back(&id, lease, error).await
                {
                    self.delete_message(queue, &message.receipt).await;
                }
                handed_over.map(|task| TaskMessage::Claimed(Box::new(task)))
            }
            ClaimReply::Leased => {
                // The message was hidden for our lease. If the worker that has the task dies, the message must be
                // visible when that worker's lease ends.
                let left =
                    task.running().map_or(Millis::ZERO, |held| held.lease_expires_at.since(self.now()));
                if left < wanted.request.lease || message.receive_count > RECEIVES_MAX {
                    self.put_back(queue, message, left).await;
                }
                Ok(TaskMessage::Nothing)
            }
            ClaimReply::Suspect => Ok(TaskMessage::Suspect),
            ClaimReply::Stale | ClaimReply::Parked | ClaimReply::NeedsPlaces | ClaimReply::NeedsStart => {
                self.mend_end(&task, message.receive_count > 1).await?;
                self.delete_message(queue, &message.receipt).await;
                Ok(TaskMessage::Nothing)
            }
            ClaimReply::Early { available_at } => {
                // A queue that counts seconds rounds down: the message would be back at once, again and again.
                let least = if self.ports.queue.traits().counts_seconds { WAITED_OUT } else { Millis::ZERO };
                self.replace_message(queue, message, available_at.since(self.now()).max(least)).await?;
                Ok(TaskMessage::Nothing)
            }
        }
    }

    /// Does what the process that ended a task may have left undone, if the task has ended: it says so to the parent and,
    /// if the message was received again, to the cron, and gives up the places.
    pub(super) async fn mend_end(&self, task: &Task, again: bool) -> Result<(), ServiceError> {
        self.notify_of_end(task, again).await?;
        if again && task.ended().is_some() {
            self.patrol_gates(task.gates()).await?;
        }
        Ok(())
    }

    /// Notifies the parent of an ended task whose message has come after its end: the process that ended the task may have
    /// died before it notified the parent. `again` says that the message was received before: then a cron that waits for
    /// the end is notified as well.
    pub(crate) async fn notify_of_end(&self, task: &Task, again: bool) -> Result<(), ServiceError> {
        if let (Some(parent), Some(ended)) = (&task.parent, task.ended()) {
            self.notify_again(parent, ended.ended_at, again).await?;
        }
        if again {
            self.publish(task.end_of_run().into_iter().collect()).await;
        }
        Ok(())
    }

    /// Replaces a message by a fresh one, whose receive count starts at zero.
    pub(crate) async fn replace_message(
        &self,
        queue: &QueueName,
        message: &Received,
        after: Millis,
    ) -> Result<(), ServiceError> {
        let again = Outgoing::again(message.body.as_str(), after.min(QUEUE_DELAY_MAX));
        let sent = self.ports.queue.send(queue, &[again]).await?;
        if sent.iter().all(Result::is_ok) {
            self.delete_message(queue, &message.receipt).await;
        }
        Ok(())
    }

    /// Deletes a message that isn't needed any more. If that fails it is received again, and leads to nothing then.
    pub(crate) async fn delete_message(&self, queue: &QueueName, receipt: &str) {
        if let Err(error) = self.ports.queue.delete(queue, receipt).await {
            tracing::warn!({ field::QUEUE_NAME } = %queue, %error, "message not deleted");
        }
    }
}

/// The hints among the messages, each with its message. Other messages are left alone: in the end they reach the
/// dead-letter queue, where an operator can read them.
pub(super) fn parse_hints<'a>(queue: &QueueName, messages: &[&'a Received]) -> Vec<(Hint, &'a Received)> {
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
pub(super) fn parse_turns<'a>(queue: &QueueName, messages: &[&'a Received]) -> Vec<(TurnHint, &'a Received)> {
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

/// When the hint of this record should arrive.
pub(super) fn arrives_at(task: &Task) -> Timestamp {
    let needed_at = match &task.state {
        State::Pending(pending) => pending.available_at,
        State::Running(running) => running.claimed_at,
        State::Ended(ended) => ended.ended_at,
    };
    task.hinted_at.map_or(needed_at, |again| again.max(needed_at))
}

/// Whether a worker may have the task of a hint by that instant, as far as the hint says.
pub(super) fn is_ready(task: &Task, by: Timestamp) -> bool {
    match &task.state {
        State::Pending(pending) => task.is_ready(pending, by),
        State::Running(_) | State::Ended(_) => available_at(task) <= by,
    }
}

pub(super) fn available_at(task: &Task) -> Timestamp {
    match &task.state {
        State::Pending(pending) => pending.available_at,
        State::Running(running) => running.claimed_at,
        State::Ended(ended) => ended.ended_at,
    }
}
