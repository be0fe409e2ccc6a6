//! The port's calls as SQS requests.

mod receiving;
mod sending;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry, QueueAttributeName,
};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_core::limits::{CLAIM_MAX, LEASE_RANGE};
use tickover_service::config::QueuePattern;
use tickover_service::ports::{ClassDepth, Depth, Outgoing, Queue, QueueError, QueueTraits, Received};

use self::receiving::Asked;
use crate::class::{self, Classes};
use crate::error::{classify, is_bad_receipt, is_no_queue, unexpected};
use crate::place::{Place, unknown};
use crate::{batch, message};

/// Queues in one answer: the most that SQS allows.
const LISTED_AT_ONCE: i32 = 1_000;
/// Requests of one call that are in progress at the same time.
const REQUESTS_AT_ONCE: usize = 4;

/// Timeout of one try to receive messages. A long poll takes up to 20 s, which is not a failure.
const LONG_POLL_ATTEMPT: Duration = Duration::from_secs(25);
/// Timeout of all its tries together.
const LONG_POLL_OPERATION: Duration = Duration::from_secs(30);

/// The same client with timeouts that allow long polls. All other calls keep theirs: a send that hangs is tried again soon.
fn polling(client: &Client) -> Client {
    let timeouts = TimeoutConfig::builder()
        .operation_attempt_timeout(LONG_POLL_ATTEMPT)
        .operation_timeout(LONG_POLL_OPERATION)
        .build();
    Client::from_conf(client.config().to_builder().timeout_config(timeouts).build())
}

/// SQS queues by their logical names. Those that are found by their names may have class queues.
#[derive(Clone, Debug)]
pub struct SqsQueue {
    client: Client,
    /// For receiving only.
    polling: Client,
    urls: BTreeMap<QueueName, String>,
    pattern: Option<QueuePattern>,
    /// The queues of the pattern that this process has found.
    found: Arc<Mutex<BTreeSet<QueueName>>>,
    classes: Arc<Classes>,
}

impl SqsQueue {
    /// The queues at these URLs, and no others. They have no class queues.
    pub fn new(client: Client, urls: BTreeMap<QueueName, String>) -> Self {
        let polling = polling(&client);
        Self { client, polling, urls, pattern: None, found: Arc::default(), classes: Arc::default() }
    }

    /// Every queue of this pattern as well: SQS says which of them exist.
    #[must_use]
    pub fn finding(self, pattern: Option<QueuePattern>) -> Self {
        Self { pattern, ..self }
    }

    /// The queue of its name.
    fn place<'a>(&'a self, queue: &'a QueueName) -> Result<Place<'a>, QueueError> {
        self.place_of_class(queue, Priority::Normal)
    }

    /// The queue where the messages of a class are, if it exists.
    fn place_of_class<'a>(&'a self, queue: &'a QueueName, class: Priority) -> Result<Place<'a>, QueueError> {
        let found = || self.pattern.as_ref()?.class_url(queue, class).map(Cow::from);
        let url = match (self.urls.get(queue), class) {
            (Some(url), Priority::Normal) => Some(url.into()),
            (Some(_), Priority::High | Priority::Low) => None,
            (None, _) => found(),
        };
        url.map(|url| Place { queue, class, url }).ok_or_else(|| unknown(queue))
    }

    /// The class queue, unless it is known that there is none.
    fn class_place<'a>(&'a self, queue: &'a QueueName, class: Priority) -> Option<Place<'a>> {
        self.classes.may_exist(queue).then(|| self.place_of_class(queue, class).ok()).flatten()
    }

    /// Whether SQS has a queue of the pattern with this name. Asks until it has one.
    async fn find(&self, queue: &QueueName) -> Result<bool, QueueError> {
        if self.found.lock().unwrap_or_else(PoisonError::into_inner).contains(queue) {
            return Ok(true);
        }
        match self.depth_at(&self.place(queue)?).await {
            Ok(_) => {
                self.found.lock().unwrap_or_else(PoisonError::into_inner).insert(queue.clone());
                Ok(true)
            }
            Err(QueueError::Unknown { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// About how many messages are in a class queue; `None` if there is none.
    async fn depth_apart(&self, queue: &QueueName, class: Priority) -> Result<Option<Depth>, QueueError> {
        let Some(place) = self.class_place(queue, class) else { return Ok(None) };
        match self.depth_at(&place).await {
            Ok(depth) => Ok(Some(depth)),
            Err(QueueError::Unknown { .. }) => {
                self.classes.note_absent(queue);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn depth_at(&self, place: &Place<'_>) -> Result<Depth, QueueError> {
        let names = [VISIBLE, IN_FLIGHT, DELAYED];
        let request = self.client.get_queue_attributes().queue_url(&*place.url);
        let request = request.set_attribute_names(Some(names.to_vec()));
        let output = request.send().await.map_err(|error| {
            if self.urls.contains_key(place.queue) || place.class != Priority::Normal || !is_no_queue(&error)
            {
                return place.failed(&error);
            }
            // Not an error in the log: a caller can make up any name.
            self.found.lock().unwrap_or_else(PoisonError::into_inner).remove(place.queue);
            unknown(place.queue)
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

    /// The queue of a receipt's message, and the receipt as SQS gave it.
    fn place_of_receipt<'a>(
        &'a self,
        queue: &'a QueueName,
        receipt: &'a str,
    ) -> Result<(Place<'a>, &'a str), QueueError> {
        let (class, receipt) = class::split_receipt(receipt);
        Ok((self.place_of_class(queue, class)?, receipt))
    }

    async fn delete_at(&self, place: &Place<'_>, receipts: &[String]) -> Result<(), QueueError> {
        let requests: Vec<_> = receipts
            .chunks(batch::MESSAGES_MAX)
            .map(|receipts| async move {
                let entries = batch::numbered(receipts).map(|(id, receipt)| {
                    DeleteMessageBatchRequestEntry::builder().id(id).receipt_handle(receipt).build()
                });
                let entries =
                    entries.collect::<Result<Vec<_>, _>>().map_err(|error| batch::unbuilt(&error))?;
                let request = self.client.delete_message_batch().queue_url(&*place.url);
                let sent = request.set_entries(Some(entries)).send().await;
                batch::refusal(sent.map_err(|error| place.failed(&error))?.failed())
            })
            .collect();
        stream::iter(requests).buffer_unordered(REQUESTS_AT_ONCE).try_collect().await
    }

    async fn hide_at(&self, place: &Place<'_>, receipts: &[String], seconds: i32) -> Result<(), QueueError> {
        let requests: Vec<_> = receipts
            .chunks(batch::MESSAGES_MAX)
            .map(|receipts| async move {
                let entries = batch::numbered(receipts).map(|(id, receipt)| {
                    let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(id);
                    entry.receipt_handle(receipt).visibility_timeout(seconds).build()
                });
                let entries =
                    entries.collect::<Result<Vec<_>, _>>().map_err(|error| batch::unbuilt(&error))?;
                let request = self.client.change_message_visibility_batch().queue_url(&*place.url);
                let sent = request.set_entries(Some(entries)).send().await;
                batch::refusal(sent.map_err(|error| place.failed(&error))?.failed())
            })
            .collect();
        stream::iter(requests).buffer_unordered(REQUESTS_AT_ONCE).try_collect().await
    }
}

/// The messages of a class queue go with it.
fn unless_gone(class: Priority, done: Result<(), QueueError>) -> Result<(), QueueError> {
    match done {
        Err(QueueError::Unknown { .. }) if class != Priority::Normal => Ok(()),
        done => done,
    }
}

#[async_trait]
impl Queue for SqsQueue {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError> {
        if messages.iter().all(|message| message.lane.priority == Priority::Normal) {
            return self.send_all(&self.place(queue)?, messages).await;
        }
        self.send_by_class(queue, messages).await
    }

    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        let own = self.place(queue)?;
        let asked = Asked { max: max.clamp(1, CLAIM_MAX), visibility, wait };
        if self.class_place(queue, Priority::High).is_some()
            && let Some(received) = self.receive_in_turns(&own, asked).await?
        {
            return Ok(received);
        }
        self.receive_at(&own, asked).await
    }

    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError> {
        let (class, _) = class::split_receipt(receipt);
        let deleted = async {
            let (place, receipt) = self.place_of_receipt(queue, receipt)?;
            let request = self.client.delete_message().queue_url(&*place.url).receipt_handle(receipt);
            match request.send().await {
                // The message was deleted, or received again. In both cases this receipt has no further use.
                Err(error) if !is_bad_receipt(&error) => Err(place.failed(&error)),
                Ok(_) | Err(_) => Ok(()),
            }
        };
        unless_gone(class, deleted.await)
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError> {
        let (class, _) = class::split_receipt(receipt);
        let changed = async {
            let (place, receipt) = self.place_of_receipt(queue, receipt)?;
            let request = self
                .client
                .change_message_visibility()
                .queue_url(&*place.url)
                .receipt_handle(receipt)
                .visibility_timeout(message::seconds_up(visibility, LEASE_RANGE.1));
            match request.send().await {
                Err(error) if is_bad_receipt(&error) => Err(QueueError::StaleReceipt),
                Err(error) => Err(place.failed(&error)),
                Ok(_) => Ok(()),
            }
        };
        match changed.await {
            Err(QueueError::Unknown { .. }) if class != Priority::Normal => Err(QueueError::StaleReceipt),
            changed => changed,
        }
    }

    async fn delete_all(&self, queue: &QueueName, receipts: &[String]) -> Result<(), QueueError> {
        for (class, receipts) in class::by_class(receipts) {
            if !receipts.is_empty() {
                let place = self.place_of_class(queue, class);
                let deleted = async { self.delete_at(&place?, &receipts).await };
                unless_gone(class, deleted.await)?;
            }
        }
        Ok(())
    }

    async fn hide_all(
        &self,
        queue: &QueueName,
        receipts: &[String],
        visibility: Millis,
    ) -> Result<(), QueueError> {
        let seconds = message::seconds_up(visibility, LEASE_RANGE.1);
        for (class, receipts) in class::by_class(receipts) {
            if !receipts.is_empty() {
                let place = self.place_of_class(queue, class);
                let hidden = async { self.hide_at(&place?, &receipts, seconds).await };
                unless_gone(class, hidden.await)?;
            }
        }
        Ok(())
    }

    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError> {
        let mut all = self.depth_at(&self.place(queue)?).await?;
        for class in [Priority::High, Priority::Low] {
            let apart = self.depth_apart(queue, class).await?.unwrap_or_default();
            all.visible += apart.visible;
            all.in_flight += apart.in_flight;
            all.delayed += apart.delayed;
        }
        Ok(all)
    }

    async fn class_depth(&self, queue: &QueueName, class: Priority) -> Result<ClassDepth, QueueError> {
        if class != Priority::Normal
            && let Some(depth) = self.depth_apart(queue, class).await?
        {
            return Ok(ClassDepth { depth, apart: true });
        }
        Ok(ClassDepth { depth: self.depth_at(&self.place(queue)?).await?, apart: false })
    }

    fn class_of(&self, receipt: &str) -> Priority {
        class::split_receipt(receipt).0
    }

    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError> {
        if self.urls.contains_key(queue) || !self.knows(queue) {
            return Ok(self.knows(queue));
        }
        self.find(queue).await
    }

    fn traits(&self) -> QueueTraits {
        QueueTraits { counts_seconds: true, finds_by_name: self.pattern.is_some(), finds_pending: false }
    }

    fn knows(&self, queue: &QueueName) -> bool {
        self.place(queue).is_ok()
    }

    fn names(&self) -> Vec<QueueName> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.urls.keys().cloned().chain(found).collect::<BTreeSet<_>>().into_iter().collect()
    }

    async fn discover(&self) -> Result<Vec<QueueName>, QueueError> {
        let mut names: BTreeSet<_> = self.urls.keys().filter(|name| !name.is_reserved()).cloned().collect();
        if let Some(pattern) = &self.pattern {
            let request = self.client.list_queues().queue_name_prefix(pattern.prefix());
            let mut urls = request.max_results(LISTED_AT_ONCE).into_paginator().items().send();
            while let Some(url) = urls.next().await {
                let url = url.map_err(|error| classify(pattern.prefix(), &error))?;
                // The address in the URL may be another one than the pattern's.
                let name = url.rsplit('/').next().and_then(|name| pattern.queue(name));
                names.extend(name.filter(|(_, class)| *class == Priority::Normal).map(|(name, _)| name));
            }
        }
        Ok(names.into_iter().collect())
    }
}

const VISIBLE: QueueAttributeName = QueueAttributeName::ApproximateNumberOfMessages;
const IN_FLIGHT: QueueAttributeName = QueueAttributeName::ApproximateNumberOfMessagesNotVisible;
const DELAYED: QueueAttributeName = QueueAttributeName::ApproximateNumberOfMessagesDelayed;

#[cfg(test)]
mod tests;
