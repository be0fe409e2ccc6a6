//! When a message can be received.
//!
//! An instant is measured from before the call that sets it. The queue's own time starts between then and its answer.
//! So a message may arrive later than that by as long as the call took, but never earlier.

use tickover_core::duration::Millis;

use super::{LONG, Outcome, Subject, ensure};

pub(super) async fn a_received_message_is_hidden_then_visible_again(subject: &Subject<'_>) -> Outcome {
    subject.send(&["a"], Millis::ZERO).await?;
    let (asked_at, first) = loop {
        // Without a wait, so that the visibility timeout can't begin long after the measured instant.
        let asked_at = subject.now();
        if let Some(message) = subject.receive(1, Millis::from_secs(2), Millis::ZERO).await?.pop() {
            break (asked_at, message);
        }
        subject.clock.sleep_until(asked_at.plus(Millis::new(50))).await;
    };
    subject.expect_nothing(Millis::ZERO).await?;
    let second = subject.receive_one(LONG).await?;
    let hidden = subject.now().since(asked_at);
    ensure!(hidden >= Millis::from_secs(2), "it was hidden for {hidden} instead of 2s");
    ensure!(second.body == "a", "another body came back");
    ensure!(second.receipt != first.receipt, "the second receipt is the first one");
    Ok(())
}

pub(super) async fn a_visibility_of_zero_shows_a_message_at_once(subject: &Subject<'_>) -> Outcome {
    subject.send(&["a"], Millis::ZERO).await?;
    let received = subject.receive_one(LONG).await?;
    subject.change_visibility(&received.receipt, Millis::ZERO).await?;
    let again = subject.receive_one(LONG).await?;
    ensure!(again.body == "a", "another body came back");
    Ok(())
}

pub(super) async fn a_longer_visibility_keeps_a_message_hidden(subject: &Subject<'_>) -> Outcome {
    subject.send(&["a"], Millis::ZERO).await?;
    let received = subject.receive_one(Millis::from_secs(4)).await?;
    let changed_at = subject.now();
    subject.change_visibility(&received.receipt, Millis::from_secs(10)).await?;
    subject.expect_nothing(Millis::from_secs(5)).await?;
    subject.receive_one(LONG).await?;
    let hidden = subject.now().since(changed_at);
    ensure!(hidden >= Millis::from_secs(10), "it was hidden for {hidden} instead of 10s");
    Ok(())
}

pub(super) async fn a_delayed_message_is_hidden_for_its_delay(subject: &Subject<'_>) -> Outcome {
    let sent_at = subject.now();
    subject.send(&["a"], Millis::from_secs(2)).await?;
    subject.expect_nothing(Millis::ZERO).await?;
    let received = subject.receive_one(LONG).await?;
    let hidden = subject.now().since(sent_at);
    ensure!(hidden >= Millis::from_secs(2), "it was hidden for {hidden} instead of 2s");
    ensure!(received.receive_count == 1, "it counts {} receives", received.receive_count);
    Ok(())
}

pub(super) async fn the_receive_count_grows(subject: &Subject<'_>) -> Outcome {
    subject.send(&["a"], Millis::ZERO).await?;
    for expected in 1..=3 {
        let received = subject.receive_one(LONG).await?;
        let count = received.receive_count;
        ensure!(count == expected, "receive {expected} counts {count}");
        subject.change_visibility(&received.receipt, Millis::ZERO).await?;
    }
    Ok(())
}
