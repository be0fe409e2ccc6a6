//! Sending: in batches, each message to the queue of its class, with repetitions of what SQS failed to take.

use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_service::ports::{Outgoing, QueueError};

use super::{REQUESTS_AT_ONCE, SqsQueue};
use crate::error::{classify_entry, unexpected};
use crate::place::Place;
use crate::{batch, message};

/// How often a message is sent if SQS fails to take it, and the sender isn't the cause. Requests that fail as a whole
/// aren't counted here: the SDK repeats those.
const ATTEMPTS: u32 = 3;

/// The result of a message of a batch.
enum Sent {
    /// SQS has taken it.
    Yes,
    /// SQS refuses it.
    Refused(QueueError),
    /// SQS failed to take it, or didn't say.
    Failed(QueueError),
}

impl SqsQueue {
    /// Sends each message to the queue of its class, or to the normal one if there is no such class queue.
    pub(super) async fn send_by_class(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        let own = self.place(queue)?;
        let mut results = vec![Ok(()); messages.len()];
        let places_of = |class| {
            let of_class =
                messages.iter().enumerate().filter(move |(_, message)| message.lane.priority == class);
            of_class.map(|(place, _)| place).collect::<Vec<_>>()
        };
        let mut others = places_of(Priority::Normal);
        for class in [Priority::High, Priority::Low] {
            let places = places_of(class);
            let Some(apart) = self.class_place(queue, class).filter(|_| !places.is_empty()) else {
                others.extend(places);
                continue;
            };
            match self.send_some(&apart, messages, &places, &mut results).await {
                Ok(()) => {}
                Err(QueueError::Unknown { .. }) => {
                    self.classes.note_absent(queue);
                    others.extend(places);
                }
                Err(error) => return Err(error),
            }
        }
        self.send_some(&own, messages, &others, &mut results).await?;
        Ok(results)
    }

    /// Sends the messages at these indices to one queue.
    async fn send_some(
        &self,
        to: &Place<'_>,
        messages: &[Outgoing],
        places: &[usize],
        results: &mut [Result<(), QueueError>],
    ) -> Result<(), QueueError> {
        let chosen: Vec<Outgoing> = places.iter().filter_map(|place| messages.get(*place)).cloned().collect();
        for (place, result) in places.iter().zip(self.send_all(to, &chosen).await?) {
            results[*place] = result;
        }
        Ok(())
    }

    /// Sends messages to one queue.
    pub(super) async fn send_all(
        &self,
        to: &Place<'_>,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        let batches: Vec<_> =
            batch::plan(messages).into_iter().map(|batch| self.send_batch(to, batch)).collect();
        let results: Vec<_> = stream::iter(batches).buffered(REQUESTS_AT_ONCE).try_collect().await?;
        Ok(results.into_iter().flatten().collect())
    }

    /// Sends one batch, and repeats the messages that SQS failed to take. Fails as a whole only if there is no such
    /// queue.
    async fn send_batch(
        &self,
        to: &Place<'_>,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        let mut results = vec![Ok(()); messages.len()];
        let mut pending: Vec<usize> = (0..messages.len()).collect();
        for attempt in 1..=ATTEMPTS {
            let output = match self.send_once(to, messages, &pending).await {
                Ok(output) => output,
                Err(error @ QueueError::Unknown { .. }) => return Err(error),
                Err(error) => {
                    for place in pending {
                        results[place] = Err(error.clone());
                    }
                    break;
                }
            };
            pending.retain(|place| {
                let (result, again) = match outcome(&output, *place) {
                    Sent::Yes => (Ok(()), false),
                    Sent::Refused(error) => (Err(error), false),
                    Sent::Failed(error) => (Err(error), true),
                };
                results[*place] = result;
                again
            });
            if pending.is_empty() {
                break;
            }
            if attempt < ATTEMPTS {
                tokio::time::sleep(batch::backoff(attempt)).await;
            }
        }
        Ok(results)
    }

    async fn send_once(
        &self,
        to: &Place<'_>,
        messages: &[Outgoing],
        places: &[usize],
    ) -> Result<SendMessageBatchOutput, QueueError> {
        let entries = places
            .iter()
            .filter_map(|place| Some(message::entry(*place, messages.get(*place)?)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| batch::unbuilt(&error))?;
        let request = self.client.send_message_batch().queue_url(&*to.url).set_entries(Some(entries));
        request.send().await.map_err(|error| to.failed(&error))
    }
}

/// SQS's answer for the message at an index. It is in one of two lists.
fn outcome(output: &SendMessageBatchOutput, place: usize) -> Sent {
    let id = place.to_string();
    if output.successful().iter().any(|entry| entry.id() == id) {
        return Sent::Yes;
    }
    match output.failed().iter().find(|entry| entry.id() == id) {
        Some(entry) if entry.sender_fault() => Sent::Refused(classify_entry(entry.code(), entry.message())),
        Some(entry) => Sent::Failed(classify_entry(entry.code(), entry.message())),
        None => Sent::Failed(unexpected("a batch that leaves a message out")),
    }
}
