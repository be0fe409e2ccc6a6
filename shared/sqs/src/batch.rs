//! Which messages are sent together, and how long to wait before some of them are sent again.

use std::time::Duration;

use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::BatchResultErrorEntry;
use tickover_service::ports::{Ids as _, Outgoing, QueueError};
use tickover_service::system::SystemIds;

use crate::error::classify_entry;

/// The most messages in one request: SQS's limit.
pub(crate) const MESSAGES_MAX: usize = 10;

/// The most bytes in one request. SQS takes 1 MiB since 2025, but older compatible services take no more than this.
const BYTES_MAX: usize = 256 * 1024;

/// The bound of the wait before the first repetition. It doubles with each repetition.
const BACKOFF: Duration = Duration::from_millis(50);

/// Splits messages into batches, in order. A message that is too large for any batch gets its own: SQS decides whether
/// to take it.
pub(crate) fn plan(mut messages: &[Outgoing]) -> Vec<&[Outgoing]> {
    let mut batches = Vec::new();
    while !messages.is_empty() {
        let mut bytes = 0;
        let fitting = messages.iter().take(MESSAGES_MAX).take_while(|message| {
            bytes += message.body.len();
            bytes <= BYTES_MAX
        });
        let (batch, rest) = messages.split_at(fitting.count().max(1));
        batches.push(batch);
        messages = rest;
    }
    batches
}

/// Receipts with their ids in a batch.
pub(crate) fn numbered(receipts: &[String]) -> impl Iterator<Item = (String, &String)> {
    receipts.iter().enumerate().map(|(place, receipt)| (place.to_string(), receipt))
}

/// The error for an entry of a batch that couldn't be built.
pub(crate) fn unbuilt(error: &BuildError) -> QueueError {
    QueueError::Unavailable { reason: error.to_string() }
}

/// The error of a batch that SQS carried out in part. A bad receipt is no error: its message was deleted, or received
/// again since.
pub(crate) fn refusal(failed: &[BatchResultErrorEntry]) -> Result<(), QueueError> {
    match failed.iter().find(|entry| !entry.sender_fault()) {
        Some(entry) => Err(classify_entry(entry.code(), entry.message())),
        None => Ok(()),
    }
}

/// A random wait before a repetition (the first is 1), up to its bound: so that callers that failed together don't come
/// back together.
pub(crate) fn backoff(repetition: u32) -> Duration {
    let mut random = [0; 2];
    SystemIds.fill(&mut random);
    let bound = BACKOFF.saturating_mul(1 << repetition.saturating_sub(1).min(6));
    bound.mul_f64(f64::from(u16::from_le_bytes(random)) / f64::from(u16::MAX))
}

#[cfg(test)]
mod tests {
    use tickover_core::duration::Millis;

    use super::*;

    fn sizes(bodies: &[usize]) -> Vec<Vec<usize>> {
        let messages: Vec<_> =
            bodies.iter().map(|size| Outgoing::plain("x".repeat(*size), Millis::ZERO)).collect();
        plan(&messages).iter().map(|batch| batch.iter().map(|message| message.body.len()).collect()).collect()
    }

    #[test]
    fn a_batch_has_ten_messages_at_most() {
        assert_eq!(sizes(&[]), [[0; 0]; 0]);
        assert_eq!(sizes(&[1; 25]), [vec![1; 10], vec![1; 10], vec![1; 5]]);
    }

    #[test]
    fn a_batch_stays_within_its_bytes() {
        const K: usize = 1024;
        assert_eq!(sizes(&[100 * K, 156 * K, 1]), [vec![100 * K, 156 * K], vec![1]]);
        assert_eq!(sizes(&[200 * K, 100 * K, 100 * K]), [vec![200 * K], vec![100 * K, 100 * K]]);
    }

    #[test]
    fn an_oversized_message_travels_alone() {
        assert_eq!(sizes(&[1, BYTES_MAX + 1, 1]), [[1], [BYTES_MAX + 1], [1]]);
    }

    #[test]
    fn backoff_stays_within_a_growing_bound() {
        for (repetition, bound_ms) in [(1, 50), (2, 100), (3, 200), (u32::MAX, 3_200)] {
            assert!(backoff(repetition) <= Duration::from_millis(bound_ms), "{repetition}");
        }
    }
}
