//! What a receipt can be used for, and for how long.
//!
//! Whether an older receipt still works while another receiver has the message isn't tested: SQS leaves that open.

use tickover_core::duration::Millis;

use super::{LONG, Outcome, Subject, ensure};
use tickover_service::ports::QueueError;

pub(super) async fn deleting_twice_is_no_error(subject: &Subject<'_>) -> Outcome {
    subject.send(&["a"], Millis::ZERO).await?;
    let received = subject.receive_one(LONG).await?;
    subject.delete(&received.receipt).await?;
    subject.delete(&received.receipt).await
}

pub(super) async fn a_message_that_came_back_can_be_deleted(subject: &Subject<'_>) -> Outcome {
    subject.send(&["a"], Millis::ZERO).await?;
    let received = subject.receive_one(Millis::from_secs(1)).await?;
    subject.clock.sleep_until(subject.now().plus(Millis::new(1_500))).await;
    subject.delete(&received.receipt).await?;
    subject.expect_nothing(Millis::from_secs(1)).await
}

pub(super) async fn the_receipt_of_a_deleted_message_is_stale(subject: &Subject<'_>) -> Outcome {
    subject.send(&["a"], Millis::ZERO).await?;
    let received = subject.receive_one(LONG).await?;
    subject.delete(&received.receipt).await?;
    let changed = subject.change_visibility(&received.receipt, LONG).await;
    ensure!(matches!(changed, Err(QueueError::StaleReceipt)), "changing its visibility: {changed:?}");
    Ok(())
}

pub(super) async fn a_made_up_receipt_is_stale_and_deletes_nothing(subject: &Subject<'_>) -> Outcome {
    subject.send(&["a"], Millis::ZERO).await?;
    for receipt in ["made-up", "0.0.0", "1.2"] {
        let changed = subject.change_visibility(receipt, LONG).await;
        ensure!(matches!(changed, Err(QueueError::StaleReceipt)), "changing visibility: {changed:?}");
        subject.delete(receipt).await?;
    }
    subject.receive_one(LONG).await.map(drop)
}
