//! Receiving: from the queue, or in turns from it and its class queues.

use aws_sdk_sqs::types::MessageSystemAttributeName;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::limits::{CLAIM_MAX, LEASE_RANGE, WAIT_MAX};
use tickover_service::ports::{QueueError, Received};

use super::SqsQueue;
use crate::message;
use crate::place::Place;

/// How long a receiver waits at the high class before it asks the others again.
///
/// It can't wait at all classes at the same time: SQS may hand out a message in the moment in which the receiver has got
/// one elsewhere and leaves. Such a message would be hidden for a lease.
const ROUND: Millis = Millis::from_secs(1);

/// What a receiver asks for.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// 1 to [`CLAIM_MAX`].
    pub(super) max: usize,
    pub(super) visibility: Millis,
    /// At most [`WAIT_MAX`].
    pub(super) wait: Millis,
}

impl SqsQueue {
    /// Receives in turns from all classes, until one has given something or the wait is over. `None` if the queue has no
    /// class queues.
    pub(super) async fn receive_in_turns(
        &self,
        own: &Place<'_>,
        asked: Asked,
    ) -> Result<Option<Vec<Received>>, QueueError> {
        let mut left = asked.wait;
        let mut at_high = Millis::ZERO;
        loop {
            let Some(received) = self.receive_once(own, Asked { wait: at_high, ..asked }).await? else {
                return Ok(None);
            };
            if !received.is_empty() || left.is_zero() {
                return Ok(Some(received));
            }
            at_high = left.min(ROUND);
            left = left.saturating_sub(at_high);
        }
    }

    /// Asks each class in its turn, until there are enough messages. Waits only at the high one, and only while there is
    /// nothing.
    async fn receive_once(&self, own: &Place<'_>, asked: Asked) -> Result<Option<Vec<Received>>, QueueError> {
        let mut received = Vec::new();
        for (class, most) in self.classes.asks(own.queue, asked.max) {
            let max = usize::try_from(most).unwrap_or(usize::MAX).min(asked.max - received.len());
            if max == 0 {
                continue;
            }
            let may_wait = class == Priority::High && received.is_empty();
            let wait = if may_wait { asked.wait } else { Millis::ZERO };
            let given = match self.place_of_class(own.queue, class) {
                Ok(place) => self.receive_at(&place, Asked { max, wait, ..asked }).await,
                Err(error) => Err(error),
            };
            match given {
                Ok(given) => {
                    self.classes.note_given(own.queue, class, given.len());
                    received.extend(given);
                }
                Err(QueueError::Unknown { .. }) if class != Priority::Normal => {
                    self.classes.note_absent(own.queue);
                    // What other classes gave is hidden from others now, so it is handed out.
                    return Ok((!received.is_empty()).then_some(received));
                }
                Err(error) if received.is_empty() => return Err(error),
                Err(error) => {
                    tracing::warn!(queue = %own.queue, %class, %error, "this class isn't received from");
                    return Ok(Some(received));
                }
            }
        }
        Ok(Some(received))
    }

    pub(super) async fn receive_at(
        &self,
        place: &Place<'_>,
        asked: Asked,
    ) -> Result<Vec<Received>, QueueError> {
        let request = self
            .polling
            .receive_message()
            .queue_url(&*place.url)
            .max_number_of_messages(i32::try_from(asked.max.clamp(1, CLAIM_MAX)).unwrap_or(1))
            .visibility_timeout(message::seconds_up(asked.visibility, LEASE_RANGE.1))
            .wait_time_seconds(message::seconds_up(asked.wait, WAIT_MAX))
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount);
        let output = request.send().await.map_err(|error| place.failed(&error))?;
        let messages = output.messages.unwrap_or_default().into_iter();
        Ok(messages.filter_map(|message| message::received(place.class, message)).collect())
    }
}
