//! The messages behind claims: what each leads to, and what becomes of it then.

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

use super::{ClaimedTask, Found, SHOWN_AGAIN, Terms, WAITED_OUT, Wanted};
use crate::error::ServiceError;
use crate::executions::Work;
use crate::ports::{Outgoing, Received};
use crate::service::Service;
use crate::telemetry::field;

/// Receives after which a message that led to nothing yet is replaced by a fresh one. Each time it is received brings
/// it nearer to the dead-letter queue, and no message can be hidden for longer than 12 hours in all.
pub(super) const RECEIVES_MAX: u32 = 20;
/// For how long a message that stands for such a one is hidden at most. It may be what tells a parent of an end, which
/// is to be found within 15 minutes.
const FRESH_MAX: Millis = Millis::from_secs(600);
/// The longest time for which a task is left to others whose kind isn't known here.
const UNKNOWN_MAX: Millis = Millis::from_secs(60);

/// How long a task of an unknown kind is left to others, the longer the more often it has come.
pub(super) fn unknown_after(receives: u32) -> Millis {
    SHOWN_AGAIN.saturating_mul(1 << receives.saturating_sub(1).min(6)).min(UNKNOWN_MAX)
}

/// What a task's message led to.
enum Led {
    Claimed(Box<ClaimedTask>),
    /// It is for a worker that has nothing else under way.
    Suspect,
    /// Nothing, and the message was seen to.
    Nothing,
}

impl Service {
    /// What messages received together lead to: tasks, and turns if they are wanted.
    pub(super) async fn work_messages<'m>(
        &self,
        queue: &QueueName,
        messages: &[&'m Received],
        wanted: Wanted<'_>,
    ) -> Found<'m> {
        let (of_turns, of_tasks): (Vec<_>, Vec<_>) =
            messages.iter().copied().partition(|message| TurnHint::is_one(&message.body));
        let hinted = parse_turns(queue, &of_turns);
        let patient = of_tasks.is_empty();
        let start_turns = async {
            if wanted.turns && !hinted.is_empty() {
                return self.start_turns(queue, hinted, wanted, patient).await;
            }
            self.leave_turns(queue, hinted).await;
            Found::default()
        };
        // Neither waits for the other.
        let claim_tasks = self.claim_messages(queue, &of_tasks, wanted);
        let (mut turns, tasks) = join(start_turns, claim_tasks).await;
        turns.work.extend(tasks.work);
        turns.suspects.extend(tasks.suspects);
        Found { trouble: tasks.trouble.or(turns.trouble), ..turns }
    }

    /// What messages received together lead to. Those that start within a second are only waited for if nothing
    /// else came: work in hand is handed out at once, and they go back to the queue.
    async fn claim_messages<'m>(
        &self,
        queue: &QueueName,
        messages: &[&'m Received],
        wanted: Wanted<'_>,
    ) -> Found<'m> {
        let mut hinted = parse_hints(queue, messages);
        hinted.sort_unstable_by_key(|(hint, _)| available_at(&hint.task));
        let mut found = Found::default();
        let mut ready = self.now();
        while found.work.is_empty() && !hinted.is_empty() {
            let (soon, now): (Vec<_>, Vec<_>) = hinted.into_iter().partition(|(hint, _)| {
                let left = available_at(&hint.task).since(ready);
                !left.is_zero() && left <= WAITED_OUT
            });
            let messages: Vec<&Received> = now.iter().map(|(_, message)| *message).collect();
            let claims =
                now.into_iter().map(|(hint, message)| self.claim_message(queue, hint, message, wanted));
            for (message, led) in messages.into_iter().zip(join_all(claims).await) {
                match led {
                    Ok(Led::Claimed(task)) => found.work.push(Work::Task(task)),
                    Ok(Led::Suspect) => found.suspects.push(message),
                    Ok(Led::Nothing) => {}
                    Err(error) => found.trouble = Some(error),
                }
            }
            hinted = soon;
            if let (true, Some((first, _))) = (found.work.is_empty(), hinted.first()) {
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
        found
    }

    /// What a hint leads to. One that can't be dealt with for now shows again soon.
    async fn claim_message(
        &self,
        queue: &QueueName,
        hint: Hint,
        message: &Received,
        wanted: Wanted<'_>,
    ) -> Result<Led, ServiceError> {
        if wanted.knows.is_some_and(|knows| !knows(hint.task.kind.as_str())) {
            self.leave_unknown(queue, &hint, message).await;
            return Ok(Led::Nothing);
        }
        let (id, request) = (hint.task.id.clone(), wanted.request);
        let claimed = self.claim_hint(queue, hint, message, wanted).await;
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

    /// A task that the caller can't do. Claimed and given back, it would be here again at once, and so for ever.
    async fn leave_unknown(&self, queue: &QueueName, hint: &Hint, message: &Received) {
        let (id, kind) = (&hint.task.id, &hint.task.kind);
        tracing::warn!({ field::TASK_ID } = %id, %kind, "no step of this kind here; left to others");
        self.put_back(queue, message, unknown_after(message.receive_count)).await;
    }

    /// Hides a message for a while, or has a fresh one stand for it if it has come often.
    async fn put_back(&self, queue: &QueueName, message: &Received, after: Millis) {
        if message.receive_count > RECEIVES_MAX
            && let Ok(()) = self.send_again(queue, message, after.min(FRESH_MAX)).await
        {
            return;
        }
        self.show_again(queue, message, after).await;
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
        wanted: Wanted<'_>,
    ) -> Result<Led, ServiceError> {
        let (incarnation, arrived) = (hint.task.incarnation, arrives_at(&hint.task));
        let hinted = HintedRecord { incarnation, version: hint.task.version };
        let terms = Terms { company: wanted.company, paused: false };
        let taken = self.take(hint.task, Some(hinted), wanted.request, terms).await?;
        self.note_received(queue, arrived).await;
        // The record may have gone, and its id may be in use by another task by now: not this message's.
        let is_its = |(task, _): &(Task, _)| task.incarnation == incarnation;
        let Some((task, reply)) = taken.filter(is_its) else {
            self.delete_message(queue, &message.receipt).await;
            return Ok(Led::Nothing);
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
                handed_over.map(|task| Led::Claimed(Box::new(task)))
            }
            ClaimReply::Held => {
                // Received for our lease; if the holder dies, it is theirs that it should come back with.
                let left =
                    task.running().map_or(Millis::ZERO, |held| held.lease_expires_at.since(self.now()));
                if left < wanted.request.lease || message.receive_count > RECEIVES_MAX {
                    self.put_back(queue, message, left).await;
                }
                Ok(Led::Nothing)
            }
            ClaimReply::Suspect => Ok(Led::Suspect),
            ClaimReply::Spent | ClaimReply::Parked => {
                self.tell_of_ended(&task).await?;
                self.delete_message(queue, &message.receipt).await;
                Ok(Led::Nothing)
            }
            ClaimReply::Early { available_at } => {
                self.send_again(queue, message, available_at.since(self.now())).await?;
                Ok(Led::Nothing)
            }
        }
    }

    /// Tells the parent of an ended task whose message came again: the process that ended it may have died before
    /// it told the parent.
    pub(crate) async fn tell_of_ended(&self, task: &Task) -> Result<(), ServiceError> {
        match (&task.parent, task.ended()) {
            (Some(parent), Some(ended)) => self.notify_again(parent, ended.ended_at).await,
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
