//! Which queues exist, and how many messages they hold.

use tickover_core::duration::Millis;

use super::{ABSENT, LONG, Outcome, Subject, ensure, name};
use tickover_service::ports::{Depth, Outgoing, QueueError};

/// How long a queue's counts may lag behind. SQS documents a minute.
const LAG: Millis = Millis::from_secs(60);

pub(super) async fn every_message_is_counted_once(subject: &Subject<'_>) -> Outcome {
    expect_depth(subject, Depth::default()).await?;
    subject.send(&["a", "b", "c"], Millis::ZERO).await?;
    subject.send(&["d"], LONG).await?;
    expect_depth(subject, Depth { visible: 3, in_flight: 0, delayed: 1 }).await?;
    let received = subject.receive_one(LONG).await?;
    expect_depth(subject, Depth { visible: 2, in_flight: 1, delayed: 1 }).await?;
    subject.delete(&received.receipt).await?;
    expect_depth(subject, Depth { visible: 2, in_flight: 0, delayed: 1 }).await
}

async fn expect_depth(subject: &Subject<'_>, expected: Depth) -> Outcome {
    let give_up_at = subject.now().plus(LAG);
    loop {
        let depth = subject.queue.depth(&subject.name).await?;
        if depth == expected {
            return Ok(());
        }
        ensure!(subject.now() < give_up_at, "{depth:?} instead of {expected:?}");
        subject.clock.sleep_until(subject.now().plus(Millis::new(200))).await;
    }
}

pub(super) async fn a_known_queue_opens_and_is_listed(subject: &Subject<'_>) -> Outcome {
    ensure!(subject.queue.open(&subject.name).await?, "it doesn't open");
    ensure!(subject.queue.knows(&subject.name), "it isn't known");
    let names = subject.queue.names();
    ensure!(names.contains(&subject.name), "it isn't listed");
    ensure!(names.is_sorted(), "the list isn't sorted");
    Ok(())
}

pub(super) async fn an_unknown_queue_is_unknown_to_every_call(subject: &Subject<'_>) -> Outcome {
    let (queue, absent) = (subject.queue, name(ABSENT));
    let message = Outgoing::plain("a", Millis::ZERO);
    let mut answers = vec![
        ("send", queue.send(&absent, &[message]).await.map(drop)),
        ("receive", queue.receive(&absent, 1, LONG, Millis::ZERO).await.map(drop)),
        ("delete", queue.delete(&absent, "made-up").await),
        ("change_visibility", queue.change_visibility(&absent, "made-up", LONG).await),
        ("depth", queue.depth(&absent).await.map(drop)),
    ];
    if queue.traits().finds_by_name {
        ensure!(!queue.open(&absent).await?, "it opens");
    } else {
        answers.push(("send nothing", queue.send(&absent, &[]).await.map(drop)));
        ensure!(!queue.knows(&absent), "it is known");
    }
    for (call, answer) in answers {
        let is_unknown = matches!(&answer, Err(QueueError::Unknown { queue }) if queue == ABSENT);
        ensure!(is_unknown, "{call}: {answer:?}");
    }
    ensure!(!queue.names().contains(&absent), "it is listed");
    Ok(())
}
