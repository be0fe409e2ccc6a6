//! A message that is sent arrives whole and unchanged at one receiver.

use std::collections::BTreeSet;

use futures::future::join_all;
use tickover_core::duration::Millis;

use super::{Failure, LONG, Outcome, Subject, ensure};

pub(super) async fn a_message_is_sent_received_and_deleted(subject: &Subject<'_>) -> Outcome {
    subject.send(&["hello"], Millis::ZERO).await?;
    let received = subject.receive_one(Millis::from_secs(1)).await?;
    ensure!(received.body == "hello", "another body arrived");
    ensure!(received.receive_count == 1, "it counts {} receives", received.receive_count);
    subject.delete(&received.receipt).await?;
    // After the visibility timeout: a deleted message doesn't come back.
    subject.expect_nothing(Millis::from_secs(2)).await
}

pub(super) async fn a_batch_of_25_arrives_whole(subject: &Subject<'_>) -> Outcome {
    let bodies: Vec<_> = (0..25).map(|n| format!("message {n}")).collect();
    let bodies: BTreeSet<_> = bodies.iter().map(String::as_str).collect();
    let sent: Vec<_> = bodies.iter().copied().collect();
    subject.send(&sent, Millis::ZERO).await?;
    let received = subject.receive_all(sent.len()).await?;
    let arrived: BTreeSet<_> = received.iter().map(|received| received.body.as_str()).collect();
    ensure!(arrived == bodies, "sent {bodies:?}, received {arrived:?}");
    Ok(())
}

pub(super) async fn nothing_to_send_is_no_error(subject: &Subject<'_>) -> Outcome {
    subject.send(&[], Millis::ZERO).await
}

pub(super) async fn bodies_survive_unchanged(subject: &Subject<'_>) -> Outcome {
    let large = "0123456789abcdef".repeat(12_800);
    let bodies = [
        r#"{"quoted":"\"","nested":[1,null,{"a":"<&>"}]}"#,
        "naïve Größe 漢字 שלום 🚀\u{301}",
        " white\tspace\r\nat the end \n",
        "%2B + & = ?",
        large.as_str(),
        // Together with the one before, more than fits into one batch.
        &large[..102_400],
    ];
    subject.send(&bodies, Millis::ZERO).await?;
    let received = subject.receive_all(bodies.len()).await?;
    for (place, body) in bodies.iter().enumerate() {
        let arrived = received.iter().any(|received| received.body == *body);
        ensure!(arrived, "body {place} of {} bytes arrived changed, or not at all", body.len());
    }
    Ok(())
}

pub(super) async fn no_more_is_received_than_asked_for(subject: &Subject<'_>) -> Outcome {
    subject.send(&["a", "b", "c", "d"], Millis::ZERO).await?;
    let mut count = 0;
    while count < 4 {
        let received = subject.receive(2, LONG, super::TIMEOUT).await?;
        ensure!((1..=2).contains(&received.len()), "{} messages for a maximum of two", received.len());
        count += received.len();
    }
    Ok(())
}

pub(super) async fn two_receivers_never_get_the_same_message(subject: &Subject<'_>) -> Outcome {
    let bodies: Vec<_> = (0..40).map(|n| n.to_string()).collect();
    let sent: Vec<_> = bodies.iter().map(String::as_str).collect();
    subject.send(&sent, Millis::ZERO).await?;
    let receivers = join_all((0..4).map(async |_| {
        let mut mine = Vec::new();
        loop {
            let received = subject.receive(3, LONG, Millis::from_secs(1)).await?;
            if received.is_empty() {
                return Ok::<_, Failure>(mine);
            }
            mine.extend(received.into_iter().map(|received| received.body));
            ensure!(mine.len() <= sent.len(), "one receiver got more messages than were sent");
        }
    }));
    let mut held: Vec<String> = Vec::new();
    for receiver in receivers.await {
        held.extend(receiver?);
    }
    let different: BTreeSet<_> = held.iter().collect();
    ensure!(
        held.len() == bodies.len() && different.len() == bodies.len(),
        "40 messages were received {} times, {} different",
        held.len(),
        different.len()
    );
    Ok(())
}
