//! Batches of SQS messages: each is taken by itself, and only those that failed go back to their queue.

use std::panic::AssertUnwindSafe;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use tickover_api::Problem;

/// The name of a log field: the message's id in SQS.
pub const MESSAGE_ID: &str = "message.id";

/// Takes each message, `at_once` of them together, and names those that failed in the answer: they reappear, and
/// in the end reach the dead-letter queue. Why is logged here; what was in them never is.
///
/// The event source must be set to report batch item failures.
pub async fn each<T, F>(batch: SqsEvent, at_once: usize, take: T) -> SqsBatchResponse
where
    T: Fn(SqsMessage) -> F,
    F: Future<Output = Result<(), Problem>>,
{
    let failed: Vec<Option<String>> = stream::iter(batch.records)
        .map(|message| one(message, &take))
        .buffered(at_once.max(1))
        .collect()
        .await;
    let mut response = SqsBatchResponse::default();
    response.set_failures(failed.into_iter().flatten());
    response
}

/// The message's id if it failed. One without an id makes Lambda take the whole batch for failed, which is the
/// best that can be said of it.
async fn one<T, F>(message: SqsMessage, take: &T) -> Option<String>
where
    T: Fn(SqsMessage) -> F,
    F: Future<Output = Result<(), Problem>>,
{
    let id = message.message_id.clone().unwrap_or_default();
    let receives = message.attributes.get("ApproximateReceiveCount").cloned();
    let taken = AssertUnwindSafe(async { take(message).await }).catch_unwind().await;
    let (code, reason, again) = match &taken {
        Ok(Ok(())) => return None,
        Ok(Err(problem)) => (problem.code(), problem.told(), problem.is_retryable()),
        // The others of its batch have done nothing wrong.
        Err(_) => ("internal", "a panic, which the line above tells of".to_owned(), false),
    };
    tracing::warn!({ MESSAGE_ID } = id, code, reason, again, receives, "message failed");
    Some(id)
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
