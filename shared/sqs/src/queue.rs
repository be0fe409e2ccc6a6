//! The port's calls as SQS requests.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry, MessageSystemAttributeName,
    QueueAttributeName,
};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::limits::{CLAIM_MAX, LEASE_RANGE, WAIT_MAX};
use tickover_service::config::QueuePattern;
use tickover_service::ports::{Depth, Outgoing, Queue, QueueError, Received};

use crate::batch;
use crate::error::{classify, classify_entry, classify_with_receipt, is_no_queue, unexpected};
use crate::message;

/// How often a message is sent if SQS fails to take it, and the sender isn't the cause. Requests that fail as a whole
/// aren't counted here: the SDK repeats those.
const ATTEMPTS: u32 = 3;

/// Requests of one call that are in progress at the same time.
const REQUESTS_AT_ONCE: usize = 4;

/// SQS queues by their logical names.
#[derive(Clone, Debug)]
pub struct SqsQueue {
    client: Client,
    urls: BTreeMap<QueueName, String>,
    pattern: Option<QueuePattern>,
    /// The queues of the pattern that this process has found.
    found: Arc<Mutex<BTreeSet<QueueName>>>,
}

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
    /// The queues at these URLs, and no others.
    pub fn new(client: Client, urls: BTreeMap<QueueName, String>) -> Self {
        Self { client, urls, pattern: None, found: Arc::default() }
    }

    /// Every queue of this pattern as well: SQS says which of them exist.
    #[must_use]
    pub fn finding(self, pattern: Option<QueuePattern>) -> Self {
        Self { pattern, ..self }
    }

    fn url(&self, queue: &QueueName) -> Result<Cow<'_, str>, QueueError> {
        if let Some(url) = self.urls.get(queue) {
            return Ok(url.into());
        }
        let url = self.pattern.as_ref().and_then(|pattern| pattern.url(queue));
        url.map(Cow::from).ok_or_else(|| unknown(queue))
    }

    /// Whether SQS has a queue of the pattern with this name. Asks until it has one.
    async fn find(&self, queue: &QueueName) -> Result<bool, QueueError> {
        if self.found.lock().unwrap_or_else(PoisonError::into_inner).contains(queue) {
            return Ok(true);
        }
        match self.depth(queue).await {
            Ok(_) => {
                self.found.lock().unwrap_or_else(PoisonError::into_inner).insert(queue.clone());
                Ok(true)
            }
            Err(QueueError::Unknown { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends one batch, and repeats the messages that SQS failed to take. Fails as a whole only if there is no such
    /// queue.
    async fn send_batch(
        &self,
        queue: &QueueName,
        url: &str,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        let mut results = vec![Ok(()); messages.len()];
        let mut pending: Vec<usize> = (0..messages.len()).collect();
        for attempt in 1..=ATTEMPTS {
            let output = match self.send_once(queue, url, messages, &pending).await {
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
        queue: &QueueName,
        url: &str,
        messages: &[Outgoing],
        places: &[usize],
    ) -> Result<SendMessageBatchOutput, QueueError> {
        let entries = places
            .iter()
            .filter_map(|place| Some(message::entry(*place, messages.get(*place)?)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| QueueError::Unavailable { reason: error.to_string() })?;
        let request = self.client.send_message_batch().queue_url(url).set_entries(Some(entries));
        request.send().await.map_err(|error| classify(queue.as_str(), &error))
    }
}

fn unknown(queue: &QueueName) -> QueueError {
    QueueError::Unknown { queue: queue.to_string() }
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

#[async_trait]
impl Queue for SqsQueue {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        let url = self.url(queue)?;
        let batches: Vec<_> =
            batch::plan(messages).into_iter().map(|batch| self.send_batch(queue, &url, batch)).collect();
        let results: Vec<_> = stream::iter(batches).buffered(REQUESTS_AT_ONCE).try_collect().await?;
        Ok(results.into_iter().flatten().collect())
    }

    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        let request = self
            .client
            .receive_message()
            .queue_url(self.url(queue)?)
            .max_number_of_messages(i32::try_from(max.clamp(1, CLAIM_MAX)).unwrap_or(1))
            .visibility_timeout(message::seconds_up(visibility, LEASE_RANGE.1))
            .wait_time_seconds(message::seconds_up(wait, WAIT_MAX))
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount);
        let output = request.send().await.map_err(|error| classify(queue.as_str(), &error))?;
        Ok(output.messages.unwrap_or_default().into_iter().filter_map(message::received).collect())
    }

    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError> {
        let request = self.client.delete_message().queue_url(self.url(queue)?).receipt_handle(receipt);
        match request.send().await.map_err(|error| classify_with_receipt(queue.as_str(), &error)) {
            // The message was deleted, or received again. In both cases this receipt has no further use.
            Ok(_) | Err(QueueError::StaleReceipt) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError> {
        let request = self
            .client
            .change_message_visibility()
            .queue_url(self.url(queue)?)
            .receipt_handle(receipt)
            .visibility_timeout(message::seconds_up(visibility, LEASE_RANGE.1));
        request.send().await.map(drop).map_err(|error| classify_with_receipt(queue.as_str(), &error))
    }

    async fn delete_all(&self, queue: &QueueName, receipts: &[String]) -> Result<(), QueueError> {
        let url = &*self.url(queue)?;
        let requests: Vec<_> = receipts
            .chunks(batch::MESSAGES_MAX)
            .map(|receipts| async move {
                let entries = batch::numbered(receipts).map(|(id, receipt)| {
                    DeleteMessageBatchRequestEntry::builder().id(id).receipt_handle(receipt).build()
                });
                let entries =
                    entries.collect::<Result<Vec<_>, _>>().map_err(|error| batch::unbuilt(&error))?;
                let request = self.client.delete_message_batch().queue_url(url).set_entries(Some(entries));
                let output = request.send().await.map_err(|error| classify(queue.as_str(), &error))?;
                batch::refusal(output.failed())
            })
            .collect();
        stream::iter(requests).buffer_unordered(REQUESTS_AT_ONCE).try_collect().await
    }

    async fn hide_all(
        &self,
        queue: &QueueName,
        receipts: &[String],
        visibility: Millis,
    ) -> Result<(), QueueError> {
        let url = &*self.url(queue)?;
        let seconds = message::seconds_up(visibility, LEASE_RANGE.1);
        let requests: Vec<_> = receipts
            .chunks(batch::MESSAGES_MAX)
            .map(|receipts| async move {
                let entries = batch::numbered(receipts).map(|(id, receipt)| {
                    let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(id);
                    entry.receipt_handle(receipt).visibility_timeout(seconds).build()
                });
                let entries =
                    entries.collect::<Result<Vec<_>, _>>().map_err(|error| batch::unbuilt(&error))?;
                let request = self.client.change_message_visibility_batch().queue_url(url);
                let sent = request.set_entries(Some(entries)).send().await;
                let output = sent.map_err(|error| classify(queue.as_str(), &error))?;
                batch::refusal(output.failed())
            })
            .collect();
        stream::iter(requests).buffer_unordered(REQUESTS_AT_ONCE).try_collect().await
    }

    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError> {
        let names = [VISIBLE, IN_FLIGHT, DELAYED];
        let request = self.client.get_queue_attributes().queue_url(self.url(queue)?);
        let request = request.set_attribute_names(Some(names.to_vec()));
        let output = request.send().await.map_err(|error| {
            if self.urls.contains_key(queue) || !is_no_queue(&error) {
                return classify(queue.as_str(), &error);
            }
            // Not an error in the log: a caller can make up any name.
            self.found.lock().unwrap_or_else(PoisonError::into_inner).remove(queue);
            unknown(queue)
        })?;
        let count = |name: &QueueAttributeName| {
            let value = output.attributes().and_then(|attributes| attributes.get(name));
            // Never counted as zero: lost hints are sent again for a queue that seems empty.
            value
                .and_then(|value| value.parse().ok())
                .ok_or_else(|| unexpected("a depth without its numbers"))
        };
        Ok(Depth { visible: count(&VISIBLE)?, in_flight: count(&IN_FLIGHT)?, delayed: count(&DELAYED)? })
    }

    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError> {
        if self.urls.contains_key(queue) || !self.knows(queue) {
            return Ok(self.knows(queue));
        }
        self.find(queue).await
    }

    fn finds_by_name(&self) -> bool {
        self.pattern.is_some()
    }

    fn knows(&self, queue: &QueueName) -> bool {
        self.url(queue).is_ok()
    }

    fn names(&self) -> Vec<QueueName> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.urls.keys().cloned().chain(found).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

const VISIBLE: QueueAttributeName = QueueAttributeName::ApproximateNumberOfMessages;
const IN_FLIGHT: QueueAttributeName = QueueAttributeName::ApproximateNumberOfMessagesNotVisible;
const DELAYED: QueueAttributeName = QueueAttributeName::ApproximateNumberOfMessagesDelayed;

#[cfg(test)]
mod tests;
