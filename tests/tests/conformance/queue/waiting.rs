//! How long a receive call waits.

use futures::future::join;
use tickover_core::duration::Millis;

use super::{LONG, Outcome, Subject, TIMEOUT, ensure};

/// A poll that a message ends takes at most this long; one that no message ends takes [`TIMEOUT`].
const PROMPT: Millis = Millis::from_secs(10);

pub(super) async fn an_empty_queue_answers_nothing(subject: &Subject<'_>) -> Outcome {
    let asked_at = subject.now();
    subject.expect_nothing(Millis::ZERO).await?;
    subject.expect_nothing(Millis::from_secs(1)).await?;
    let taken = subject.now().since(asked_at);
    ensure!(taken < PROMPT, "waiting for 1s took {taken}");
    Ok(())
}

pub(super) async fn a_long_poll_ends_when_a_message_comes(subject: &Subject<'_>) -> Outcome {
    let asked_at = subject.now();
    let polling = subject.receive(1, LONG, TIMEOUT);
    let sending = async {
        subject.clock.sleep_until(asked_at.plus(Millis::from_secs(1))).await;
        subject.send(&["a"], Millis::ZERO).await
    };
    let (received, sent) = join(polling, sending).await;
    sent?;
    let count = received?.len();
    let taken = subject.now().since(asked_at);
    ensure!(count == 1, "the poll ended with {count} messages");
    ensure!(taken < PROMPT, "the poll ended after {taken}");
    Ok(())
}

pub(super) async fn a_long_poll_ends_when_a_delay_does(subject: &Subject<'_>) -> Outcome {
    let asked_at = subject.now();
    subject.send(&["a"], Millis::from_secs(1)).await?;
    subject.receive_one(LONG).await?;
    let taken = subject.now().since(asked_at);
    ensure!(taken < PROMPT, "the poll ended after {taken}");
    Ok(())
}
