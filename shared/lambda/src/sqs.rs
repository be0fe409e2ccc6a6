//! Batches of SQS messages: each message is handled separately, and only those that failed return to their queue.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use tickover_api::Problem;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_core::time::Timestamp;
use tickover_sqs::receipt_of;

use crate::boot::App;

/// A message that was received less than this before its invocation is hidden for as long as the invocation lasts. In the
/// last seconds of an invocation no work is under way.
const FRESH: Millis = Millis::from_secs(2);

/// The log field with the message's id in SQS.
pub const MESSAGE_ID: &str = "message.id";

/// Handles the messages, `at_once` of them concurrently, and lists those that failed in the answer. They become visible
/// again, and in the end go to the dead-letter queue. The reason is logged here; the content never is.
///
/// The event source must be configured to report batch item failures.
pub async fn each<T, F>(batch: SqsEvent, at_once: usize, take: T) -> SqsBatchResponse
where
    T: Fn(SqsMessage) -> F,
    F: Future<Output = Result<(), Problem>>,
{
    answer(failures(batch.records, at_once, take).await)
}

/// Handles the messages as [`each`] does, and returns the ids of those that failed.
pub async fn failures<T, F>(messages: Vec<SqsMessage>, at_once: usize, take: T) -> Vec<String>
where
    T: Fn(SqsMessage) -> F,
    F: Future<Output = Result<(), Problem>>,
{
    let failed: Vec<Option<String>> = stream::iter(messages)
        .map(|message| failed_id(message, &take))
        .buffered(at_once.max(1))
        .collect()
        .await;
    failed.into_iter().flatten().collect()
}

/// Handles groups of messages, `at_once` groups concurrently, and returns the ids of the messages that failed. `take`
/// returns a result for each message, in order.
pub async fn failures_together<T, F>(groups: Vec<Vec<SqsMessage>>, at_once: usize, take: T) -> Vec<String>
where
    T: Fn(Vec<SqsMessage>) -> F,
    F: Future<Output = Vec<Result<(), Problem>>>,
{
    let failed: Vec<Vec<String>> =
        stream::iter(groups).map(|group| failed_ids(group, &take)).buffered(at_once.max(1)).collect().await;
    failed.into_iter().flatten().collect()
}

/// The answer that lists these messages as failed.
pub fn answer(failures: Vec<String>) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    response.set_failures(failures);
    response
}

/// How often a message has been received, including this time.
pub fn receives(message: &SqsMessage) -> u32 {
    let count = message.attributes.get("ApproximateReceiveCount");
    count.and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// Hides messages until the end of the invocation that could become visible before it: those that Lambda has kept for a
/// while since it received them, such as while it could invoke no function, and those that were received before, of
/// which it isn't known when. All others cost no request: Lambda takes no queue whose visibility timeout is shorter than
/// the function's timeout, so the queue hides a message that was received just now for as long as its work can take.
pub async fn hide_until_over(app: &App, messages: &[SqsMessage], deadline_at: Timestamp) {
    let now = app.service.now();
    let mut by_queue: BTreeMap<QueueName, Vec<String>> = BTreeMap::new();
    for message in messages.iter().filter(|message| !is_fresh(message, now)) {
        if let (Some((queue, _)), Some(receipt)) = (queue_of(app, message), receipt(app, message)) {
            by_queue.entry(queue).or_default().push(receipt);
        }
    }
    let left = deadline_at.since(now);
    for (queue, receipts) in by_queue {
        if let Err(error) = app.service.hide_messages(&queue, &receipts, left).await {
            // Whoever receives them meanwhile finds the leases alive.
            tracing::warn!(queue = %queue, %error, "messages may be received again before their work is over");
        }
    }
}

/// Whether the message was received for the first time, just now.
fn is_fresh(message: &SqsMessage, now: Timestamp) -> bool {
    let received_at = message.attributes.get("ApproximateFirstReceiveTimestamp");
    let received_at = received_at.and_then(|at| at.parse().ok()).map(Timestamp::from_millis);
    receives(message) == 1 && received_at.is_some_and(|at| now.since(at) <= FRESH)
}

/// The receipt of a message, as the queue port knows it: with the class of the class queue that it comes from.
pub fn receipt(app: &App, message: &SqsMessage) -> Option<String> {
    let class = queue_of(app, message).map_or(Priority::Normal, |(_, class)| class);
    message.receipt_handle.clone().map(|receipt| receipt_of(class, receipt))
}

/// The queue of a message, and its class: its ARN and the queue's URL end in the same name.
fn queue_of(app: &App, message: &SqsMessage) -> Option<(QueueName, Priority)> {
    let name = message.event_source_arn.as_deref()?.rsplit(':').next()?;
    let is_its = |url: &str| url.trim_end_matches('/').rsplit('/').next() == Some(name);
    let listed = app.config.queues.iter().find(|(_, url)| is_its(url));
    listed
        .map(|(queue, _)| (queue.clone(), Priority::Normal))
        .or_else(|| app.config.any_queue.as_ref()?.queue(name))
}

/// The message's id if it failed.
async fn failed_id<T, F>(message: SqsMessage, take: &T) -> Option<String>
where
    T: Fn(SqsMessage) -> F,
    F: Future<Output = Result<(), Problem>>,
{
    let name = Name::of(&message);
    let taken = AssertUnwindSafe(async { take(message).await }).catch_unwind().await;
    name.if_failed(taken.as_ref().ok())
}

/// The ids of the messages of a group that failed. A result that is missing is a failure.
async fn failed_ids<T, F>(group: Vec<SqsMessage>, take: &T) -> Vec<String>
where
    T: Fn(Vec<SqsMessage>) -> F,
    F: Future<Output = Vec<Result<(), Problem>>>,
{
    let names: Vec<_> = group.iter().map(Name::of).collect();
    let taken = AssertUnwindSafe(async { take(group).await }).catch_unwind().await.unwrap_or_default();
    names.into_iter().enumerate().filter_map(|(index, name)| name.if_failed(taken.get(index))).collect()
}

/// What the log and the answer say of a message.
struct Name {
    id: String,
    receives: Option<String>,
}

impl Name {
    /// If the id is missing, Lambda treats the whole batch as failed, which is the safest result.
    fn of(message: &SqsMessage) -> Self {
        Self {
            id: message.message_id.clone().unwrap_or_default(),
            receives: message.attributes.get("ApproximateReceiveCount").cloned(),
        }
    }

    /// Its id, if the message failed; after a panic there is no result.
    fn if_failed(self, taken: Option<&Result<(), Problem>>) -> Option<String> {
        let Self { id, receives } = self;
        let (code, reason, again) = match taken {
            Some(Ok(())) => return None,
            Some(Err(problem)) => (problem.code(), problem.for_logs(), problem.is_retryable()),
            // A panic must not fail the other messages of the batch.
            None => ("internal", "a panic; see the log line before this one".to_owned(), false),
        };
        tracing::warn!({ MESSAGE_ID } = id, code, reason, again, receives, "message failed");
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tickover_core::error::Reject;

    use super::*;

    fn batch(ids: &[&str]) -> SqsEvent {
        let records: Vec<_> = ids.iter().map(|id| serde_json::json!({"messageId": id, "body": id})).collect();
        serde_json::from_value(serde_json::json!({ "Records": records })).unwrap()
    }

    async fn failures(ids: &[&str]) -> Vec<String> {
        let response = each(batch(ids), 2, |message| async move {
            match message.body.as_deref() {
                Some("bad") => Err(Reject::NotFound.into()),
                Some("mine") => panic!("a mine"),
                _ => Ok(()),
            }
        });
        let failures = response.await.batch_item_failures;
        failures.into_iter().map(|failure| failure.item_identifier).collect()
    }

    #[tokio::test]
    async fn a_bad_message_fails_alone_and_a_panic_is_a_bad_message() {
        assert_eq!(failures(&["a", "bad", "b", "mine", "c"]).await, ["bad", "mine"]);
        assert_eq!(failures(&["a", "b"]).await, [""; 0]);
    }

    #[tokio::test]
    async fn each_message_of_a_group_fails_alone_and_a_panic_fails_its_group() {
        let group = |ids: &[&str]| batch(ids).records;
        let groups = vec![group(&["a", "bad", "b"]), group(&["c", "mine"]), group(&["d"])];
        let failed = failures_together(groups, 2, |messages| async move {
            let one = |message: SqsMessage| match message.body.as_deref() {
                Some("bad") => Err(Reject::NotFound.into()),
                Some("mine") => panic!("a mine"),
                _ => Ok(()),
            };
            messages.into_iter().map(one).collect()
        });
        assert_eq!(failed.await, ["bad", "c", "mine"]);
    }

    #[tokio::test]
    async fn no_more_messages_than_allowed_are_under_way() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let response = each(batch(&["a", "b", "c", "d", "e"]), 2, |_| async {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        });
        assert!(response.await.batch_item_failures.is_empty());
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }
}
