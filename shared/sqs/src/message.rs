//! Messages and durations in SQS's form.

use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName, SendMessageBatchRequestEntry};
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::limits::QUEUE_DELAY_MAX;
use tickover_service::ports::{Outgoing, Received};

use crate::class::receipt_of;

/// An entry of a batch. Its id is the message's index in the batch.
pub(crate) fn entry(place: usize, message: &Outgoing) -> Result<SendMessageBatchRequestEntry, BuildError> {
    // Rounded down: a hint that arrives early is sent again with the remaining delay, but one that arrives late is
    // late.
    let delay_s = message.delay.min(QUEUE_DELAY_MAX).as_secs_floor();
    SendMessageBatchRequestEntry::builder()
        .id(place.to_string())
        .message_body(&message.body)
        .delay_seconds(whole(delay_s))
        // A standard queue then delivers its groups in turn while one of them has a backlog.
        .set_message_group_id(message.lane.tenant.map(|tenant| tenant.to_string()))
        .build()
}

/// A received message. `None` for a message without a receipt, which can't be deleted or hidden.
pub(crate) fn received(class: Priority, message: Message) -> Option<Received> {
    let count = message
        .attributes
        .as_ref()
        .and_then(|attributes| attributes.get(&MessageSystemAttributeName::ApproximateReceiveCount))
        .and_then(|count| count.parse().ok());
    Some(Received {
        body: message.body.unwrap_or_default(),
        receipt: receipt_of(class, message.receipt_handle?),
        receive_count: count.unwrap_or(1),
    })
}

/// Whole seconds, at most `most`, rounded up: a message must not be visible before its receiver's time has passed.
pub(crate) fn seconds_up(span: Millis, most: Millis) -> i32 {
    whole(span.min(most).saturating_add(Millis::new(999)).as_secs_floor())
}

fn whole(seconds: u64) -> i32 {
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::builders::MessageBuilder;
    use tickover_core::id::Fingerprint;
    use tickover_core::lane::Lane;

    use super::*;

    #[test]
    fn delays_are_rounded_down_and_end_at_fifteen_minutes() {
        for (ms, seconds) in [(0, 0), (999, 0), (1_999, 1), (900_000, 900), (u64::MAX, 900)] {
            let message = Outgoing::plain("a", Millis::new(ms));
            assert_eq!(entry(0, &message).unwrap().delay_seconds, Some(seconds), "{ms} ms");
        }
    }

    #[test]
    fn a_tenant_is_the_group_of_its_messages_and_without_one_there_is_no_group() {
        let tenant = Some(Fingerprint::from_bytes([255; 16]));
        let lane = Lane { tenant, ..Lane::default() };
        let message = Outgoing { lane, ..Outgoing::plain("a", Millis::ZERO) };
        let group = entry(0, &message).unwrap().message_group_id.unwrap();
        assert_eq!(Some(group.as_str()), tenant.map(|tenant| tenant.to_string()).as_deref());
        assert!(group.len() <= 128, "SQS's limit");
        assert_eq!(entry(0, &Outgoing::plain("a", Millis::ZERO)).unwrap().message_group_id, None);
    }

    #[test]
    fn visibilities_and_waits_are_rounded_up_to_their_maximum() {
        let most = Millis::from_secs(20);
        for (ms, seconds) in [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (20_000, 20), (u64::MAX, 20)] {
            assert_eq!(seconds_up(Millis::new(ms), most), seconds, "{ms} ms");
        }
    }

    #[test]
    fn a_message_without_a_count_was_received_once_and_one_without_a_receipt_not_at_all() {
        let message = Message::builder().body("a");
        let received = |message: &MessageBuilder| received(Priority::Low, message.clone().build());
        assert_eq!(received(&message), None);
        let message = message.receipt_handle("r");
        let first = received(&message).unwrap();
        assert_eq!((first.receive_count, first.receipt.as_str()), (1, "low:r"));
        let message = message.attributes(MessageSystemAttributeName::ApproximateReceiveCount, "7");
        assert_eq!(received(&message).map(|received| received.receive_count), Some(7));
    }
}
