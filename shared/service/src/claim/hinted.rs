//! Claiming by a message that somebody else received and will delete: what Lambda does for a function.

use tickover_core::command::HintedRecord;
use tickover_core::decision::ClaimReply;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::hint::Hint;
use tickover_core::id::QueueName;
use tickover_core::limits::QUEUE_DELAY_MAX;

use super::messages::arrives_at;
use super::{ClaimRequest, ClaimedTask};
use crate::error::ServiceError;
use crate::ports::Outgoing;
use crate::service::Service;

/// How soon a message comes back whose queue is paused.
pub(crate) const WHILE_PAUSED: Millis = Millis::from_secs(60);

impl Service {
    /// Takes the task that a message is of. `None` if it led to nothing and isn't needed any more: the task is gone or
    /// done, or a fresh message stands for it. With an error, this one has to come back.
    pub async fn claim_hinted(
        &self,
        body: &str,
        request: &ClaimRequest,
    ) -> Result<Option<ClaimedTask>, ServiceError> {
        let hint = Hint::parse(body).map_err(|error| Reject::field("body", error))?;
        let (queue, incarnation) = (hint.task.queue.clone(), hint.task.incarnation);
        if self.is_paused(&queue).await? {
            self.send_hint(&queue, body, WHILE_PAUSED).await?;
            return Ok(None);
        }
        let arrived = arrives_at(&hint.task);
        let hinted = HintedRecord { incarnation, version: hint.task.version };
        let (driven, reply) = self.take(hint.task, Some(hinted), request).await?;
        self.note_received(&queue, arrived).await;
        // The record may have gone, and its id may be in use by another task by now: not this message's.
        let Some(task) = driven.task.filter(|task| task.incarnation == incarnation) else { return Ok(None) };
        match reply {
            ClaimReply::Claimed => {
                let (id, lease) = (task.id.clone(), task.running().map(|running| running.lease));
                let handed_over = self.hand_over(task, None).await;
                if let (Err(error), Some(lease)) = (&handed_over, lease)
                    && self.give_back(&id, lease, error).await
                {
                    return Ok(None);
                }
                handed_over.map(Some)
            }
            // If its holder dies, this message may be what brings it to somebody else.
            ClaimReply::Held => {
                Err(ServiceError::Unavailable { reason: "another worker has the task".to_owned() })
            }
            ClaimReply::Spent => {
                self.tell_of_ended(&task).await?;
                Ok(None)
            }
            ClaimReply::Early { available_at } => {
                self.send_hint(&queue, body, available_at.since(self.now())).await?;
                Ok(None)
            }
        }
    }

    /// Has a fresh message stand for one that somebody else received and will delete.
    pub(crate) async fn send_hint(
        &self,
        queue: &QueueName,
        body: &str,
        after: Millis,
    ) -> Result<(), ServiceError> {
        let again = Outgoing { body: body.to_owned(), delay: after.min(QUEUE_DELAY_MAX) };
        for sent in self.ports.queue.send(queue, &[again]).await? {
            sent?;
        }
        Ok(())
    }
}
