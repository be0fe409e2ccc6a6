//! The SQS adapter against an SQS over the network.

use std::collections::BTreeMap;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_core::lane::Lane;
use tickover_service::config::QueuePattern;
use tickover_service::ports::{Outgoing, Queue, QueueError};
use tickover_service::system::SystemClock;
use tickover_sqs::{SqsQueue, create_queue};
use tickover_tests::emulator;

use crate::queue as suite;

async fn client() -> Client {
    Client::new(&emulator::aws_config().await)
}

/// Makes a queue with a unique name.
async fn made(client: &Client, prefix: &str) -> anyhow::Result<String> {
    Ok(create_queue(client, &emulator::unique(prefix), []).await?)
}

#[tokio::test]
async fn the_queue_of_sqs_conforms() -> anyhow::Result<()> {
    let client = client().await;
    let mut urls = BTreeMap::new();
    for name in suite::queue_names() {
        urls.insert(name, made(&client, "conformance").await?);
    }
    suite::check(&SqsQueue::new(client, urls), &SystemClock).await?;
    Ok(())
}

#[tokio::test]
async fn queues_that_are_found_by_their_names_conform() -> anyhow::Result<()> {
    let client = client().await;
    let prefix = emulator::unique("found");
    let mut pattern = None;
    for name in suite::queue_names() {
        pattern = pattern_of(&client, &prefix, &name).await?;
    }
    let queue = SqsQueue::new(client, BTreeMap::new()).finding(pattern);
    suite::check(&queue, &SystemClock).await?;
    Ok(())
}

/// The pattern of the queues whose names begin with the prefix, once one of them is made.
async fn pattern_of(client: &Client, prefix: &str, made: &QueueName) -> anyhow::Result<Option<QueuePattern>> {
    let url = create_queue(client, &format!("{prefix}-{made}"), []).await?;
    let start = url.strip_suffix(made.as_str());
    Ok(start.and_then(|start| QueuePattern::parse(&format!("{start}{{name}}"))))
}

#[tokio::test]
async fn queues_with_class_queues_conform() -> anyhow::Result<()> {
    let client = client().await;
    let prefix = emulator::unique("classes");
    let mut pattern = None;
    for name in suite::queue_names() {
        pattern = pattern_of(&client, &prefix, &name).await?;
        for class in ["high", "low"] {
            create_queue(&client, &format!("{prefix}-{name}__{class}"), []).await?;
        }
    }
    let queue = SqsQueue::new(client, BTreeMap::new()).finding(pattern);
    suite::check(&queue, &SystemClock).await?;
    Ok(())
}

/// Receives one after the other until nothing comes, deletes each, and returns their bodies.
async fn drained(queue: &SqsQueue, name: &QueueName) -> anyhow::Result<Vec<String>> {
    let mut bodies = Vec::new();
    loop {
        let received = queue.receive(name, 1, Millis::from_secs(30), Millis::from_secs(1)).await?;
        let Some(message) = received.into_iter().next() else { return Ok(bodies) };
        queue.change_visibility(name, &message.receipt, Millis::from_secs(20)).await?;
        queue.delete(name, &message.receipt).await?;
        bodies.push(message.body);
    }
}

#[tokio::test]
async fn messages_of_all_classes_are_received_counted_and_deleted_and_high_ones_come_first()
-> anyhow::Result<()> {
    let client = client().await;
    let (prefix, name) = (emulator::unique("ordered"), QueueName::parse("work")?);
    let pattern = pattern_of(&client, &prefix, &name).await?;
    let classes = [Priority::High, Priority::Low];
    let mut urls = BTreeMap::new();
    for class in classes {
        urls.insert(class, create_queue(&client, &format!("{prefix}-work__{class}"), []).await?);
    }
    let queue = SqsQueue::new(client.clone(), BTreeMap::new()).finding(pattern.clone());
    assert!(queue.open(&name).await?);
    let of = |priority: Priority| {
        let lane = Lane { priority, ..Lane::default() };
        Outgoing { lane, ..Outgoing::plain(priority.as_str(), Millis::ZERO) }
    };
    let mixed = [Priority::Low, Priority::Normal, Priority::High].repeat(20);
    let messages: Vec<_> = mixed.iter().map(|priority| of(*priority)).collect();
    assert!(queue.send(&name, &messages).await?.iter().all(Result::is_ok));
    assert_eq!(queue.depth(&name).await?.visible, 60);
    for class in classes {
        assert_eq!(queue.class_depth(&name, class).await?.depth.visible, 20, "{class}");
    }
    assert_eq!(queue.names(), std::slice::from_ref(&name));
    let order = drained(&queue, &name).await?;
    assert_eq!(order.len(), 60);
    let place = |body: &str| order.iter().rposition(|received| received == body);
    assert!(place("high") < place("normal") && place("normal") < place("low"), "{order:?}");
    assert!(order[..10].iter().any(|received| received == "low"), "{order:?}");
    assert!(queue.depth(&name).await?.is_empty());

    // Without the class queues, everything goes through the queue that is left.
    for url in urls.values() {
        client.delete_queue().queue_url(url).send().await?;
    }
    assert!(queue.send(&name, &messages[..3]).await?.iter().all(Result::is_ok));
    assert_eq!(queue.depth(&name).await?.visible, 3);
    assert_eq!(drained(&queue, &name).await?.len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_url_that_sqs_does_not_know_is_an_unknown_queue() -> anyhow::Result<()> {
    let client = client().await;
    let real = made(&client, "vanishing").await?;
    client.delete_queue().queue_url(&real).send().await?;
    let name = QueueName::parse("vanished")?;
    let queue = SqsQueue::new(client, BTreeMap::from([(name.clone(), real)]));
    let message = Outgoing::plain("a", Millis::ZERO);
    let answers = [
        queue.send(&name, &[message]).await.map(drop),
        queue.receive(&name, 1, Millis::ZERO, Millis::ZERO).await.map(drop),
        queue.delete(&name, "made-up").await,
        queue.change_visibility(&name, "made-up", Millis::ZERO).await,
        queue.depth(&name).await.map(drop),
    ];
    for answer in answers {
        assert!(matches!(&answer, Err(QueueError::Unknown { queue }) if queue == "vanished"), "{answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn creating_a_queue_again_keeps_its_messages_and_updates_its_attributes() -> anyhow::Result<()> {
    let client = client().await;
    let name = emulator::unique("again");
    let visibility = |seconds: u32| [(QueueAttributeName::VisibilityTimeout, seconds.to_string())];
    let url = create_queue(&client, &name, visibility(40)).await?;
    client.send_message().queue_url(&url).message_body("a").send().await?;
    for seconds in [40, 50, 50] {
        assert_eq!(create_queue(&client, &name, visibility(seconds)).await?, url);
    }
    assert_eq!(create_queue(&client, &name, []).await?, url);
    let found = client
        .get_queue_attributes()
        .queue_url(&url)
        .attribute_names(QueueAttributeName::VisibilityTimeout)
        .attribute_names(QueueAttributeName::ApproximateNumberOfMessages)
        .send()
        .await?;
    let attribute = |name| found.attributes().and_then(|all| all.get(&name)).map(String::as_str);
    assert_eq!(attribute(QueueAttributeName::VisibilityTimeout), Some("50"));
    assert_eq!(attribute(QueueAttributeName::ApproximateNumberOfMessages), Some("1"));
    Ok(())
}

#[tokio::test]
async fn an_unreachable_service_is_unavailable() -> anyhow::Result<()> {
    let config = aws_sdk_sqs::config::Builder::from(&emulator::aws_config().await)
        // Port 9 belongs to the discard service, which isn't in use.
        .endpoint_url("http://127.0.0.1:9")
        .retry_config(aws_sdk_sqs::config::retry::RetryConfig::disabled())
        .build();
    let name = QueueName::parse("work")?;
    let urls = BTreeMap::from([(name.clone(), "http://127.0.0.1:9/000000000000/work".to_owned())]);
    let queue = SqsQueue::new(Client::from_conf(config), urls);
    let depth = queue.depth(&name).await;
    assert!(matches!(&depth, Err(QueueError::Unavailable { .. })), "{depth:?}");
    let message = Outgoing::plain("a", Millis::ZERO);
    let sent = queue.send(&name, &[message.clone(), message]).await?;
    assert!(sent.iter().all(|result| matches!(result, Err(QueueError::Unavailable { .. }))), "{sent:?}");
    assert_eq!(sent.len(), 2);
    Ok(())
}
