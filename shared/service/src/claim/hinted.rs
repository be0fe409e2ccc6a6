//! Claiming by a message that another party received and will delete: Lambda does this for a function.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::id::QueueName;
use tickover_core::limits::QUEUE_DELAY_MAX;
use tickover_core::task::Task;
use tickover_core::task::command::HintedRecord;
use tickover_core::task::decision::ClaimReply;
use tickover_core::task::hint::Hint;

use super::messages::{RECEIVES_MAX, arrives_at, unknown_after};
use super::{ClaimRequest, ClaimedTask, Isolation, Terms, WAITED_OUT};
use crate::error::ServiceError;
use crate::ports::{Outgoing, Received};
use crate::queues::provides::fulfils;
use crate::service::Service;
use crate::telemetry::field;

/// A message that another party received.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<'a> {
    pub body: &'a str,
    /// The receipt with which its visibility is changed, where it is known.
    pub receipt: Option<&'a str>,
    /// How often it has been received.
    pub receives: u32,
}

impl<'a> Delivered<'a> {
    /// A message that is received for the first time, and whose receipt isn't known.
    pub const fn first(body: &'a str) -> Self {
        Self { body, receipt: None, receives: 1 }
    }

    /// Whether it was received before. The process that had it may have died.
    pub(crate) const fn is_again(&self) -> bool {
        self.receives > 1
    }
}

impl<'a> From<&'a Received> for Delivered<'a> {
    fn from(message: &'a Received) -> Self {
        Self { body: &message.body, receipt: Some(&message.receipt), receives: message.receive_count }
    }
}

/// The result of a message that another party received.
#[derive(Clone, Debug)]
pub enum Hinted<T> {
    /// The caller has leased the work.
    Taken(Box<T>),
    /// The message isn't needed any more: its work is done or doesn't exist, or a fresh message replaces it, now or
    /// once its queue is resumed.
    Spent,
    /// The last worker was lost, perhaps because of this work: it must be claimed with no other work in progress.
    Suspect,
}

impl Service {
    /// Claims the task of a message. After an error, the message must be delivered again.
    pub async fn claim_hinted(
        &self,
        message: Delivered<'_>,
        request: &ClaimRequest,
        isolation: Isolation,
    ) -> Result<Hinted<ClaimedTask>, ServiceError> {
        let hint = Hint::parse(message.body).map_err(|error| Reject::field("body", error))?;
        let (queue, incarnation) = (hint.task.queue.clone(), hint.task.incarnation);
        if !fulfils(&request.provides, &hint.task) {
            self.put_off(&queue, message, unknown_after(message.receives)).await?;
            return Ok(Hinted::Spent);
        }
        let paused = self.parks(&queue).await?;
        let arrived = arrives_at(&hint.task);
        let hinted = HintedRecord { incarnation, version: hint.task.version, again: message.is_again() };
        let terms = Terms { isolation, paused, patience: WAITED_OUT, inside: false };
        let taken = self.take(hint.task, Some(hinted), request, terms).await?;
        self.see_worker(&queue, request.worker.as_ref());
        self.note_received(&queue, self.class_of(message.receipt), arrived).await;
        // The record may have been deleted, and another task may have its id now: that isn't this message's task.
        let is_its = |(task, _): &(Task, _)| task.incarnation == incarnation;
        let Some((task, reply)) = taken.filter(is_its) else {
            return Ok(Hinted::Spent);
        };
        match reply {
            ClaimReply::Claimed => {
                let (id, lease) = (task.id.clone(), task.running().map(|running| running.lease));
                let handed_over = self.claimed_task(task, None).await;
                if let (Err(error), Some(lease)) = (&handed_over, lease)
                    && self.give_back(&id, lease, error).await
                {
                    return Ok(Hinted::Spent);
                }
                handed_over.map(|task| Hinted::Taken(Box::new(task)))
            }
            // If the worker that has the task dies, this message may be the one that brings it to another worker.
            ClaimReply::Leased => {
                let left =
                    task.running().map_or(Millis::ZERO, |held| held.lease_expires_at.since(self.now()));
                self.put_off(&queue, message, left).await?;
                Ok(Hinted::Spent)
            }
            ClaimReply::Suspect => Ok(Hinted::Suspect),
            ClaimReply::Parked | ClaimReply::NeedsPlaces | ClaimReply::NeedsStart => Ok(Hinted::Spent),
            ClaimReply::Stale => {
                self.mend_end(&task, message.is_again()).await?;
                Ok(Hinted::Spent)
            }
            ClaimReply::Early { available_at } => {
                self.send_hint(&queue, message.body, available_at.since(self.now())).await?;
                Ok(Hinted::Spent)
            }
        }
    }

    /// Leaves the task of a message to workers that know its kind: the message is delivered again, less and less often.
    /// After an error it comes back by itself; without an error, a fresh message has replaced it.
    pub async fn leave_to_others(&self, message: Delivered<'_>) -> Result<(), ServiceError> {
        let hint = Hint::parse(message.body).map_err(|error| Reject::field("body", error))?;
        self.put_off(&hint.task.queue, message, unknown_after(message.receives)).await
    }

    /// Makes a message come back after this long, which is an error for its receiver. A message that was received often
    /// is replaced by a fresh one instead: it would reach the dead-letter queue, or be hidden for longer than is
    /// allowed.
    async fn put_off(
        &self,
        queue: &QueueName,
        message: Delivered<'_>,
        after: Millis,
    ) -> Result<(), ServiceError> {
        if message.receives > RECEIVES_MAX {
            return self.send_hint(queue, message.body, after).await;
        }
        if let Some(receipt) = message.receipt
            && let Err(error) = self.ports.queue.change_visibility(queue, receipt, after).await
        {
            tracing::debug!({ field::QUEUE_NAME } = %queue, %error, "visibility of the message not changed");
        }
        Err(ServiceError::unavailable("it is for another worker, now or later"))
    }

    /// Hides messages for `left` from now. AWS received them for the function.
    pub async fn hide_messages(
        &self,
        queue: &QueueName,
        receipts: &[String],
        left: Millis,
    ) -> Result<(), ServiceError> {
        Ok(self.ports.queue.hide_all(queue, receipts, left).await?)
    }

    /// Whether a queue is paused, so that the records of its messages are parked. This is first noted on the queue's
    /// record.
    pub(crate) async fn parks(&self, queue: &QueueName) -> Result<bool, ServiceError> {
        Ok(self.is_paused(queue).await? && self.note_parked(queue).await?)
    }

    /// Sends a copy of a message that AWS received for the function and will delete.
    pub(crate) async fn send_hint(
        &self,
        queue: &QueueName,
        body: &str,
        after: Millis,
    ) -> Result<(), ServiceError> {
        let again = Outgoing::again(body, after.min(QUEUE_DELAY_MAX));
        for sent in self.ports.queue.send(queue, &[again]).await? {
            sent?;
        }
        Ok(())
    }
}
